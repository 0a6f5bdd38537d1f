"""Where a move goes: the `device=` (and `dtype=`) that mean the same at creation."""

from __future__ import annotations

import ast
import re

from gpulint.model import Kind, Model

_DEVICE = re.compile(r"(^|[._])(dev|device|gpu|cuda|local_rank|rank)(_?id)?$")


def target_of(model: Model, moved: ast.Call, method: str) -> dict[str, str] | None:
    """The keywords that the creation gets: the device, and the type where the move gives one."""
    given = {k.arg: k.value for k in moved.keywords}
    given.pop("non_blocking", None)
    if set(given) - {"device", "dtype"} or any(isinstance(a, ast.Starred) for a in moved.args):
        return None
    arguments = list(moved.args)
    if method == "cuda":
        if given.get("dtype") is not None or len(arguments) > 2:
            return None
        device = arguments[0] if arguments else given.get("device")
        if device is None:
            return {"device": '"cuda"'}
        is_number = isinstance(device, ast.Constant) and isinstance(device.value, int)
        return {"device": model.text(device)} if is_number or _is_device(model, moved, device) else None
    if method == "type_as":
        return _like(model, arguments[0]) if len(arguments) == 1 and not given else None
    if method != "to" or len(arguments) > 3:
        return None
    device = given.get("device") or (arguments.pop(0) if arguments else None)
    dtype = given.get("dtype") or (arguments.pop(0) if arguments else None)
    if device is None:
        return None
    if dtype is None and _is_tensor(model, moved, device):
        return _like(model, device)
    if not _is_device(model, moved, device):
        return None
    wanted = {"device": model.text(device)}
    if dtype is not None:
        wanted["dtype"] = model.text(dtype)
    return wanted


def _like(model: Model, other: ast.expr) -> dict[str, str] | None:
    if not isinstance(other, ast.Name | ast.Attribute):
        return None
    text = model.text(other)
    return {"device": f"{text}.device", "dtype": f"{text}.dtype"}


def _is_tensor(model: Model, moved: ast.Call, node: ast.expr) -> bool:
    return any(s.args and s.args[0].kind is Kind.TENSOR for s in model.call(moved)) and node in moved.args


def _is_device(model: Model, moved: ast.Call, node: ast.expr) -> bool:
    """Whether an argument names a device; an integer that may be None (`args.gpu`) would mean another one."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | int)
    kinds = set()
    for site in model.call(moved):
        if node in moved.args and len(site.args) > moved.args.index(node):
            kinds.add(site.args[moved.args.index(node)].kind)
        kinds |= {v.kind for k, v in site.keywords.items() if k == "device"}
    if kinds and kinds <= {Kind.DEVICE, Kind.TEXT, Kind.NUMBER}:
        return True
    named = _DEVICE.search(model.text(node).lower()) is not None
    is_attr = isinstance(node, ast.Attribute) and node.attr == "device"
    never_none = isinstance(moved.func, ast.Attribute) and moved.func.attr == "to"  # `.to(None)` moves nothing
    return is_attr or (named and never_none and isinstance(node, ast.Name | ast.Attribute))
