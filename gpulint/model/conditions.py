"""Guards: which conditions hold rarely, so that what stands under them is no per-step cost."""

from __future__ import annotations

import ast
import re
from enum import Enum
from typing import TYPE_CHECKING

from gpulint.model.syntax import dotted
from gpulint.model.values import Kind, Value

if TYPE_CHECKING:
    from gpulint.model.frame import Env, Frame


class Rarity(Enum):
    RARE = "rare"  # holds on few steps
    COMMON = "common"  # fails on few steps: its `else` is the rare branch
    UNKNOWN = "unknown"


_COUNTER = re.compile(
    r"(^|_)(step|steps|iter|iters|iteration|idx|index|batch|count|counter|epoch|i|j|k|n|it|t|ii|niter|calls|updates?|num_steps)(_|\d|$)|step|iter|batch_i",
    re.I,
)
_PLACE = re.compile(r"rank|gpu|device|process|worker|local|world|main", re.I)
RARE = "<rare>"  # the constant of a Number whose truth is rare


def rarity(frame: Frame, test: ast.expr, env: Env) -> Rarity:
    """How often a condition of a step loop holds. Unknown unless its shape says so."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _opposite(rarity(frame, test.operand, env))
    if isinstance(test, ast.BoolOp):
        parts = [rarity(frame, value, env) for value in test.values]
        if isinstance(test.op, ast.And):
            return Rarity.RARE if Rarity.RARE in parts else Rarity.UNKNOWN
        if all(part is Rarity.RARE for part in parts):
            return Rarity.RARE
        return Rarity.COMMON if Rarity.COMMON in parts else Rarity.UNKNOWN
    if isinstance(test, ast.NamedExpr):
        return rarity(frame, test.value, env)
    if isinstance(test, ast.BinOp) and isinstance(test.op, ast.Mod) and not _is_text(test.left):
        return Rarity.UNKNOWN if _is_one(test.right) else Rarity.COMMON
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compare(frame, test.left, test.ops[0], test.comparators[0], env)
    if isinstance(test, ast.Name | ast.Attribute):
        path = dotted(test)
        value = env.get(path) if path else None
        return Rarity.RARE if value is not None and value.const == RARE else Rarity.UNKNOWN
    if isinstance(test, ast.Call):
        return frame.interpreter.call_rarity(frame, test, env)
    return Rarity.UNKNOWN


def _opposite(value: Rarity) -> Rarity:
    return {Rarity.RARE: Rarity.COMMON, Rarity.COMMON: Rarity.RARE}.get(value, Rarity.UNKNOWN)


def _compare(frame: Frame, left: ast.expr, op: ast.cmpop, right: ast.expr, env: Env) -> Rarity:
    modulo = next((side for side in (left, right) if _has_modulo(side)), None)
    if modulo is not None:
        if _modulo_by_one(modulo):
            return Rarity.UNKNOWN
        if isinstance(op, ast.Eq | ast.Lt | ast.LtE):
            return Rarity.RARE
        return Rarity.COMMON if isinstance(op, ast.NotEq) else Rarity.UNKNOWN
    if isinstance(op, ast.Eq | ast.NotEq) and (
        _is_counter(frame, left, env) or _is_counter(frame, right, env)
    ):
        other = right if _is_counter(frame, left, env) else left
        if not _is_text(other) and not (
            isinstance(other, ast.Constant) and (other.value is None or isinstance(other.value, bool))
        ):
            return Rarity.RARE if isinstance(op, ast.Eq) else Rarity.COMMON
    if isinstance(op, ast.In) and _is_counter(frame, left, env):
        return Rarity.RARE
    if isinstance(op, ast.NotIn) and _is_counter(frame, left, env):
        return Rarity.COMMON
    if isinstance(op, ast.Gt | ast.GtE) and _is_clock(frame, left, env):
        return Rarity.RARE
    return Rarity.UNKNOWN


def _is_counter(frame: Frame, node: ast.expr, env: Env) -> bool:
    """Whether the expression counts steps: drawn from a counting loop, or counted up by hand."""
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        node = node.left if not isinstance(node.left, ast.Constant) else node.right
    path = dotted(node)
    if path is None or _PLACE.search(path):
        return False
    value = env.get(path)
    if value is not None and value.kind is Kind.NUMBER and value.loop is not None:
        return True
    if value is not None and value.kind in (Kind.TENSOR, Kind.TEXT, Kind.NONE, Kind.CONTAINER):
        return False
    last = path.rpartition(".")[2]
    if not _COUNTER.search(last):
        return False
    counted = frame.info.counters if frame.info is not None else frozenset()
    return path in counted or last not in ("n", "k", "t", "count") or value is not None


def _is_clock(frame: Frame, node: ast.expr, env: Env) -> bool:
    return any(
        isinstance(n, ast.Call)
        and (dotted(n.func) or "").rpartition(".")[2] in ("time", "perf_counter", "monotonic")
        for n in ast.walk(node)
    )


def _has_modulo(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and (
        (isinstance(node.op, ast.Mod) and not _is_text(node.left))
        or (_has_modulo(node.left) and isinstance(node.op, ast.Add | ast.Sub))
    )


def _modulo_by_one(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_one(node.right)


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 1


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def always_leaves(body: list[ast.stmt], *, returns: bool = False, continues: bool = False) -> bool:
    """Whether a branch ends by leaving the loop (``break``, ``raise``), so that it is taken once.

    ``returns``: a ``return`` counts too (it stands in the loop's own function); ``continues``: so
    does ``continue``, which ends the pass but not the loop.
    """
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.Break | ast.Raise):
        return True
    if isinstance(last, ast.Return):
        return returns or continues
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return dotted(last.value.func) in ("sys.exit", "exit", "quit", "os._exit")
    return continues and isinstance(last, ast.Continue)


def rare_value() -> Value:
    return Value(Kind.NUMBER, const=RARE)
