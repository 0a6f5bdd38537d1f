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
        return to(frame, node, receiver, args)
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
