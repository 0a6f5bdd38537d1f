"""Expressions: what each evaluates to, and which of them read a tensor's value on the way."""

from __future__ import annotations

import ast
from collections.abc import Callable

from gpulint.model.attributes import attribute
from gpulint.model.calls import call
from gpulint.model.combine import arithmetic
from gpulint.model.conditions import RARE, Rarity, rarity
from gpulint.model.containers import (
    comprehension,
    concatenated,
    dict_display,
    element_of,
    sequence_display,
    slice_expression,
    subscript,
)
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Closure
from gpulint.model.keep import store_item
from gpulint.model.sites import RegionKind, SiteKind
from gpulint.model.syntax import dotted
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
)


def evaluate(frame: Frame, node: ast.expr, env: Env) -> Value:
    handler = _HANDLERS.get(type(node))
    return handler(frame, node, env) if handler is not None else UNKNOWN


# ---- atoms ---------------------------------------------------------------------------------------------


def _name(frame: Frame, node: ast.Name, env: Env) -> Value:
    return frame.lookup(node.id, env)


def device_of_text(text: str) -> Device:
    if text.startswith(("cuda", "gpu", "mps", "xpu", "npu", "hpu")):
        return Device.GPU
    return Device.HOST if text == "cpu" else Device.UNKNOWN


def _constant(frame: Frame, node: ast.Constant, env: Env) -> Value:
    value = node.value
    if value is None:
        return NONE
    if isinstance(value, str):
        return Value(Kind.TEXT, device_of_text(value), const=value)
    if isinstance(value, bool | int | float):
        return Value(Kind.NUMBER, const=value)
    return TEXT if isinstance(value, bytes) else UNKNOWN


def _joined(frame: Frame, node: ast.JoinedStr, env: Env) -> Value:
    device = Device.UNKNOWN
    for position, part in enumerate(node.values):
        if isinstance(part, ast.FormattedValue):
            value = evaluate(frame, part.value, env)
            formatted(frame, part.value, value)
        elif position == 0 and isinstance(part, ast.Constant) and isinstance(part.value, str):
            device = device_of_text(part.value)
    return Value(Kind.TEXT, device)


def formatted(frame: Frame, node: ast.expr, value: Value) -> None:
    """A value becomes text: a GPU tensor is fetched for it."""
    if value.is_tensor:
        frame.record(SiteKind.FORMAT, node, receiver=value)
    frame.interpreter.consume(value, "format", frame, node)


def _attribute(frame: Frame, node: ast.Attribute, env: Env) -> Value:
    path = dotted(node)
    if path is not None:
        value = env.get(path)
        if value is not None:
            return value
    owner = evaluate(frame, node.value, env)
    return attribute(frame, node, owner, path)


# ---- operators -----------------------------------------------------------------------------------------


def _binary(frame: Frame, node: ast.BinOp, env: Env) -> Value:
    left = evaluate(frame, node.left, env)
    right = evaluate(frame, node.right, env)
    if left.kind is Kind.TEXT:
        if isinstance(node.op, ast.Mod):
            parts = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
            values = right.items if right.items is not None and isinstance(node.right, ast.Tuple) else (right,)
            for part, value in zip(parts, values):
                formatted(frame, part, value)
        return Value(Kind.TEXT, left.device)
    if left.kind is Kind.CONTAINER and isinstance(node.op, ast.Add | ast.Mult) and not right.is_tensor:
        return concatenated(left, right)
    return arithmetic(frame, [left, right])


def _unary(frame: Frame, node: ast.UnaryOp, env: Env) -> Value:
    if isinstance(node.op, ast.Not):
        value = truth(frame, node.operand, env)
        return Value(Kind.NUMBER, const=not value.const if isinstance(value.const, bool) else None)
    value = evaluate(frame, node.operand, env)
    if isinstance(node.op, ast.USub) and isinstance(value.const, int | float):
        return value._replace(const=-value.const)
    return arithmetic(frame, [value], detached=isinstance(node.op, ast.Invert))


def truth(frame: Frame, node: ast.expr, env: Env) -> Value:
    """Evaluate an expression whose truth is taken; a tensor's truth makes the host wait."""
    value = evaluate(frame, node, env)
    if value.is_tensor and not (
        isinstance(node, ast.BoolOp) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))
    ):
        frame.record(SiteKind.TEST, node, receiver=value)
    frame.interpreter.consume(value, "branch", frame, node)
    return value


def _boolean(frame: Frame, node: ast.BoolOp, env: Env) -> Value:
    values = [truth(frame, node.values[0], env)]
    conjunction = isinstance(node.op, ast.And)
    rare = rarity(frame, node.values[0], env)
    guarded = rare is (Rarity.RARE if conjunction else Rarity.COMMON)
    for later in node.values[1:]:
        with frame.inside(RegionKind.GUARD if guarded else RegionKind.BRANCH, later):
            last = later is node.values[-1]
            values.append(evaluate(frame, later, env) if last else truth(frame, later, env))
        guarded |= rarity(frame, later, env) is (Rarity.RARE if conjunction else Rarity.COMMON)
    if rarity(frame, node, env) is Rarity.RARE:
        return Value(Kind.NUMBER, const=RARE)
    if all(v.kind is Kind.NUMBER for v in values):
        return NUMBER
    result = join_all(tuple(v for v in values if v.kind is not Kind.NONE)) or NONE
    # `x or default` keeps what is known of either; a tensor's truth was recorded above
    return result._replace(const=None) if result.kind is not Kind.TEXT else result


def _compare(frame: Frame, node: ast.Compare, env: Env) -> Value:
    values = [evaluate(frame, node.left, env), *(evaluate(frame, c, env) for c in node.comparators)]
    if all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops):
        return _identity(node, values)
    if any(isinstance(op, ast.In | ast.NotIn) for op in node.ops) and values[-1].kind is not Kind.TENSOR:
        return Value(Kind.NUMBER, const=RARE) if rarity(frame, node, env) is Rarity.RARE else NUMBER
    if any(v.kind in (Kind.TEXT, Kind.NONE, Kind.DEVICE) for v in values):
        if len(values) == 2 and all(v.kind is Kind.TEXT and v.const is not None for v in values) and frame.info is None:
            return NUMBER
        return NUMBER
    if len(node.ops) > 1 and any(v.is_tensor for v in values):
        frame.record(SiteKind.TEST, node, receiver=arithmetic(frame, values, detached=True))
    result = arithmetic(frame, values, detached=True)
    if result.kind is Kind.TENSOR:
        return result
    if rarity(frame, node, env) is Rarity.RARE:
        return Value(Kind.NUMBER, const=RARE, marks=result.marks)
    return Value(Kind.NUMBER if result.kind is Kind.NUMBER else Kind.UNKNOWN, marks=result.marks)


def _identity(node: ast.Compare, values: list[Value]) -> Value:
    """`x is None` is known where x certainly is None."""
    if len(values) == 2 and values[1].kind is Kind.NONE and values[0].kind is Kind.NONE:
        return Value(Kind.NUMBER, const=None)
    return NUMBER


def _conditional(frame: Frame, node: ast.IfExp, env: Env) -> Value:
    rare = rarity(frame, node.test, env)
    truth(frame, node.test, env)
    with frame.inside(RegionKind.GUARD if rare is Rarity.RARE else RegionKind.BRANCH, node, part="body"):
        body = evaluate(frame, node.body, env)
    with frame.inside(RegionKind.GUARD if rare is Rarity.COMMON else RegionKind.BRANCH, node, part="else"):
        other = evaluate(frame, node.orelse, env)
    result = join(body, other)
    if result.kind in (Kind.TEXT, Kind.DEVICE) and result.device is Device.GPU:
        return result._replace(sure=True)  # "cuda" if torch.cuda.is_available() else "cpu"
    if {body.kind, other.kind} == {Kind.TEXT, Kind.DEVICE} and Device.GPU in (body.device, other.device):
        return Value(Kind.DEVICE, Device.GPU)
    return result


# ---- containers ----------------------------------------------------------------------------------------


# ---- the rest ------------------------------------------------------------------------------------------


def _lambda(frame: Frame, node: ast.Lambda, env: Env) -> Value:
    info = frame.interpreter.function_info(node, frame)
    return Value(Kind.FUNCTION, ref=Closure(info, {**frame.closure, **env}))


def _named(frame: Frame, node: ast.NamedExpr, env: Env) -> Value:
    value = evaluate(frame, node.value, env)
    assign(frame, node.target, value, env)
    return value


def _await(frame: Frame, node: ast.Await, env: Env) -> Value:
    return evaluate(frame, node.value, env)


def _yield(frame: Frame, node: ast.Yield, env: Env) -> Value:
    value = evaluate(frame, node.value, env) if node.value is not None else NONE
    frame.interpreter.yielded(frame, value)
    return UNKNOWN


def _yield_from(frame: Frame, node: ast.YieldFrom, env: Env) -> Value:
    frame.interpreter.yielded(frame, element_of(evaluate(frame, node.value, env)))
    return UNKNOWN


def _starred(frame: Frame, node: ast.Starred, env: Env) -> Value:
    return element_of(evaluate(frame, node.value, env))


def assign(frame: Frame, target: ast.expr, value: Value, env: Env, source: ast.expr | None = None) -> None:
    """Bind a target: names, attributes, items, and tuples of them."""
    if isinstance(target, ast.Name):
        frame.bind(target.id, value, env)
    elif isinstance(target, ast.Attribute):
        owner = evaluate(frame, target.value, env)
        frame.bind_attribute(target, owner, value, env)
    elif isinstance(target, ast.Tuple | ast.List):
        _unpack(frame, target.elts, value, env)
    elif isinstance(target, ast.Starred):
        assign(frame, target.value, container(value), env)
    elif isinstance(target, ast.Subscript):
        store_item(frame, target, value, env)


def _unpack(frame: Frame, targets: list[ast.expr], value: Value, env: Env) -> None:
    star = next((i for i, t in enumerate(targets) if isinstance(t, ast.Starred)), None)
    if value.items is not None and value.keys is None and star is None and len(value.items) == len(targets):
        for target, item in zip(targets, value.items):
            assign(frame, target, item, env)
        return
    element = element_of(value)
    for target in targets:
        assign(frame, target, element, env)


_HANDLERS: dict[type[ast.expr], Callable[..., Value]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.JoinedStr: _joined,
    ast.Attribute: _attribute,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Tuple: sequence_display,
    ast.List: sequence_display,
    ast.Set: sequence_display,
    ast.Dict: dict_display,
    ast.ListComp: comprehension,
    ast.SetComp: comprehension,
    ast.GeneratorExp: comprehension,
    ast.DictComp: comprehension,
    ast.Subscript: subscript,
    ast.Slice: slice_expression,
    ast.Lambda: _lambda,
    ast.NamedExpr: _named,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
    ast.Starred: _starred,
    ast.Call: call,
}
