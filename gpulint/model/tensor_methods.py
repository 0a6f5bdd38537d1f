"""Methods of tensors, by the table: views, reductions, moves, reads."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.api import api
from gpulint.model.combine import arithmetic
from gpulint.model.frame import Frame
from gpulint.model.moves import to, to_gpu, to_host
from gpulint.model.values import (
    NUMBER,
    TEXT,
    UNKNOWN,
    Graph,
    Kind,
    Pin,
    Value,
    container,
    sequence,
)

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments


def tensor_method(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value:
    """What a method of a tensor returns: a host value, a moved tensor, a view, or a computed one."""
    for answer in (_read, _moved, _metadata, _view):
        result = answer(frame, node, receiver, name, args)
        if result is not None:
            return result
    return _computed(frame, receiver, name, args)


def _read(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value | None:
    """Methods that give the host the tensor's value."""
    table = api()
    if name in table.names("methods.item"):
        return frame.interpreter.fetched(frame, node, receiver, container(NUMBER) if name == "tolist" else NUMBER)
    if name in table.names("methods.array"):
        array = Value(Kind.ARRAY, loop=receiver.loop, scalar=receiver.scalar)
        return frame.interpreter.fetched(frame, node, receiver, array)
    return frame.interpreter.fetched(frame, node, receiver, NUMBER) if name in table.names("methods.bool") else None


def _moved(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value | None:
    table = api()
    if name in table.names("methods.to_host"):
        return to_host(frame, node, receiver)
    if name in table.names("methods.to_gpu"):
        return to_gpu(frame, node, receiver, sure=True)
    if name == "to" or (name == "type" and args.positional):
        return to(frame, node, receiver, args)
    if name in ("type_as", "to_device"):
        other = args.positional[0] if args.positional else UNKNOWN
        return to_gpu(frame, node, receiver, other.sure) if other.on_gpu else receiver._replace(ref=None)
    return None


def _metadata(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value | None:
    """What the host knows without the device; the members of a batch that is some structure."""
    if name in api().names("methods.number"):
        number = Value(Kind.NUMBER, loop=receiver.loop)
        return container(number) if name == "size" and not args.positional else number
    if not receiver.opaque:
        return None
    if name in ("get", "pop"):
        return receiver
    if name in ("items", "values", "keys"):
        return container({"items": sequence((TEXT, receiver)), "values": receiver, "keys": TEXT}[name])
    return None


def _view(frame: Frame, node: ast.Call, receiver: Value, name: str, args: Arguments) -> Value | None:
    """The same memory, perhaps cut loose from the graph or attached to it."""
    table = api()
    same = receiver._replace(kind=Kind.TENSOR)
    if name in ("copy_", "set_"):
        return receiver
    if name in table.names("methods.detach"):
        return same._replace(graph=Graph.DETACHED)
    if name == "requires_grad_":
        off = args.get(0, "requires_grad") == Value(Kind.NUMBER, const=False)
        return same if off else same._replace(graph=Graph.ATTACHED)
    if name == "pin_memory":
        return same._replace(pinned=Pin.PINNED)
    if name not in table.names("methods.view"):
        return None
    if name in table.names("methods.list"):
        return container(same)
    return same._replace(scalar=same.scalar and name in ("view", "reshape", "squeeze"))


def _computed(frame: Frame, receiver: Value, name: str, args: Arguments) -> Value:
    table = api()
    operands = [receiver, *(v for v in args.all if v.is_tensor)]
    result = arithmetic(frame, operands, detached=name in table.names("methods.detached"))
    if name.startswith("new_"):
        return result._replace(loop=result.loop or frame.made_here, device=receiver.device)
    by_number = bool(args.positional) and args.positional[0].kind is Kind.NUMBER
    reducing = name in table.names("methods.scalar")
    to_one = reducing and not args.positional and not {"dim", "axis", "keepdim"} & set(args.keywords)
    norm = name == "norm" and by_number and len(args.positional) == 1
    result = result._replace(
        scalar=to_one or norm or (result.scalar and receiver.scalar),
        bulk=result.bulk and not reducing and name not in ("argmax", "argmin", "amax", "amin"),
    )
    by_dimension = name in ("max", "min", "median") and (by_number or "dim" in args.keywords)
    if name in table.names("methods.pair") or by_dimension:
        return sequence((result, result._replace(graph=Graph.DETACHED)))
    return container(result) if name in table.names("methods.list") else result
