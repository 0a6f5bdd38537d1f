"""Small computations on values that expressions, calls and methods all need."""

from __future__ import annotations

from gpulint.model.frame import Frame
from gpulint.model.values import Device, Graph, Kind, Pin, Value, few


def arithmetic(frame: Frame, values: list[Value], *, detached: bool = False) -> Value:
    """What an operation on these gives: a tensor if one is, where the GPU ones are, attached if one is."""
    tensors = [v for v in values if v.is_tensor]
    marks = few(frozenset().union(*(v.marks for v in values)), values[0].marks) if values else frozenset()
    if not tensors:
        if any(v.kind is Kind.ARRAY for v in values):
            return Value(Kind.ARRAY, marks=marks, scalar=all(v.scalar or v.kind is not Kind.ARRAY for v in values))
        loop = next((v.loop for v in values if v.loop is not None), None)
        known = all(v.kind in (Kind.NUMBER, Kind.NONE) for v in values)
        return Value(Kind.NUMBER if known else Kind.UNKNOWN, loop=loop, marks=marks)
    if len(tensors) > 1:
        # a mixture is no mere allocation, unless all of it is one
        shared = frozenset.intersection(*(v.marks for v in tensors))
        marks = frozenset(mark for mark in marks if mark.kind != "alloc" or mark in shared)
    devices = {v.device for v in tensors}
    big = {v.device for v in tensors if not v.scalar}
    if Device.GPU in devices:
        device = Device.GPU
    else:
        deciding = big or devices
        device = next(iter(deciding)) if len(deciding) == 1 else Device.UNKNOWN
    pageable = device is Device.HOST and all(v.pinned is Pin.PAGEABLE and v.ref is None for v in tensors)
    return Value(
        Kind.TENSOR,
        device,
        Graph.DETACHED if detached or frame.grad is False else graph_of(tensors),
        sure=any(v.sure for v in tensors if v.device is device),
        scalar=all(v.scalar or v.kind is Kind.NUMBER for v in values),
        bulk=not detached and any(v.bulk for v in tensors),
        loop=next((v.loop for v in tensors if v.loop is not None), None),
        pinned=Pin.PAGEABLE if pageable else Pin.UNKNOWN,
        marks=marks,
    )


def graph_of(tensors: list[Value]) -> Graph:
    graphs = {v.graph for v in tensors}
    if Graph.ATTACHED in graphs:
        return Graph.ATTACHED
    return Graph.UNKNOWN if Graph.UNKNOWN in graphs else Graph.DETACHED


def device_argument(frame: Frame, value: Value) -> tuple[Device, bool]:
    """Where ``device=value`` or ``.to(value)`` puts a tensor, and whether that is sure."""
    if value.kind in (Kind.DEVICE, Kind.TEXT):
        if value.device is Device.UNKNOWN and value.kind is Kind.DEVICE:
            return frame.interpreter.chosen_device(frame), False
        return value.device, value.sure
    if value.kind is Kind.NUMBER:
        return Device.GPU, True  # an index names a GPU
    if value.is_tensor:
        return value.device, value.sure
    return Device.UNKNOWN, False
