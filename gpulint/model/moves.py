"""Copies between host and GPU: `.cpu()`, `.cuda()`, `.to(...)`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.api import api
from gpulint.model.combine import device_argument
from gpulint.model.frame import Frame
from gpulint.model.syntax import dotted, keyword
from gpulint.model.values import (
    Device,
    Kind,
    Pin,
    Value,
)

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments


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


def destination(frame: Frame, node: ast.Call, args: Arguments) -> tuple[Device, bool] | None:
    """Where a ``.to(...)`` moves to; None where it only changes the type."""
    value = args.keywords.get("device") or (args.positional[0] if args.positional else args.keywords.get("other"))
    if value is None or value.kind is Kind.NONE or (value.kind is Kind.NAMESPACE and "device" not in args.keywords):
        return None
    device, sure = device_argument(frame, value)
    if device is Device.UNKNOWN and value.kind is Kind.UNKNOWN:
        expression = node.args[0] if node.args else keyword(node, "device")
        path = dotted(expression) if expression is not None else None
        last = (path or "").rpartition(".")[2]
        if last in api().names("conventions.device") or "device" in last.lower():
            return frame.interpreter.chosen_device(frame), False
        if "dtype" in last or last in ("float", "half", "long") or path is None:
            return None
        return Device.UNKNOWN, False
    return device, sure


def to(frame: Frame, node: ast.Call, receiver: Value, args: Arguments) -> Value:
    where = destination(frame, node, args)
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
