"""Method calls on values whose class is not in the project: tensors, modules, containers, and the rest."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.api import api
from gpulint.model.container_methods import container_method
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Instance
from gpulint.model.keep import filled, grow
from gpulint.model.module_methods import module_method, optimizer_method, scaler_method
from gpulint.model.moves import destination
from gpulint.model.sites import Site
from gpulint.model.syntax import dotted
from gpulint.model.tensor_methods import tensor_method
from gpulint.model.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Device,
    Graph,
    Kind,
    Value,
    container,
    sequence,
)

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments


def call_method(
    frame: Frame, node: ast.Call, site: Site, receiver: Value, name: str, args: Arguments, env: Env
) -> Value:
    if not isinstance(node.func, ast.Attribute):
        return UNKNOWN
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
        return tensor_method(frame, node, receiver, name, args)
    handler = {
        Kind.MODULE: module_method,
        Kind.LOSS: module_method,
        Kind.CONTAINER: container_method,
        Kind.OPTIMIZER: optimizer_method,
        Kind.SCALER: scaler_method,
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


# ---- modules, optimizers, scalers ------------------------------------------------------------------------


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


# ---- objects from outside, unknown receivers --------------------------------------------------------------


def _object(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    handled = frame.interpreter.object_method(frame, node, receiver, name, args)
    if handled is not None:
        return handled
    return _unknown(frame, node, receiver, name, args, env)


def _unknown(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if not isinstance(node.func, ast.Attribute):
        return UNKNOWN
    table = api()
    path = dotted(node.func.value)
    if name == "cuda" or name == "to":
        where = (Device.GPU, True) if name == "cuda" else destination(frame, node, args)
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
                const=receiver.const if receiver.const == "frozen" else None,
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
        off = bool(args.positional) and args.positional[0].const is False
        return receiver._replace(const="frozen") if off else receiver
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
