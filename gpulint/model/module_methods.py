"""Methods of modules, optimizers and gradient scalers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

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


def module_method(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    instance = receiver.ref
    if name in ("to", "cuda", "to_empty"):
        where = (Device.GPU, True) if name == "cuda" else destination(frame, node, args)
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
