"""Guards: which conditions hold rarely, so that what stands under them is no per-step cost."""

from __future__ import annotations

import ast
import re
from enum import Enum
from typing import TYPE_CHECKING

from gpulint.model.syntax import dotted
from gpulint.model.values import Kind

if TYPE_CHECKING:
    from gpulint.model.frame import Env, Frame
    from gpulint.model.syntax import FunctionInfo


class Rarity(Enum):
    RARE = "rare"  # holds on few steps
    COMMON = "common"  # fails on few steps: its `else` is the rare branch
    UNKNOWN = "unknown"


_COUNTER = re.compile(
    r"(^|_)(step|steps|iter|iters|iteration|idx|index|batch|count|counter|epoch|i|j|k|n|it|t|ii|niter|calls|updates?|num_steps)(_|\d|$)|step|iter|batch_i",
    re.I,
)
_PLACE = re.compile(r"rank|gpu|device|process|worker|local|world|main", re.I)
_MACHINE = re.compile(r"cuda|gpu|amp|fp16|half|bf16|device|distributed|ddp|train|parallel|accel", re.I)
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
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and _is_bool(test.comparators[0]):
        same = isinstance(test.ops[0], ast.Is | ast.Eq) is bool(getattr(test.comparators[0], "value", None))
        inner = rarity(frame, test.left, env)
        return inner if same else _opposite(inner)  # `if flag is True:`
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compare(frame, test.left, test.ops[0], test.comparators[0], env)
    if isinstance(test, ast.Name | ast.Attribute):
        return _flag(frame, test, env)
    if isinstance(test, ast.Call):
        return frame.interpreter.call_rarity(frame, test, env)
    return Rarity.UNKNOWN


def _flag(frame: Frame, test: ast.expr, env: Env) -> Rarity:
    """A name for a guard's condition, or a switch that is off unless the user asks for it."""
    path = dotted(test)
    if path is None:
        return Rarity.UNKNOWN
    const = frame.evaluate(test, env).const
    if const == RARE:
        return Rarity.RARE
    return Rarity.RARE if const is False and not _MACHINE.search(path) else Rarity.UNKNOWN


def branch_rarity(frame: Frame, node: ast.If, env: Env) -> Rarity:
    """`rarity` of an ``if``, whose body may tell more: it fills a cache, or empties what was counted."""
    rare = rarity(frame, node.test, env)
    if rare is Rarity.UNKNOWN and (_counts_down(node) or _fills_cache(frame, node) or _empties(frame, node, env)):
        return Rarity.RARE
    return rare


def without_gpu(test: ast.expr) -> bool | None:
    """Whether a branch is the one of a machine without a GPU: True its body, False its ``else``.

    `if use_cuda: … else: …`, `if not args.cuda:`, `if device_type == "cpu":`.
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = without_gpu(test.operand)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        value, same = test.comparators[0].value, isinstance(test.ops[0], ast.Eq)
        if isinstance(value, str) and isinstance(test.ops[0], ast.Eq | ast.NotEq) and value in ("cpu", "cuda"):
            return (value == "cpu") is same
        return None
    path = dotted(test.func) if isinstance(test, ast.Call) else dotted(test)
    if path is None:
        return None
    last = path.rpartition(".")[2].lower()
    if path.endswith("cuda.is_available") or re.fullmatch(r"(use_|with_|has_|is_|on_)?(cuda|gpu)(_available)?", last):
        return False
    return True if re.fullmatch(r"(no_|disable_)(cuda|gpu)|cpu|use_cpu|cpu_only", last) else None


def _fills_cache(frame: Frame, node: ast.If) -> bool:
    """`if self.mask is None or …: self.mask = …`: taken until the cache fits.

    A local that is None before the loop counts; a parameter does not, since it is None on every call.
    """
    paths = set()
    parameters = {a.arg for a in frame.info.node.args.args} if frame.info is not None else set()
    for part in ast.walk(node.test):
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Is):
            path = dotted(part.left)
            local = isinstance(part.left, ast.Name) and path not in parameters and frame.region.loop is not None
            if isinstance(part.left, ast.Attribute) or local:
                paths.add(path)
        if (
            isinstance(part, ast.Call)
            and dotted(part.func) == "hasattr"
            and len(part.args) == 2
            and isinstance(part.args[1], ast.Constant)
        ):
            paths.add(f"{dotted(part.args[0])}.{part.args[1].value!s}")
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.NotIn):
            paths.add(dotted(part.comparators[0]))
    paths.discard(None)
    return bool(paths) and any(
        (dotted(t) or dotted(getattr(t, "value", t))) in paths
        for s in node.body
        for n in ast.walk(s)
        if isinstance(n, ast.Assign)
        for t in n.targets
    )


def _counts_down(node: ast.If) -> bool:
    """`if shown < 5: …; shown += 1`: a handful of times in all."""
    for part in ast.walk(node.test):
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], ast.Lt | ast.LtE):
            path = dotted(part.left)
            if path is not None and any(
                isinstance(n, ast.AugAssign) and dotted(n.target) == path for s in node.body for n in ast.walk(s)
            ):
                return True
    return False


def _empties(frame: Frame, node: ast.If, env: Env) -> bool:
    """`if len(window) >= n: …; window.clear()`, `if count == n: …; count = 0`: once in n steps."""
    test = node.test
    if not (
        isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Gt | ast.GtE | ast.Eq)
    ):
        return False
    left = test.left
    sized = isinstance(left, ast.Call) and dotted(left.func) == "len" and len(left.args) == 1
    path = dotted(left.args[0]) if isinstance(left, ast.Call) and sized else dotted(left)
    if path is None:
        return False
    if any(resets(statement, path) for statement in node.body):
        return sized or _is_counter(frame, left, env) or (frame.info is not None and path in frame.info.counters)
    return sized and any(
        resets(method.node, path)
        for n in (n for s in node.body for n in ast.walk(s))
        if isinstance(n, ast.Call) and (method := _own_method(frame, n)) is not None
    )


def _own_method(frame: Frame, node: ast.Call) -> FunctionInfo | None:
    name = dotted(node.func) or ""
    cls = frame.info.cls if frame.info is not None else None
    return cls.method(name[5:]) if cls is not None and name.startswith("self.") else None


def resets(scope: ast.AST, path: str) -> bool:
    """Whether the code empties what is at ``path``: `xs = []`, `xs.clear()`, `del xs[:]`, `n = 0`."""
    for node in ast.walk(scope):
        if (
            isinstance(node, ast.Assign)
            and any(
                dotted(t) == path
                for target in node.targets
                for t in (target.elts if isinstance(target, ast.Tuple) else [target])
            )
            and not (isinstance(node.value, ast.BinOp) and dotted(node.value.left) == path)
        ):
            return True
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("clear", "pop", "popleft")
        ) and dotted(node.func.value) == path:
            return True
        if isinstance(node, ast.Delete) and any(
            isinstance(t, ast.Subscript) and dotted(t.value) == path for t in node.targets
        ):
            return True
    return False


def _is_bool(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


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
    if isinstance(op, ast.Eq | ast.NotEq) and (_is_counter(frame, left, env) or _is_counter(frame, right, env)):
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
        isinstance(n, ast.Call) and (dotted(n.func) or "").rpartition(".")[2] in ("time", "perf_counter", "monotonic")
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


def on_version(node: ast.If) -> bool:
    """Whether a branch asks which library it runs with."""
    return re.search(r"version|hasattr", ast.unparse(node.test), re.I) is not None


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
