"""Method calls on values whose class is not in the project: tensors, modules, containers, and the rest."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.api import api
from gpulint.model.combine import arithmetic, device_argument
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Instance
from gpulint.model.keep import filled, grow, write_back
from gpulint.model.sites import Site
from gpulint.model.syntax import dotted
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
    join,
    join_all,
    sequence,
)

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments


def call_method(
    frame: Frame, node: ast.Call, site: Site, receiver: Value, name: str, args: Arguments, env: Env
) -> Value:
    assert isinstance(node.func, ast.Attribute)
    target = node.func.value
    path = dotted(target)
    if name == "backward":
        site.name = "backward"
        frame.interpreter.backward(
            frame,
            node,
            receiver
            if (receiver.kind is not Kind.OBJECT and receiver.kind is not Kind.MODULE) or not args.positional
            else args.positional[0],
            name,
        )
        return NONE
    if api().names("sinks.methods").__contains__(name) or (
        name in api().names("sinks.log_methods") and _is_logger(receiver, path)
    ):
        from gpulint.model.outside import sink

        sink(frame, node, args)
        return receiver if receiver.kind in (Kind.LOADER, Kind.CONTAINER) else NONE
    if receiver.is_tensor:
        if name.endswith("_") and any(v.is_tensor for v in args.all):
            filled(frame, target, receiver, env)
        return _tensor(frame, node, receiver, name, args)
    handler = {
        Kind.MODULE: _module,
        Kind.LOSS: _module,
        Kind.CONTAINER: _container,
        Kind.OPTIMIZER: _optimizer,
        Kind.SCALER: _scaler,
        Kind.ARRAY: _array,
        Kind.TEXT: _text,
        Kind.OBJECT: _object,
        Kind.NUMBER: _number,
        Kind.LOADER: _loader,
    }.get(receiver.kind, _unknown)
    result = handler(frame, node, receiver, name, args, env)
    frame.forget(path, env) if receiver.kind is Kind.INSTANCE else None
    return result


def _is_logger(receiver: Value, path: str | None) -> bool:
    if receiver.kind is Kind.OBJECT:
        return str(receiver.const).startswith("logging.")
    last = (path or "").rpartition(".")[2].lower()
    return receiver.kind is Kind.UNKNOWN and last in ("log", "logger", "_logger", "_log", "logging")


# ---- tensors -------------------------------------------------------------------------------------------


def _tensor(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value:
    table = api()
    if name in table.names("methods.item"):
        number = container(NUMBER) if name == "tolist" else NUMBER
        return frame.interpreter.fetched(frame, node, receiver, number)
    if name in table.names("methods.to_host"):
        return to_host(frame, node, receiver)
    if name in table.names("methods.array"):
        return frame.interpreter.fetched(
            frame, node, receiver, Value(Kind.ARRAY, loop=receiver.loop, scalar=receiver.scalar)
        )
    if name in table.names("methods.to_gpu"):
        return to_gpu(frame, node, receiver, sure=True)
    if name == "to" or (name == "type" and args.positional):
        return _to(frame, node, receiver, args)
    if name in ("type_as", "to_device"):
        other = args.positional[0] if args.positional else UNKNOWN
        return to_gpu(frame, node, receiver, other.sure) if other.on_gpu else receiver._replace(ref=None)
    if name in table.names("methods.number"):
        return (
            Value(Kind.NUMBER, loop=receiver.loop)
            if name != "size" or args.positional
            else container(Value(Kind.NUMBER, loop=receiver.loop))
        )
    if name in ("items", "values", "keys") and receiver.opaque:
        inner = receiver if name == "values" else sequence((TEXT, receiver)) if name == "items" else TEXT
        return container(inner)
    if name in ("copy_", "set_"):
        return receiver
    if name in table.names("methods.detach"):
        return receiver._replace(kind=Kind.TENSOR, graph=Graph.DETACHED)
    if name == "requires_grad_":
        return receiver._replace(
            kind=Kind.TENSOR,
            graph=Graph.ATTACHED if args.get(0, "requires_grad") != Value(Kind.NUMBER, const=False) else receiver.graph,
        )
    if name in table.names("methods.view"):
        base = (
            receiver._replace(kind=Kind.TENSOR, pinned=Pin.PINNED)
            if name == "pin_memory"
            else receiver._replace(kind=Kind.TENSOR)
        )
        return (
            container(base)
            if name in table.names("methods.list")
            else base._replace(scalar=base.scalar and name in ("view", "reshape", "squeeze", "detach"))
        )
    if name in table.names("methods.bool"):
        return frame.interpreter.fetched(frame, node, receiver, NUMBER)
    if receiver.opaque and name in ("get", "pop"):
        return receiver
    result = arithmetic(
        frame,
        [receiver, *(v for v in args.all if v.is_tensor)],
        detached=name in table.names("methods.detached"),
    )
    if receiver.kind is Kind.UNKNOWN and not result.is_tensor:
        result = receiver
    if name.startswith("new_"):
        return result._replace(loop=result.loop or frame.made_here, device=receiver.device)
    reduces = (
        name in table.names("methods.scalar")
        and not args.positional
        and not {"dim", "axis", "keepdim"} & set(args.keywords)
    )
    scalar = (
        reduces
        or (result.scalar and receiver.scalar)
        or (
            name in ("norm",)
            and args.positional
            and args.positional[0].kind is Kind.NUMBER
            and len(args.positional) == 1
        )
    )
    reduced = name in table.names("methods.scalar") or name in ("argmax", "argmin", "amax", "amin")
    result = result._replace(scalar=bool(scalar), bulk=result.bulk and not reduced)
    by_dim = name in ("max", "min", "median") and (
        (args.positional and args.positional[0].kind is Kind.NUMBER) or {"dim"} & set(args.keywords)
    )
    if name in table.names("methods.pair") or by_dim:
        return sequence((result, result._replace(graph=Graph.DETACHED)))
    return container(result) if name in table.names("methods.list") else result


def to_host(frame: Frame, node: ast.Call, receiver: Value) -> Value:
    copied = receiver._replace(
        kind=Kind.TENSOR, device=Device.HOST, sure=True, pinned=Pin.PAGEABLE, ref=None, opaque=receiver.opaque
    )
    return frame.interpreter.fetched(frame, node, receiver, copied) if receiver.device is not Device.HOST else copied


def to_gpu(frame: Frame, node: ast.Call, receiver: Value, sure: bool) -> Value:
    frame.interpreter.moved(frame, node, receiver, sure)
    return receiver._replace(
        kind=Kind.TENSOR if receiver.kind is Kind.TENSOR else receiver.kind,
        device=Device.GPU,
        sure=sure,
        pinned=Pin.UNKNOWN,
        ref=None if receiver.kind is Kind.TENSOR else receiver.ref,
        loop=receiver.loop if receiver.loop is not None else frame.made_here,
    )


def _destination(frame: Frame, node: ast.Call, args: Arguments) -> tuple[Device, bool] | None:
    """Where a ``.to(...)`` moves to; None where it only changes the type."""
    value = args.keywords.get("device") or (args.positional[0] if args.positional else args.keywords.get("other"))
    if value is None or value.kind is Kind.NONE or (value.kind is Kind.NAMESPACE and "device" not in args.keywords):
        return None
    device, sure = device_argument(frame, value)
    if device is Device.UNKNOWN and value.kind is Kind.UNKNOWN:
        expression = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "device"), None)
        path = dotted(expression) if expression is not None else None
        last = (path or "").rpartition(".")[2]
        if last in api().names("conventions.device") or "device" in last.lower():
            return frame.interpreter.chosen_device(frame), False
        if "dtype" in last or last in ("float", "half", "long") or path is None:
            return None
        return Device.UNKNOWN, False
    return device, sure


def _to(frame: Frame, node: ast.Call, receiver: Value, args: Arguments) -> Value:
    where = _destination(frame, node, args)
    if where is None:
        return receiver._replace(kind=receiver.kind, ref=receiver.ref if not args.positional else None)
    device, sure = where
    if device is Device.HOST:
        if "non_blocking" in args.keywords:
            return receiver._replace(kind=Kind.TENSOR, device=Device.HOST, sure=True, ref=None, pinned=Pin.UNKNOWN)
        return to_host(frame, node, receiver)
    if device is Device.GPU:
        return to_gpu(frame, node, receiver, sure)
    return receiver._replace(device=Device.UNKNOWN, sure=False, ref=None)


# ---- modules, optimizers, scalers ------------------------------------------------------------------------


def _module(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    instance = receiver.ref
    if name in ("to", "cuda", "to_empty"):
        where = (Device.GPU, True) if name == "cuda" else _destination(frame, node, args)
        if where is not None and isinstance(instance, Instance):
            if where[0] is Device.GPU:
                instance.move(Device.GPU, where[1])
            elif where[0] is Device.UNKNOWN and instance.device is Device.HOST:
                instance.move(Device.UNKNOWN, False)
        elif where is not None and where[0] is Device.GPU:
            return receiver._replace(device=Device.GPU, sure=where[1])
        return receiver
    if name in (
        "eval",
        "train",
        "requires_grad_",
        "half",
        "float",
        "double",
        "bfloat16",
        "cpu",
        "apply",
        "share_memory",
        "zero_grad",
        "requires_grad",
        "compile",
        "register_forward_hook",
    ):
        if name in ("eval", "train"):
            frame.variant.modes.add(
                (
                    node.lineno,
                    "eval" if name == "eval" or (args.positional and args.positional[0].const is False) else "train",
                )
            )
        if name == "eval" or (name == "train" and args.positional and args.positional[0].const is False):
            frame.variant.eval_mode = True
        if (
            name == "requires_grad_"
            and args.positional
            and args.positional[0].const is False
            and isinstance(instance, Instance)
        ):
            instance.frozen = True
        return receiver
    if name in ("parameters", "buffers"):
        return container(Value(Kind.TENSOR, receiver.where, Graph.ATTACHED, sure=receiver.sure))
    if name in ("named_parameters", "named_buffers"):
        return container(sequence((TEXT, Value(Kind.TENSOR, receiver.where, Graph.ATTACHED, sure=receiver.sure))))
    if name in ("modules", "children"):
        return container(Value(Kind.MODULE, receiver.device, sure=False))
    if name in ("named_modules", "named_children"):
        return container(sequence((TEXT, Value(Kind.MODULE, receiver.device, sure=False))))
    if name in ("state_dict",):
        return container(Value(Kind.TENSOR, receiver.where, Graph.DETACHED, sure=receiver.sure))
    if name in ("items", "values", "keys", "append", "extend", "insert", "get", "pop"):
        return _module_list(frame, receiver, name, args)
    if name in ("step",):  # deepspeed engines step themselves
        frame.interpreter.event(frame, node, "step")
        return NONE
    if name in (
        "log",
        "log_dict",
        "save_hyperparameters",
        "register_buffer",
        "register_parameter",
        "add_module",
        "load_state_dict",
        "print",
        "toggle_optimizer",
        "untoggle_optimizer",
    ):
        return _registered(frame, receiver, name, args)
    if name == "manual_backward":
        frame.interpreter.backward(frame, node, args.positional[0] if args.positional else UNKNOWN, name)
        return NONE
    if name in ("init_hidden", "init_state", "get_initial_state", "initialize_hidden"):
        return Value(Kind.TENSOR, receiver.where, Graph.DETACHED, sure=False, opaque=True)
    if name == "optimizers":
        return Value(Kind.OPTIMIZER)
    moved = frame.interpreter.moved_by_name(frame, name, args)
    if moved is not None:
        return moved
    inputs = [v for value in args.all for v in frame.interpreter.flatten(value) if v.is_tensor]
    if inputs and not name.startswith(("load", "save", "get_input", "register", "set_")):
        from gpulint.model.calls import call_module

        if isinstance(instance, Instance) and instance.cls is not None:
            return Value(loop=inputs[0].loop, marks=frozenset().union(*(v.marks for v in inputs)))
        result = call_module(frame, node, receiver, args)
        return result._replace(opaque=True, sure=result.sure and "loss" not in name)
    return UNKNOWN


def _module_list(frame: Frame, receiver: Value, name: str, args: Arguments) -> Value:
    instance = receiver.ref
    if name in ("append", "insert", "extend") and isinstance(instance, Instance):
        instance.members = [
            *instance.members,
            *(m for v in args.all for m in frame.interpreter.flatten(v) if m.kind is Kind.MODULE),
        ]
        return NONE
    inner = frame.interpreter.element_of(receiver)
    return container(sequence((TEXT, inner)) if name == "items" else TEXT if name == "keys" else inner)


def _registered(frame: Frame, receiver: Value, name: str, args: Arguments) -> Value:
    if name in ("register_buffer", "register_parameter", "add_module") and len(args.positional) > 1:
        label, value = args.positional[0].const, args.positional[1]
        if isinstance(label, str) and isinstance(receiver.ref, Instance) and value.kind is not Kind.NONE:
            receiver.ref.set(label, value._replace(device=receiver.where, loop=None) if value.is_tensor else value)
    return UNKNOWN


def _optimizer(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if name == "step":
        frame.interpreter.event(frame, node, "step")
        return UNKNOWN
    return NONE


def _scaler(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if name == "scale" and args.positional:
        return args.positional[0]
    if name == "step":
        frame.interpreter.event(frame, node, "step")
    if name == "__call__" or (name == "get_scale"):
        return NUMBER
    return NONE


# ---- host values -----------------------------------------------------------------------------------------


def _array(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if name == "item":
        return Value(Kind.NUMBER, marks=receiver.marks)
    if name == "tolist":
        return Value(Kind.CONTAINER, element=Value(Kind.NUMBER, marks=receiver.marks), marks=receiver.marks)
    return receiver._replace(kind=Kind.ARRAY)


def _text(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if name == "format":
        from gpulint.model.outside import sink

        sink(frame, node, args)
        return Value(Kind.TEXT, receiver.device)
    if name in ("split", "splitlines", "rsplit"):
        return container(TEXT)
    return NUMBER if name in ("startswith", "endswith", "isdigit", "find", "count", "index") else TEXT


def _number(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    return receiver._replace(const=None)


def _loader(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if name in ("next", "__next__", "next_batch", "get_batch", "sample"):
        return frame.interpreter.drawn(frame, frame.interpreter.element_of(receiver))
    return receiver if name in ("__iter__", "shuffle", "batch", "repeat") else UNKNOWN


def _container(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    assert isinstance(node.func, ast.Attribute)
    target = node.func.value
    if name in ("append", "appendleft", "add", "insert") and args.positional:
        grow(frame, node, target, receiver, args.positional[-1], env)
        return NONE
    if name == "extend" and args.positional:
        inner = frame.interpreter.element_of(args.positional[0])
        grow(frame, node, target, receiver, inner, env)
        return NONE
    if name == "update":
        merged = _updated(receiver, args)
        write_back(frame, target, merged, env)
        return NONE
    if name == "clear":
        write_back(frame, target, Value(Kind.CONTAINER), env)
        return NONE
    element = receiver.element if receiver.element is not None else UNKNOWN
    if name == "items":
        if receiver.keys is not None and receiver.items is not None and len(receiver.items) <= 8:
            return sequence(
                tuple(sequence((Value(Kind.TEXT, const=k), v)) for k, v in zip(receiver.keys, receiver.items))
            )
        return container(sequence((TEXT, element)))
    if name == "values":
        return (
            sequence(receiver.items)
            if receiver.keys is not None and receiver.items is not None and len(receiver.items) <= 8
            else container(element)
        )
    if name == "keys":
        return container(TEXT)
    if name in ("get", "pop", "setdefault"):
        return _looked_up(receiver, args, element, name)
    if name == "copy":
        return receiver
    if name in ("popleft", "popitem"):
        return element
    if name in ("to", "cuda"):  # a BatchEncoding or another mapping that moves as a whole
        where = (Device.GPU, True) if name == "cuda" else _destination(frame, node, args)
        if where is not None and where[0] is Device.GPU:
            inner = to_gpu(frame, node, element, where[1])
            return container(inner)
        return receiver
    if name in ("count", "index"):
        return NUMBER
    return UNKNOWN


def _looked_up(receiver: Value, args: Arguments, element: Value, name: str) -> Value:
    default = args.positional[1] if len(args.positional) > 1 else None
    label = args.positional[0].const if args.positional else None
    if isinstance(label, str) and receiver.keys is not None and receiver.items is not None:
        if label in receiver.keys:
            return receiver.items[receiver.keys.index(label)]
        return default or NONE
    if default is not None and receiver.element is not None:
        return join(element, default)
    return default if default is not None and receiver.element is None else element


def _updated(receiver: Value, args: Arguments) -> Value:
    """`d.update(other)`: keys of both where they are known."""
    other = args.positional[0] if args.positional else None
    members: dict[str, Value] = {}
    known = True
    for part in (receiver, other):
        if part is None:
            continue
        if part.keys is not None and part.items is not None:
            members.update(zip(part.keys, part.items))
        elif part.kind is not Kind.CONTAINER or part.element is not None:
            known = False
    members.update(args.keywords)
    values = tuple(members.values())
    if known and args.exact:
        return Value(Kind.CONTAINER, keys=tuple(members), items=values, element=join_all(values))
    parts = [v for v in (receiver.element, other.element if other else None, *values) if v is not None]
    return container(join_all(tuple(parts)))


# ---- objects from outside, unknown receivers --------------------------------------------------------------


def _object(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    handled = frame.interpreter.object_method(frame, node, receiver, name, args)
    if handled is not None:
        return handled
    return _unknown(frame, node, receiver, name, args, env)


def _unknown(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    assert isinstance(node.func, ast.Attribute)
    table = api()
    path = dotted(node.func.value)
    if name == "cuda" or name == "to":
        where = (Device.GPU, True) if name == "cuda" else _destination(frame, node, args)
        if where is not None and where[0] is Device.GPU:
            frame.interpreter.moved(frame, node, receiver, where[1])
            return Value(
                Kind.UNKNOWN,
                Device.GPU,
                Graph.DETACHED,
                sure=where[1],
                opaque=True,
                loop=receiver.loop or frame.made_here,
                marks=receiver.marks,
                ref=receiver.ref if isinstance(receiver.ref, Instance) else None,
            )
        return (
            receiver
            if where is None
            else Value(
                loop=receiver.loop,
                marks=receiver.marks,
                device=where[0] if where[0] is Device.HOST else Device.UNKNOWN,
            )
        )
    if name in table.names("methods.item"):
        return Value(Kind.NUMBER, marks=receiver.marks)
    if name in table.names("methods.array"):
        return Value(Kind.ARRAY, marks=receiver.marks)
    if name == "step" and frame.interpreter.convention(path or "") is Kind.OPTIMIZER:
        frame.interpreter.event(frame, node, "step")
        return UNKNOWN
    if name == "step" and frame.interpreter.convention(path or "") is Kind.SCALER:
        frame.interpreter.event(frame, node, "step")
        return UNKNOWN
    if name in ("eval", "train") and not args.positional:
        frame.variant.eval_mode |= name == "eval"
        frame.variant.modes.add((node.lineno, name))
        return receiver
    if name == "requires_grad_":
        return receiver
    if (
        name == "append"
        and args.positional
        and isinstance(node.func.value, ast.Name | ast.Attribute | ast.Subscript)
        and receiver.kind is Kind.UNKNOWN
    ):
        grow(frame, node, node.func.value, receiver, args.positional[0], {})
        return NONE
    moved = frame.interpreter.moved_by_name(frame, name, args)
    if moved is not None:
        return moved
    if name in ("items", "values", "keys"):
        inner = Value(loop=receiver.loop, marks=receiver.marks)
        return container(sequence((TEXT, inner)) if name == "items" else TEXT if name == "keys" else inner)
    kind = frame.interpreter.convention(f"x.{name}")
    tensors = [v for value in args.all for v in frame.interpreter.flatten(value) if v.is_tensor]
    if tensors and (
        kind in (Kind.MODULE, Kind.LOSS)
        or ("loss" in name and not name.startswith(("log", "add", "update", "record", "print")))
    ):
        from gpulint.model.calls import call_module

        return call_module(frame, node, Value(Kind.LOSS if "loss" in name else Kind.MODULE, sure=False), args)
    loader = frame.interpreter.convention(f"x.{name.removeprefix('get_').removeprefix('build_').removeprefix('make_')}")
    if loader is Kind.LOADER or name.endswith(("dataloader", "_loader")):
        return frame.interpreter.foreign_loader(frame, node)
    marks = receiver.marks.union(*(v.marks for v in args.all))
    loop = receiver.loop or next((v.loop for v in args.all if v.loop is not None), None)
    return Value(loop=loop or frame.made_here, marks=marks)
