"""Methods of lists, dicts and other containers."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.frame import Env, Frame
from gpulint.model.keep import grow, write_back
from gpulint.model.moves import destination, to_gpu
from gpulint.model.values import (
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Device,
    Kind,
    Value,
    container,
    join,
    join_all,
    sequence,
)

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments


def container_method(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments, env: Env) -> Value:
    if not isinstance(node.func, ast.Attribute):
        return UNKNOWN
    target = node.func.value
    if _changed(frame, node, target, receiver, name, args, env):
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
        where = (Device.GPU, True) if name == "cuda" else destination(frame, node, args)
        if where is not None and where[0] is Device.GPU:
            inner = to_gpu(frame, node, element, where[1])
            return container(inner)
        return receiver
    if name in ("count", "index"):
        return NUMBER
    return UNKNOWN


def _changed(
    frame: Frame, node: ast.Call, target: ast.expr, receiver: Value, name: str, args: Arguments, env: Env
) -> bool:
    """Methods that change the container: its new value goes back to where it came from."""
    if name in ("append", "appendleft", "add", "insert") and args.positional:
        grow(frame, node, target, receiver, args.positional[-1], env)
    elif name == "extend" and args.positional:
        grow(frame, node, target, receiver, frame.interpreter.element_of(args.positional[0]), env)
    elif name == "update":
        write_back(frame, target, _updated(receiver, args), env)
    elif name == "clear":
        write_back(frame, target, Value(Kind.CONTAINER), env)
    else:
        return False
    return True


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
