"""Calls of functions and classes from outside the project, by the table in `torch_api.toml`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.api import api
from gpulint.model.combine import arithmetic, device_argument
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Closure
from gpulint.model.sites import SiteKind
from gpulint.model.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Pin,
    Value,
    container,
    sequence,
    tensor,
)

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments


def call_outside(frame: Frame, node: ast.Call, name: str, args: Arguments, env: Env) -> Value:
    """The result of calling a qualified name."""
    table = api()
    first = args.positional[0] if args.positional else args.keywords.get("input", UNKNOWN)
    created = _create(frame, node, name, args, first)
    if created is not None:
        return created
    made = _construct(frame, node, name, args, first)
    if made is not None:
        return made
    if name.startswith(("torch", "math.")) and (result := _torch(frame, node, name, args, first)) is not None:
        return result
    if name.startswith("numpy."):
        return _numpy(frame, node, name, args)
    if name.startswith("math."):
        return frame.interpreter.fetched(frame, node, first, NUMBER)
    if table.has("sinks.all", name) or table.has("sinks.loggers", name):
        sink(frame, node, args)
        return Value(Kind.OBJECT, const=name) if name.endswith("getLogger") else NONE
    return _other(frame, node, name, args, first)


def sink(frame: Frame, node: ast.Call, args: Arguments) -> None:
    """The arguments are formatted or logged: GPU tensors among them are fetched."""
    nodes = [*node.args, *(k.value for k in node.keywords)]
    values = [*args.positional, *args.keywords.values()]
    for arg, value in zip(nodes, values):
        for part, inner in _parts(frame, arg, value):
            if inner.is_tensor and not inner.opaque:
                frame.record(SiteKind.FORMAT, part, receiver=inner, name="log")
            frame.interpreter.consume(inner, "format", frame, part)


def _parts(frame: Frame, node: ast.expr, value: Value) -> list[tuple[ast.expr, Value]]:
    """A logged dict literal is logged member by member."""
    if isinstance(node, ast.Dict) and value.items is not None and len(value.items) == len(node.values):
        return list(zip(node.values, value.items))
    return [(node, value)]


def _create(frame: Frame, node: ast.Call, name: str, args: Arguments, first: Value) -> Value | None:
    table = api()
    made = frame.made_here
    allocated = frozenset({frame.interpreter.mark("alloc", node, frame.module)})
    graph = Graph.ATTACHED if args.keywords.get("requires_grad", NONE).const is True else Graph.DETACHED
    if any(table.has(f"create.{kind}", name) for kind in ("constant", "random", "data")):
        given = args.keywords.get("device")
        device, sure = device_argument(frame, given) if given is not None else (frame.interpreter.default_device, True)
        pin = Pin.PINNED if args.keywords.get("pin_memory", NONE).const is True else Pin.PAGEABLE
        if table.has("create.data", name):
            if given is None and first.is_tensor:
                device, sure = first.device, first.sure
            elif first.is_tensor and first.on_gpu and device is Device.HOST:
                frame.record(SiteKind.CONVERT, node, receiver=first, name=name)
            inner = first.element if first.kind is Kind.CONTAINER and first.element is not None else first
            loop = inner.loop if inner.loop is not None else made
            if inner.is_tensor and inner.on_gpu:
                frame.record(SiteKind.CONVERT, node, receiver=inner, name=name)
            literal = not first.marks and (
                first.kind is Kind.NUMBER or (inner.kind is Kind.NUMBER and first.items is not None)
            )
            marks = allocated if literal and device is Device.HOST else first.marks
            return tensor(
                device, graph, sure=sure, loop=loop, pinned=pin, scalar=first.kind is Kind.NUMBER, marks=marks
            )
        shape_loop = next((v.loop for v in args.positional if v.loop is not None and v.kind is Kind.NUMBER), None)
        scalar = (
            bool(args.positional) and args.positional[0].kind is Kind.CONTAINER and not args.positional[0].element
        ) or (len(args.positional) == 1 and args.positional[0].const == 1)
        marks = (
            allocated if device is Device.HOST and pin is Pin.PAGEABLE and "out" not in args.keywords else frozenset()
        )
        return tensor(device, graph, sure=sure, loop=shape_loop or made, pinned=pin, scalar=scalar, marks=marks)
    if table.has("create.legacy", name):
        filled = not args.positional or all(v.kind is Kind.NUMBER for v in args.positional)
        return tensor(Device.HOST, loop=made, pinned=Pin.PAGEABLE, marks=allocated if filled else first.marks)
    if table.has("create.legacy_gpu", name):
        return tensor(Device.GPU, loop=made)
    if table.has("create.shared", name):
        return tensor(Device.HOST, loop=first.loop or made, pinned=Pin.PAGEABLE, marks=first.marks)
    if table.has("create.like", name):
        device, sure = first.device, first.sure
        if "device" in args.keywords:
            device, sure = device_argument(frame, args.keywords["device"])
        return tensor(device, graph, sure=sure, loop=first.loop or made, marks=first.marks)
    return None


def _construct(frame: Frame, node: ast.Call, name: str, args: Arguments, first: Value) -> Value | None:
    table = api()
    if table.has("classes.loader", name) or table.has("classes.foreign_loader", name):
        return frame.interpreter.new_loader(frame, node, args, foreign=not table.has("classes.loader", name))
    if table.has("classes.optimizer", name):
        return Value(Kind.OPTIMIZER)
    if table.has("classes.scaler", name):
        return Value(Kind.SCALER, const=name)
    if table.has("classes.wrapper", name):
        if first.kind is Kind.FUNCTION or not args.positional:
            return first if args.positional else UNKNOWN
        return frame.interpreter.wrap(frame, node, name, first)
    if table.has("classes.parameter", name):
        made = first if first.is_tensor else Value(Kind.TENSOR, Device.HOST)
        return made._replace(graph=Graph.ATTACHED, loop=None, const="parameter", marks=frozenset())
    if table.has("classes.loss", name):
        return Value(Kind.LOSS, ref=frame.interpreter.outside_module(frame, node))
    if table.is_module_class(name):
        instance = frame.interpreter.outside_module(frame, node)
        members = [m for v in args.all for m in frame.interpreter.flatten(v) if m.kind in (Kind.MODULE, Kind.LOSS)]
        instance.members = members
        return Value(Kind.MODULE, ref=instance, const=name if table.has("classes.module_list", name) else None)
    if name in ("argparse.ArgumentParser", "configargparse.ArgumentParser"):
        return Value(Kind.OBJECT, const=name, ref=frame.interpreter.outside_object(frame, node))
    if name in (
        "collections.defaultdict",
        "collections.deque",
        "collections.OrderedDict",
        "collections.Counter",
    ):
        return _collection(frame, node, name, args)
    if name == "functools.partial":
        return _partial(args)
    return None


def _collection(frame: Frame, node: ast.Call, name: str, args: Arguments) -> Value:
    if name.endswith("deque"):
        bounded = "maxlen" in args.keywords or len(args.positional) > 1
        return Value(Kind.CONTAINER, element=UNKNOWN if bounded else None, const="bounded" if bounded else None)
    if name.endswith("defaultdict"):
        factory = args.positional[0] if args.positional else UNKNOWN
        if factory.kind is Kind.CLASS:
            return container(frame.interpreter.instantiate(factory.ref, type(args)(), frame, node))
        if factory.kind is Kind.FUNCTION and isinstance(factory.ref, Closure):
            return container(frame.interpreter.invoke(factory.ref, [], {}, frame, node))
        kinds = {"builtins.list": Value(Kind.CONTAINER), "builtins.int": NUMBER, "builtins.float": NUMBER}
        return container(kinds.get(str(factory.const)))
    if args.keywords and args.exact:
        return Value(
            Kind.CONTAINER,
            keys=tuple(args.keywords),
            items=tuple(args.keywords.values()),
            element=frame.interpreter.join_all(tuple(args.keywords.values())),
        )
    return (
        args.positional[0] if args.positional and args.positional[0].kind is Kind.CONTAINER else Value(Kind.CONTAINER)
    )


def _partial(args: Arguments) -> Value:
    first = args.positional[0] if args.positional else UNKNOWN
    if first.kind is Kind.FUNCTION and isinstance(first.ref, Closure):
        closure = first.ref
        return Value(
            Kind.FUNCTION,
            ref=Closure(
                closure.info,
                closure.env,
                closure.receiver,
                (*closure.partial, *args.positional[1:]),
                closure.grad,
            ),
        )
    return first


def _torch(frame: Frame, node: ast.Call, name: str, args: Arguments, first: Value) -> Value | None:
    table = api()
    if table.has("returns.device", name):
        device, sure = device_argument(frame, first)
        return Value(Kind.DEVICE, device, sure=sure)
    if table.has("returns.gpu_device", name):
        return Value(Kind.DEVICE, Device.GPU)
    if table.has("returns.number", name):
        return NUMBER
    if table.has("returns.nothing", name):
        return NONE
    if table.has("returns.norm", name):
        loop = frame.made_here
        device = frame.interpreter.device_of(frame, first)
        return tensor(device, Graph.DETACHED, sure=device is Device.GPU and first.sure, scalar=True, loop=loop)
    if name in ("torch.autograd.backward", "torch.autograd.grad"):
        frame.interpreter.backward(frame, node, first, name)
        return container(first._replace(kind=Kind.TENSOR, scalar=False)) if name.endswith("grad") else NONE
    if table.has("returns.bool", name):
        inner = arithmetic(frame, [v for v in args.positional if v.is_tensor] or [UNKNOWN], detached=True)
        if inner.is_tensor:
            frame.record(SiteKind.TEST, node, receiver=inner, name=name)
        return NUMBER
    if name == "torch.load":
        return Value(marks=first.marks)
    if not table.takes_tensors(name):
        return None
    flat = [v for value in args.all for v in frame.interpreter.flatten(value)]
    tensors = [v for v in flat if v.is_tensor]
    if not tensors:
        kept = [v for v in flat if v.kind is Kind.UNKNOWN and (v.loop or v.marks)]
        loop = kept[0].loop if kept else frame.made_here
        marks = frozenset().union(*(v.marks for v in kept)) if kept else frozenset()
        return tensor(
            Device.UNKNOWN,
            Graph.DETACHED if frame.grad is False else Graph.UNKNOWN,
            sure=False,
            loop=loop,
            marks=marks,
        )
    result = arithmetic(frame, tensors, detached=table.has("returns.detached", name))
    if table.has("returns.loss", name):
        reduced = args.keywords.get("reduction", NONE).const != "none"
        return result._replace(scalar=reduced, bulk=result.bulk and not reduced)
    reduces = (
        table.has("returns.scalar", name) and len(args.positional) == 1 and not {"dim", "axis"} & set(args.keywords)
    )
    result = result._replace(
        bulk=result.bulk and not table.has("returns.scalar", name),
        scalar=reduces or (result.scalar and name not in ("torch.stack", "torch.cat")),
    )
    if table.has("returns.pair", name) or (
        name in ("torch.max", "torch.min") and len(args.positional) > 1 and not args.positional[1].is_tensor
    ):
        return sequence((result, result._replace(graph=Graph.DETACHED)))
    return container(result) if table.has("returns.list", name) else result


def _numpy(frame: Frame, node: ast.Call, name: str, args: Arguments) -> Value:
    flat = [v for value in args.all for v in frame.interpreter.flatten(value)]
    for value in flat:
        if value.is_tensor and not value.opaque:
            frame.record(SiteKind.CONVERT, node, receiver=value, name=name)
            frame.interpreter.consume(value, "host", frame, node)
            mark = frame.interpreter.mark("fetch", node, frame.module)
            return Value(Kind.ARRAY, marks=value.marks | {mark}, loop=value.loop)
    marks = frozenset().union(*(v.marks for v in flat)) if flat else frozenset()
    loop = next((v.loop for v in flat if v.loop is not None), None)
    if name in ("numpy.float32", "numpy.float64", "numpy.int64", "numpy.prod"):
        return Value(Kind.NUMBER, marks=marks)
    if name.startswith("numpy.random.default_rng"):
        return Value(Kind.ARRAY)
    return Value(Kind.ARRAY, marks=marks, loop=loop)


_WRAPPERS = (
    "tqdm.",
    "rich.progress.",
    "alive_progress.",
    "fastprogress.",
    "itertools.islice",
    "itertools.cycle",
    "more_itertools.",
    "tqdm",
    "itertools.chain",
    "progressbar.",
)


def _other(frame: Frame, node: ast.Call, name: str, args: Arguments, first: Value) -> Value:
    """Anything else: wrappers of iterables pass through, classes give objects, the rest is unknown."""
    if name.startswith(_WRAPPERS) and args.positional:
        return first
    if name in ("os.environ.get", "os.getenv", "input") or name.startswith(("os.path.", "time.")):
        return NUMBER if name.startswith("time.") else TEXT
    if name.startswith("dataclasses."):
        return first
    if name in ("torch.multiprocessing.spawn", "torch.multiprocessing.start_processes"):
        given = args.get(1, "args") or UNKNOWN
        frame.interpreter._started(
            frame, node, first if args.positional else args.keywords.get("fn", UNKNOWN), given, [NUMBER]
        )
        return NONE
    if api().has("classes.iterable_dataset", name) or api().has("classes.dataset_wrapper", name):
        part = Value(Kind.OBJECT, const=name, ref=first.ref, element=first if first.kind is not Kind.UNKNOWN else None)
        return container(part) if name.endswith("random_split") else part
    moved = frame.interpreter.moved_by_name(frame, name.rpartition(".")[2], args)
    if moved is not None:
        return moved
    last = name.rpartition(".")[2]
    if last[:1].isupper():
        return frame.interpreter.outside_instance(frame, node, name, args)
    marks = frozenset().union(*(v.marks for v in args.all)) if args.all else frozenset()
    loop = next((v.loop for v in args.all if v.loop is not None), None)
    if "loss" in last.lower():
        tensors = [v for v in args.all if v.is_tensor]
        if tensors:
            return arithmetic(frame, tensors)._replace(sure=False, scalar=True)
    return Value(loop=loop or frame.made_here, marks=marks)
