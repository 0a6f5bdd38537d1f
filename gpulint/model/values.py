"""What an expression may be at run time: a product of small lattices, and their join.

A `Value` answers: what kind of thing is it, does it live on the GPU, is it attached to the autograd
graph, from which loop was it drawn, what is inside it. Everything is immutable, so values serve as
keys; what can change (an instance's attributes, a loader's options) is a heap object behind `ref`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple


class Kind(Enum):
    UNKNOWN = "Unknown"
    TENSOR = "Tensor"
    MODULE = "Module"
    LOSS = "Loss"
    LOADER = "Loader"
    OPTIMIZER = "Optimizer"
    SCALER = "Scaler"
    ARRAY = "Array"
    NUMBER = "Number"
    TEXT = "Text"
    NONE = "None"
    DEVICE = "Device"
    CONTAINER = "Container"
    FUNCTION = "Function"
    CLASS = "Class"
    INSTANCE = "Instance"
    NAMESPACE = "Namespace"  # a module or name from outside the project: `const` is its qualified name
    OBJECT = "Object"  # an instance of an outside class: `const` is the class's qualified name


class Device(Enum):
    HOST = "host"
    GPU = "gpu"
    UNKNOWN = "?"


class Graph(Enum):
    ATTACHED = "attached"
    DETACHED = "detached"
    UNKNOWN = "?"


class Pin(Enum):
    """Whether host memory is page-locked, so that a copy to the device can be asynchronous."""

    PINNED = "pinned"
    PAGEABLE = "pageable"
    UNKNOWN = "?"


class Fresh(Enum):
    """The loop of a value made in a function outside any loop: the caller's loop decides."""

    FRESH = "fresh"


NO_MARKS: frozenset[Any] = frozenset()
MAX_MARKS = 64  # on one value; what gathers more (a total over thousands of loops) forgets the rest


def few(marks: frozenset[Any], otherwise: frozenset[Any]) -> frozenset[Any]:
    """The marks, or what to keep instead where they are too many to carry along."""
    return marks if len(marks) <= MAX_MARKS else otherwise


class Value(NamedTuple):
    kind: Kind = Kind.UNKNOWN
    device: Device = Device.UNKNOWN
    graph: Graph = Graph.UNKNOWN
    sure: bool = True  # False where a name or a convention, not code that was seen, says so
    opaque: bool = False  # a tensor, or some structure of such tensors: a batch, a model's output
    scalar: bool = False  # holds one element
    bulk: bool = False  # a model's output, not reduced: large
    loop: object | None = None  # the loop (or FRESH) whose every pass makes a new one
    pinned: Pin = Pin.UNKNOWN
    element: Value | None = None  # what iterating yields
    items: tuple[Value, ...] | None = None  # a tuple's or dict's members, where all are known
    keys: tuple[str, ...] | None = None  # a dict's keys, parallel to items
    ref: Any = None  # heap object, function, class, or the loader that a batch came from
    const: Any = None  # the constant's value, or a qualified name
    marks: frozenset[Any] = NO_MARKS  # accumulations and fetches that went into it

    @property
    def on_gpu(self) -> bool:
        return self.device is Device.GPU

    @property
    def is_tensor(self) -> bool:
        """A tensor, or something on the GPU of which no more is known."""
        return self.kind is Kind.TENSOR or (self.kind is Kind.UNKNOWN and self.device is Device.GPU)

    @property
    def attached(self) -> bool:
        return self.graph is Graph.ATTACHED

    def describe(self) -> str:
        """The text that ``reveal`` shows: ``Tensor[gpu, attached]``, ``Container[Tensor[host]]``."""
        if self.kind is Kind.TENSOR:
            facts = [self.device.value, self.graph.value]
            if self.pinned is Pin.PINNED:
                facts.append("pinned")
            return f"Tensor[{', '.join(facts)}]"
        if self.kind is Kind.CONTAINER:
            if self.keys is not None and self.items is not None:
                inner = ", ".join(f"{k}: {v.describe()}" for k, v in zip(self.keys, self.items))
                return f"Container{{{inner}}}"
            if self.items is not None:
                return f"Container[{', '.join(v.describe() for v in self.items)}]"
            return f"Container[{self.element.describe() if self.element else ''}]"
        if self.kind in (Kind.MODULE, Kind.DEVICE) or (self.kind is Kind.UNKNOWN and self.on_gpu):
            return f"{self.kind.value}[{self.where.value}]"
        if self.kind in (Kind.NAMESPACE, Kind.OBJECT):
            return f"{self.kind.value}[{self.const}]"
        return str(self.kind.value)

    @property
    def where(self) -> Device:
        """The device, which a module's heap object knows best: ``model.cuda()`` moves in place."""
        moved: Device | None = getattr(self.ref, "device", None)
        return moved if self.kind is Kind.MODULE and isinstance(moved, Device) else self.device


UNKNOWN = Value()
NONE = Value(Kind.NONE)
NUMBER = Value(Kind.NUMBER)
TEXT = Value(Kind.TEXT)


def tensor(device: Device, graph: Graph = Graph.DETACHED, **more: Any) -> Value:
    return Value(Kind.TENSOR, device, graph, **more)


def container(element: Value | None) -> Value:
    return Value(Kind.CONTAINER, element=element)


def sequence(items: tuple[Value, ...]) -> Value:
    return Value(Kind.CONTAINER, items=items, element=join_all(items))


def mapping(keys: tuple[str, ...], items: tuple[Value, ...]) -> Value:
    return Value(Kind.CONTAINER, keys=keys, items=items, element=join_all(items))


def join_all(values: tuple[Value, ...]) -> Value | None:
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return result


_ROLES = (Kind.MODULE, Kind.LOSS, Kind.LOADER, Kind.OPTIMIZER, Kind.SCALER, Kind.DEVICE)
_PROMOTED = (Kind.TENSOR, Kind.ARRAY)


def join(a: Value, b: Value) -> Value:
    """The least value that covers both: equal facts stay, differing ones become unknown.

    ``None`` and a number give way to what they are joined with (`loss = None` before the loop,
    `total = 0` before `total += loss`); on the GPU on one path counts as on the GPU, unsurely.
    """
    if a is b or a == b:
        return a
    marks = a.marks if a.marks == b.marks else few(a.marks | b.marks, a.marks)
    if a.kind is not b.kind:
        if a.kind is Kind.NONE or (a.kind is Kind.NUMBER and b.kind in _PROMOTED):
            return b._replace(marks=marks)
        if b.kind is Kind.NONE or (b.kind is Kind.NUMBER and a.kind in _PROMOTED):
            return a._replace(marks=marks)
        known, other = (a, b) if b.kind is Kind.UNKNOWN else (b, a)
        if other.kind is Kind.UNKNOWN and other.sure and not other.on_gpu and known.kind in _ROLES:
            return known._replace(marks=marks, sure=False)  # `model = torch.load(path)` on the other path
        return Value(loop=a.loop or b.loop, marks=marks, sure=False)
    return Value(
        a.kind,
        a.device if a.device is b.device else _join_device(a.device, b.device),
        a.graph if a.graph is b.graph else _join_graph(a.graph, b.graph),
        a.sure and b.sure and a.device is b.device,
        a.opaque or b.opaque,
        a.scalar and b.scalar,
        a.bulk or b.bulk,
        a.loop or b.loop,
        a.pinned if a.pinned is b.pinned else _join_pin(a.pinned, b.pinned),
        _join_optional(a.element, b.element),
        *_join_items(a, b),
        a.ref if a.ref is b.ref else _join_ref(a.ref, b.ref),
        a.const if a.const == b.const else None,
        marks,
    )


def _join_device(a: Device, b: Device) -> Device:
    return Device.GPU if Device.GPU in (a, b) else Device.UNKNOWN


def _join_graph(a: Graph, b: Graph) -> Graph:
    return Graph.ATTACHED if Graph.ATTACHED in (a, b) else Graph.UNKNOWN


def _join_pin(a: Pin, b: Pin) -> Pin:
    """``pin_memory`` set on one path only (`if use_cuda:`) counts as set."""
    return Pin.PINNED if Pin.PINNED in (a, b) else Pin.UNKNOWN


def _join_ref(a: Any, b: Any) -> Any:
    """Loaders that a batch may come from gather in a set; other objects must agree."""
    from gpulint.model.heap import join_loaders  # the heap imports values

    return join_loaders(a, b)


def _join_optional(a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None:
        return b if a is None else a
    return join(a, b)


def _join_items(a: Value, b: Value) -> tuple[tuple[Value, ...] | None, tuple[str, ...] | None]:
    """Members of two dicts are united by key; of two tuples of one length joined pairwise."""
    if a.items is None or b.items is None:
        return None, None
    if a.keys is not None and b.keys is not None:
        merged = dict(zip(a.keys, a.items))
        for key, value in zip(b.keys, b.items):
            merged[key] = join(merged[key], value) if key in merged else value
        return tuple(merged.values()), tuple(merged)
    if a.keys is None and b.keys is None and len(a.items) == len(b.items):
        return tuple(join(x, y) for x, y in zip(a.items, b.items)), None
    return None, None
