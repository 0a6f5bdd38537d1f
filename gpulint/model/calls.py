"""Calls: arguments, then whoever answers: project code, torch's table, or a method of a known kind."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from gpulint.model.api import api, canonical
from gpulint.model.attributes import attribute
from gpulint.model.builtin_calls import call_builtin
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Closure
from gpulint.model.methods import call_method
from gpulint.model.outside import call_outside
from gpulint.model.sites import SiteKind
from gpulint.model.syntax import dotted
from gpulint.model.values import UNKNOWN, Device, Graph, Kind, Value


@dataclass(slots=True)
class Arguments:
    """Evaluated arguments. ``exact`` is False where a ``*`` or ``**`` could not be seen through."""

    positional: list[Value] = field(default_factory=list)
    keywords: dict[str, Value] = field(default_factory=dict)
    exact: bool = True

    @property
    def all(self) -> list[Value]:
        return [*self.positional, *self.keywords.values()]

    def get(self, position: int, name: str) -> Value | None:
        if name in self.keywords:
            return self.keywords[name]
        return self.positional[position] if 0 <= position < len(self.positional) else None


def arguments(frame: Frame, node: ast.Call, env: Env) -> Arguments:
    result = Arguments()
    for arg in node.args:
        if isinstance(arg, ast.Starred):
            value = frame.evaluate(arg.value, env)
            if value.items is not None and value.keys is None:
                result.positional.extend(value.items)
            else:
                result.exact = False
                result.positional.append(frame.interpreter.element_of(value))
        else:
            result.positional.append(frame.evaluate(arg, env))
    for keyword in node.keywords:
        value = frame.evaluate(keyword.value, env)
        if keyword.arg is not None:
            result.keywords[keyword.arg] = value
        elif value.kind is Kind.CONTAINER and value.keys is not None and value.items is not None:
            result.keywords.update(zip(value.keys, value.items))
        else:
            result.exact = False
            if value.is_tensor or (value.element is not None and value.element.is_tensor):
                result.keywords["**"] = frame.interpreter.element_of(value)
    return result


def call(frame: Frame, node: ast.Call, env: Env) -> Value:
    receiver = UNKNOWN
    func = node.func
    if isinstance(func, ast.Attribute):
        receiver = frame.evaluate(func.value, env)
        target = _callable_attribute(frame, func, receiver, env)
    else:
        target = frame.evaluate(func, env)
    args = arguments(frame, node, env)
    name = _name(func, target)
    for value in args.all:
        frame.interpreter.consume(value, "call", frame, node, name)
    site = frame.record(
        SiteKind.CALL,
        node,
        receiver=receiver,
        func=target,
        name=name,
        args=tuple(args.positional),
        keywords=args.keywords,
    )
    if isinstance(func, ast.Attribute) and target.kind is Kind.UNKNOWN and not target.on_gpu:
        result = call_method(frame, node, site, receiver, func.attr, args, env)
    else:
        result = call_value(frame, node, target, args, env, name)
    site.result = result
    return result


def _name(func: ast.expr, target: Value) -> str:
    """A qualified name for a function from outside, else the last name of the callee."""
    if target.kind in (Kind.NAMESPACE, Kind.OBJECT) and isinstance(target.const, str):
        return target.const
    if isinstance(func, ast.Attribute):
        return func.attr
    return func.id if isinstance(func, ast.Name) else ""


def _callable_attribute(frame: Frame, func: ast.Attribute, receiver: Value, env: Env) -> Value:
    path = dotted(func)
    if path is not None and path in env and env[path].kind is not Kind.UNKNOWN:
        return env[path]
    if receiver.kind in (Kind.NAMESPACE, Kind.CLASS, Kind.INSTANCE, Kind.MODULE, Kind.LOSS) or hasattr(
        receiver.ref, "receiver"
    ):
        value = attribute(frame, func, receiver, path)
        return value if value.kind in _CALLABLE else UNKNOWN
    if receiver.kind is Kind.OBJECT and receiver.ref is not None:
        value = attribute(frame, func, receiver, path)
        return value if value.kind in _CALLABLE else UNKNOWN
    if receiver.kind is Kind.UNKNOWN and not receiver.on_gpu and path is not None:
        value = frame.interpreter.refine(frame, UNKNOWN, path)
        return value if value.kind in (Kind.MODULE, Kind.LOSS) else UNKNOWN
    return UNKNOWN


_CALLABLE = (Kind.FUNCTION, Kind.CLASS, Kind.NAMESPACE, Kind.MODULE, Kind.LOSS, Kind.INSTANCE, Kind.OBJECT)


def call_value(frame: Frame, node: ast.Call, target: Value, args: Arguments, env: Env, name: str) -> Value:
    if target.kind is Kind.FUNCTION and isinstance(target.ref, Closure):
        return frame.interpreter.invoke(target.ref, args.positional, args.keywords, frame, node, exact=args.exact)
    if target.kind is Kind.CLASS:
        return frame.interpreter.instantiate(target.ref, args, frame, node)
    if target.kind is Kind.NAMESPACE:
        qualified = canonical(str(target.const))
        if qualified.startswith("builtins."):
            return call_builtin(frame, node, qualified[9:], args, env)
        return call_outside(frame, node, qualified, args, env)
    if target.kind in (Kind.MODULE, Kind.LOSS):
        return call_module(frame, node, target, args)
    if target.kind is Kind.INSTANCE:
        return frame.interpreter.special_method(frame, target, "__call__", args.positional, node, args.keywords)
    if target.kind is Kind.OBJECT:
        return _call_object(frame, node, target, args)
    if target.on_gpu:
        return call_module(frame, node, target, args)
    return _call_unknown(frame, node, args, name, dotted(node.func) or "")


def call_module(frame: Frame, node: ast.Call, target: Value, args: Arguments) -> Value:
    """A forward pass: of a project class its ``forward``, else "tensors where the inputs are"."""
    frame.interpreter.forward_pass(frame, node, target, args)
    return frame.interpreter.remember_evaluation(frame, node, _module_call(frame, node, target, args))


def _module_call(frame: Frame, node: ast.Call, target: Value, args: Arguments) -> Value:
    if target.kind is Kind.MODULE:
        inner = frame.interpreter.forward_of(target)
        if inner is not None:
            result = frame.interpreter.invoke(inner, args.positional, args.keywords, frame, node, exact=args.exact)
            if result.kind is not Kind.UNKNOWN:
                return _bulky(result)
    return module_result(frame, target, args)


def _bulky(value: Value) -> Value:
    """A model's output, or each of its members, unless it is a single number."""
    if value.items is not None or value.element is not None:
        return value._replace(
            items=tuple(_bulky(v) for v in value.items) if value.items is not None else None,
            element=_bulky(value.element) if value.element is not None else None,
        )
    return value._replace(bulk=True) if value.kind is Kind.TENSOR and not value.scalar else value


def module_result(frame: Frame, target: Value, args: Arguments) -> Value:
    """What a module that cannot be seen into gives."""
    flat = [v for value in args.all for v in frame.interpreter.flatten(value)]
    inputs = [v for v in flat if v.is_tensor]
    on_gpu = [v for v in inputs if v.on_gpu]
    where = target.where
    sure = getattr(target.ref, "sure", True) and target.sure
    device = where
    if on_gpu:
        device, sure = Device.GPU, any(v.sure for v in on_gpu)
    elif (where is Device.HOST and inputs and all(v.device is Device.UNKNOWN for v in inputs)) or (
        where is Device.UNKNOWN and inputs and all(v.device is Device.HOST for v in inputs)
    ):
        device = Device.UNKNOWN
    frozen = bool(getattr(target.ref, "frozen", False)) and not any(v.attached for v in inputs)
    graph = Graph.DETACHED if frame.grad is False or frozen else Graph.ATTACHED if frame.grad else Graph.UNKNOWN
    loop = next((v.loop for v in flat if v.loop is not None), None)
    marks = frozenset().union(*(v.marks for v in inputs)) if inputs else frozenset()
    loss = target.kind is Kind.LOSS
    return Value(
        Kind.TENSOR,
        device,
        graph,
        sure=sure,
        opaque=not loss,
        scalar=loss,
        bulk=not loss,
        loop=loop,
        marks=marks,
    )


def _call_object(frame: Frame, node: ast.Call, target: Value, args: Arguments) -> Value:
    """An instance of an outside class is called: metrics and transforms give tensors for tensors."""
    name = str(target.const)
    tensors = [v for v in args.all if v.is_tensor]
    if tensors and (name.startswith(("torchmetrics.", "torchvision.", "kornia.")) or api().takes_tensors(name)):
        return module_result(frame, target, args)._replace(opaque=False)
    kind = frame.interpreter.convention(dotted(node.func) or "")
    if tensors and (kind in (Kind.MODULE, Kind.LOSS) or _MODEL_CLASS.search(name.rpartition(".")[2])):
        loss = kind is Kind.LOSS or name.endswith("Loss")
        module = Value(Kind.LOSS if loss else Kind.MODULE, target.device, sure=False, ref=target.ref)
        return call_module(frame, node, module, args)
    return Value(
        marks=frozenset().union(*(v.marks for v in args.all)) if args.positional or args.keywords else frozenset()
    )


_MODEL_CLASS = re.compile(
    r"(Net|Model|Module|Former|Encoder|Decoder|Unet|UNet\w*|Transformer|Loss|Classifier|Discriminator|Generator|Backbone)\d*$"
    r"|^(ResNet|UNet|ViT|GPT|Bert)"
)


def _call_unknown(frame: Frame, node: ast.Call, args: Arguments, name: str, path: str) -> Value:
    """A callee that cannot be seen: its name may say that it is a module, a loss, a move to the GPU."""
    kind = frame.interpreter.convention(path)
    tensors = [v for value in args.all for v in frame.interpreter.flatten(value) if v.is_tensor]
    if kind in (Kind.MODULE, Kind.LOSS) and tensors:
        return call_module(frame, node, Value(kind, sure=False), args)
    if name == path.rpartition(".")[2] and "loss" in name.lower() and tensors and not name[:1].isupper():
        return call_module(frame, node, Value(Kind.LOSS, sure=False), args)
    moved = frame.interpreter.moved_by_name(frame, name, args)
    if moved is not None:
        return moved
    loop = next((v.loop for v in args.all if v.loop is not None), None)
    marks = frozenset().union(*(v.marks for v in args.all)) if args.all else frozenset()
    return Value(loop=loop or frame.made_here, marks=marks)
