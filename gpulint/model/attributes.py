"""Attribute access: on tensors, modules, instances, project modules and names from outside."""

from __future__ import annotations

import ast
import re

from gpulint.model.api import api, canonical
from gpulint.model.frame import Frame
from gpulint.model.heap import Closure, Instance
from gpulint.model.syntax import ClassInfo, FunctionInfo, ModuleInfo, dotted
from gpulint.model.values import NUMBER, TEXT, UNKNOWN, Device, Graph, Kind, Value, tensor

_HOST_FACTS = frozenset(
    [
        "shape",
        "ndim",
        "dtype",
        "is_cuda",
        "requires_grad",
        "itemsize",
        "layout",
        "is_leaf",
        "is_sparse",
        "nbytes",
        "is_quantized",
        "is_cpu",
        "is_meta",
    ]
)
_SAME = frozenset(["data", "T", "mT", "H", "real", "imag", "values", "indices"])


METADATA = re.compile(
    r"(^|_)(sizes?|shapes?|len|lengths?|num|n|name|names|ids?|paths?|width|height|info|meta|metadata|config|type|keys?|"
    r"batch_size|filename|epoch|step|iteration)(_|$)"
)
PLACED = ("parameter", "buffer")  # tensors that move with their module
DTYPE = Value(Kind.NAMESPACE, const="torch.dtype")


class Super:
    """``super()`` of an instance, from the class whose method asked."""

    def __init__(self, receiver: Value, cls: ClassInfo) -> None:
        self.receiver = receiver
        self.cls = cls


def attribute(frame: Frame, node: ast.Attribute, owner: Value, path: str | None) -> Value:
    name = node.attr
    if owner.kind is Kind.NAMESPACE:
        return _of_namespace(frame, owner, name)
    if isinstance(owner.ref, Super):
        return _of_super(frame, owner.ref, name)
    if owner.kind in (Kind.INSTANCE, Kind.MODULE, Kind.LOSS):
        return _of_instance(frame, node, owner, name, path)
    if owner.is_tensor:
        return _of_tensor(owner, name)
    if owner.kind is Kind.CLASS:
        return _of_class(frame, owner, name)
    if owner.kind is Kind.CONTAINER and owner.keys is not None and owner.items is not None and name in owner.keys:
        return owner.items[owner.keys.index(name)]
    if (
        owner.kind is Kind.CONTAINER
        and name in ("values", "indices")
        and owner.items is not None
        and len(owner.items) == 2
    ):
        return owner.items[name == "indices"]  # what topk, sort, max(dim) return
    if owner.kind is Kind.ARRAY:
        return NUMBER if name in ("shape", "ndim", "size", "dtype") else owner
    if owner.kind is Kind.LOADER:
        return _of_loader(owner, name)
    if owner.kind is Kind.OBJECT:
        return _of_object(frame, owner, name, path)
    if owner.kind in (Kind.NUMBER, Kind.TEXT, Kind.DEVICE):
        return TEXT if name == "type" else NUMBER
    known = Value(loop=owner.loop, marks=owner.marks) if owner.loop or owner.marks else UNKNOWN
    return frame.interpreter.refine(frame, known, path or name)


def _of_namespace(frame: Frame, owner: Value, name: str) -> Value:
    if isinstance(owner.ref, ModuleInfo):
        return frame.interpreter.member(owner.ref, name)
    qualified = canonical(f"{owner.const}.{name}")
    if qualified == "sys.argv":
        return Value(Kind.CONTAINER, element=TEXT)
    if qualified in ("math.pi", "math.e", "math.inf", "numpy.pi", "numpy.inf", "numpy.nan"):
        return NUMBER
    return Value(Kind.NAMESPACE, const=qualified)


def _of_super(frame: Frame, view: Super, name: str) -> Value:
    receiver = view.receiver
    start = receiver.ref.cls if isinstance(receiver.ref, Instance) else None
    mro = start.mro if start is not None else view.cls.mro
    later = mro[mro.index(view.cls) + 1 :] if view.cls in mro else []
    for cls in later:
        if name in cls.methods:
            return Value(Kind.FUNCTION, ref=Closure(cls.methods[name], {}, receiver))
    return UNKNOWN


def _of_instance(frame: Frame, node: ast.Attribute, owner: Value, name: str, path: str | None) -> Value:
    instance = owner.ref
    if isinstance(instance, Instance):
        frame.variant.seen.setdefault(instance, instance.version)
        found = instance.get(name)
        if found is not None:
            found = frame.interpreter.force(found)
            if found.const in PLACED and owner.where is not Device.UNKNOWN:
                return found._replace(device=owner.where, const=None)
            return frame.interpreter.refine(frame, found, path or name) if found.kind is Kind.UNKNOWN else found
        if instance.cls is not None:
            method = instance.cls.method(name)
            if method is not None:
                return bound(frame, method, owner, node)
            for cls in instance.cls.mro:
                if name in cls.attrs:
                    return frame.interpreter.force(cls.attrs[name])
    if owner.kind in (Kind.MODULE, Kind.LOSS):
        return _of_module(frame, owner, name, path)
    if name == "device":
        return Value(Kind.DEVICE, frame.interpreter.chosen_device(frame), sure=False)
    return frame.interpreter.refine(frame, UNKNOWN, path or name)


def bound(frame: Frame, method: FunctionInfo, owner: Value, node: ast.AST) -> Value:
    """A method as seen through an instance: bound, static, of the class, or a property's value."""
    names = {dotted(d) or "" for d in method.decorators}
    if names & {"property", "cached_property", "functools.cached_property"} or any(
        n.endswith(".setter") for n in names
    ):
        return frame.interpreter.invoke(Closure(method, {}, owner), [], {}, frame, node)
    if "staticmethod" in names:
        return Value(Kind.FUNCTION, ref=Closure(method, {}))
    if "classmethod" in names:
        return Value(Kind.FUNCTION, ref=Closure(method, {}, Value(Kind.CLASS, ref=method.cls)))
    return Value(Kind.FUNCTION, ref=Closure(method, {}, owner))


def _of_module(frame: Frame, owner: Value, name: str, path: str | None) -> Value:
    where = owner.where
    if name == "device":
        return Value(
            Kind.DEVICE,
            where if where is not Device.UNKNOWN else frame.interpreter.chosen_device(frame),
            sure=False,
        )
    if name == "dtype":
        return DTYPE
    if name in ("training", "global_step", "current_epoch", "global_rank", "local_rank"):
        return NUMBER
    if name == "module":
        return owner
    if name in ("weight", "bias"):
        return tensor(where, Graph.ATTACHED, sure=False)
    outside = owner.ref.cls is None if isinstance(owner.ref, Instance) else True
    return frame.interpreter.refine(frame, UNKNOWN, path or name) if not outside else UNKNOWN


def _of_tensor(owner: Value, name: str) -> Value:
    if name == "dtype":
        return DTYPE
    if name in _HOST_FACTS:
        return Value(Kind.NUMBER, loop=owner.loop)
    if name == "device":
        return Value(Kind.DEVICE, owner.device, sure=owner.sure)
    if name == "grad":
        return owner._replace(kind=Kind.TENSOR, graph=Graph.DETACHED, opaque=False, marks=frozenset())
    if name == "data":
        return owner._replace(kind=Kind.TENSOR, graph=Graph.DETACHED, opaque=owner.opaque)
    if name in ("grad_fn", "_version", "names"):
        return UNKNOWN
    if name in _SAME:
        return owner._replace(kind=Kind.TENSOR)
    if owner.opaque or owner.kind is Kind.UNKNOWN:
        if METADATA.search(name):
            return Value(loop=owner.loop)
        is_loss = "loss" in name and "losses" not in name
        return owner._replace(kind=Kind.TENSOR, opaque=not is_loss, scalar=is_loss)
    return Value(marks=owner.marks, loop=owner.loop)


def _of_class(frame: Frame, owner: Value, name: str) -> Value:
    cls = owner.ref
    if not isinstance(cls, ClassInfo):
        return UNKNOWN
    for base in cls.mro:
        if name in base.methods:
            method = base.methods[name]
            decorators = {dotted(d) or "" for d in method.decorators}
            receiver = owner if "classmethod" in decorators else None
            return Value(Kind.FUNCTION, ref=Closure(method, {}, receiver))
        if name in base.attrs:
            return frame.interpreter.force(base.attrs[name])
    return UNKNOWN


def _of_loader(owner: Value, name: str) -> Value:
    if name == "dataset" and isinstance(owner.ref, frozenset) and len(owner.ref) == 1:
        dataset: Value = next(iter(owner.ref)).dataset
        return dataset
    return NUMBER if name in ("batch_size", "num_workers") else UNKNOWN


def _of_object(frame: Frame, owner: Value, name: str, path: str | None) -> Value:
    if isinstance(owner.ref, Instance):
        found = owner.ref.get(name)
        if found is not None:
            return found
    if name == "device":
        if api().has("classes.accelerator", owner.const or ""):
            return Value(Kind.DEVICE, Device.GPU)
        return Value(Kind.DEVICE, frame.interpreter.chosen_device(frame), sure=False)
    return frame.interpreter.refine(frame, UNKNOWN, path or name)
