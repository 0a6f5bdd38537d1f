"""Methods of modules, optimizers and gradient scalers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.attributes import METADATA
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Instance
from gpulint.model.moves import destination
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


_RETURN_SELF = frozenset(
    [
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
        "compile",
    ]
)
_REGISTER = frozenset(
    [
        "log",
        "log_dict",
        "save_hyperparameters",
        "register_buffer",
        "register_parameter",
        "add_module",
        "load_state_dict",
        "print",
    ]
)
_LIST = frozenset(["items", "values", "keys", "append", "extend", "insert", "get", "pop"])
_STATE = frozenset(["init_hidden", "init_state", "get_initial_state", "initialize_hidden"])
_NOT_FORWARD = ("load", "save", "get_input", "register", "set_")


def module_method(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    """What a method of a module that its class does not define returns, and does to the module."""
    if name in ("to", "cuda", "to_empty"):
        return _move(frame, node, receiver, name, args)
    if name in _RETURN_SELF:
        _switch(frame, node, receiver, name, args)
        return receiver
    if name in _LIST:
        return _module_list(frame, receiver, name, args)
    if name in _REGISTER:
        return _registered(frame, receiver, name, args)
    members = _members(receiver, name)
    if members is not None:
        return members
    if name == "step":  # deepspeed engines step themselves
        frame.interpreter.event(frame, node, "step")
        return NONE
    if name == "manual_backward":
        frame.interpreter.backward(frame, node, args.positional[0] if args.positional else UNKNOWN, name)
        return NONE
    if name in _STATE:
        return Value(Kind.TENSOR, receiver.where, Graph.DETACHED, sure=False, opaque=True)
    if name == "optimizers":
        return Value(Kind.OPTIMIZER)
    return frame.interpreter.moved_by_name(frame, name, args) or _like_forward(frame, node, receiver, name, args)


def _move(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value:
    """``model.to(device)`` moves the module in place."""
    where = (Device.GPU, True) if name == "cuda" else destination(frame, node, args)
    instance = receiver.ref
    if where is None:
        return receiver
    device, sure = where
    if not isinstance(instance, Instance):
        return receiver._replace(device=Device.GPU, sure=sure) if device is Device.GPU else receiver
    if device is Device.GPU:
        instance.move(Device.GPU, sure)
    elif device is Device.UNKNOWN and instance.device is Device.HOST:
        instance.move(Device.UNKNOWN, False)
    return receiver


def _switch(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> None:
    """``eval()``, ``train(False)``, ``requires_grad_(False)``: remembered for what runs later."""
    off = bool(args.positional) and args.positional[0].const is False
    if name in ("eval", "train"):
        evaluates = name == "eval" or off
        frame.variant.modes.add((node.lineno, "eval" if evaluates else "train"))
        frame.variant.eval_mode |= evaluates
    if name == "requires_grad_" and off and isinstance(receiver.ref, Instance):
        receiver.ref.frozen = True


def _members(receiver: Value, name: str) -> Value | None:
    """Parameters, buffers and submodules."""
    parameter = Value(Kind.TENSOR, receiver.where, Graph.ATTACHED, sure=receiver.sure)
    module = Value(Kind.MODULE, receiver.device, sure=False)
    inner = {
        "parameters": parameter,
        "buffers": parameter,
        "named_parameters": sequence((TEXT, parameter)),
        "named_buffers": sequence((TEXT, parameter)),
        "modules": module,
        "children": module,
        "named_modules": sequence((TEXT, module)),
        "named_children": sequence((TEXT, module)),
        "state_dict": parameter._replace(graph=Graph.DETACHED),
    }.get(name)
    return container(inner) if inner is not None else None


def _like_forward(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value:
    """`model.generate(x)`, `vae.encode(x)`: a method that is given tensors computes with the module."""
    inputs = [v for value in args.all for v in frame.interpreter.flatten(value) if v.is_tensor]
    if not inputs or name.startswith(_NOT_FORWARD) or METADATA.search(name):
        return UNKNOWN
    if isinstance(receiver.ref, Instance) and receiver.ref.cls is not None:
        return Value(loop=inputs[0].loop, marks=frozenset().union(*(v.marks for v in inputs)))
    from gpulint.model.calls import call_module

    result = call_module(frame, node, receiver, args)
    return result._replace(opaque=True, sure=result.sure and "loss" not in name)


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
            placed = value._replace(device=receiver.where, loop=None, const="buffer", marks=frozenset())
            receiver.ref.set(label, placed if value.is_tensor else value)
    return UNKNOWN


def optimizer_method(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if name == "step":
        frame.interpreter.event(frame, node, "step")
        return UNKNOWN
    return NONE


def scaler_method(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if name == "scale" and args.positional:
        return args.positional[0]
    if name == "step":
        frame.interpreter.event(frame, node, "step")
    if name == "__call__" or (name == "get_scale"):
        return NUMBER
    return NONE
