"""`value = loss.item()` on each step, used now and then: read it where it is used."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gpulint.edits import Edits, insert_before, remove_statement
from gpulint.finding import Applicability, Fix
from gpulint.fixes.accumulate import accumulated, accumulator, conversion, elementwise
from gpulint.fixes.defer import conversions, guard_point, interrupted, loop_around
from gpulint.fixes.names import Loop, ancestors, block_of, scope_of, uses
from gpulint.fixes.reads import Read, floats, fresh, kept_on_device, widened
from gpulint.fixes.text import merged, together
from gpulint.model import Model, Site, Step

TITLE = "Read the value where it is used, under the guard"
# fmt: off
_PURE = frozenset((
    "item", "cpu", "numpy", "detach", "float", "long", "int", "double", "mean", "sum", "max", "min", "abs", "argmax",
    "eq", "ne", "gt", "lt", "ge", "le", "norm", "sqrt", "exp", "log", "view", "squeeze", "flatten", "std", "var",
))
# fmt: on


def postpone(model: Model, site: Site, step: Step, read: Read) -> Fix | None:
    loop = loop_around(model, site, step)
    statement = model.statement(read.node)
    if loop is None or not isinstance(statement, ast.Assign) or not read.scalar:
        return None
    name = _name(statement)
    if name is None or not elementwise(model, read.node, statement.value):
        return None
    loads = _loads_after(model, statement, loop, name)
    if not loads or interrupted(model, statement, loop, name):
        return None
    points = [guard_point(model, site, load, loop) for load in loads]
    if all(point is not None for point in points):
        moved = _move(model, statement, {id_: p for p, id_ in reversed([p for p in points if p])}.values())
        if moved is not None:
            return Fix(TITLE, Applicability.UNSAFE, moved)
    return _later(model, site, loop, statement, name, read, loads)


def _name(statement: ast.Assign) -> str | None:
    target = statement.targets[0]
    return target.id if len(statement.targets) == 1 and isinstance(target, ast.Name) else None


def _loads_after(model: Model, statement: ast.Assign, loop: Loop, name: str) -> list[ast.Name] | None:
    """The uses of the name, if all stand behind the statement in the same pass and nothing else sets it."""
    scope = scope_of(model, loop)
    place = block_of(model, statement)
    if scope is None or place is None:
        return None
    found = uses(scope, name)
    if found.captured or found.stores != [statement.targets[0]]:
        return None
    rest = place[0][place[1] + 1 :]
    for load in found.loads:
        if not any(other in rest for other in (load, *ancestors(model, load))):
            return None
    return found.loads


# ---- the statement moves ----------------------------------------------------------------------------------


def _move(model: Model, statement: ast.Assign, points: Iterable[ast.stmt]) -> Edits | None:
    """Take the statement out, and write it before the first use in each guard."""
    text, span = model.source.text, model.span(statement)
    names = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    line = text[span.start : span.end]
    rest_of_line = text[span.end :].splitlines()[:1]
    if "\n" in line or "\r" in line or (rest_of_line and rest_of_line[0].strip()):
        return None
    if not all(_pure(n) for n in ast.walk(statement.value)):
        return None
    edits = [remove_statement(text, span)]
    for point in points:
        if _changed_between(model, statement, point, names):
            return None
        edits.append(insert_before(text, model.span(point), [line]))
    return together(edits)


def _pure(node: ast.AST) -> bool:
    """Whether evaluating the node later gives the same, as long as its names stay what they are."""
    if isinstance(node, ast.Call):
        func = node.func
        return (isinstance(func, ast.Attribute) and func.attr in _PURE) or (
            isinstance(func, ast.Name) and func.id in ("float", "int")
        )
    if isinstance(node, ast.Attribute):
        return node.attr in _PURE  # of a call; an attribute of an object may change
    allowed = ast.Name | ast.Constant | ast.Compare | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop
    return isinstance(node, allowed | ast.cmpop | ast.expr_context | ast.keyword)


def _changed_between(model: Model, first: ast.stmt, last: ast.stmt, names: set[str]) -> bool:
    scope = scope_of(model, first)
    start, end = model.span(first).end, model.span(last).start
    for node in ast.walk(scope) if scope is not None else ():
        if not hasattr(node, "lineno") or not start <= model.span(node).start < end:
            continue
        if isinstance(node, ast.Name) and node.id in names and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            in_place = node.func.attr.endswith("_") and not node.func.attr.endswith("__")
            owner = node.func.value
            if in_place and any(isinstance(n, ast.Name) and n.id in names for n in ast.walk(owner)):
                return True
    return False


# ---- the value stays a tensor -----------------------------------------------------------------------------


def _later(
    model: Model, site: Site, loop: Loop, statement: ast.Assign, name: str, read: Read, loads: list[ast.Name]
) -> Fix | None:
    """Keep a tensor under the name; sums of it become numbers after the loop, guards read it."""
    own: list[ast.AST] = [statement]
    edits: list[Edits] = []
    for load in loads:
        target = model.statement(load)
        total = accumulated(model, target, load) if target is not None else None
        if target is None or total is None or guard_point(model, site, load, loop) is not None:
            continue
        direct = isinstance(target, ast.AugAssign) and target.value is load and statement.value is read.node
        convert = conversion(model, site, read, loop, total, direct=direct)
        summed = accumulator(model, site, loop, total, target, convert) if convert is not None else None
        if summed is None:
            return None
        own.append(target)
        edits.append(summed)
    if not fresh(model, read) and statement.value is read.node:
        return None
    is_float = floats(model, site, read.base)
    guarded = conversions(model, site, loop, name, own, f"{name} = float({name})")
    if guarded is None or (guarded and not is_float):
        return None
    kept = kept_on_device(model, read, suffix=widened(model, read.base) if is_float and edits else "")
    every = merged((kept, *guarded, *(e for part in edits for e in part)))
    return Fix("Keep the value on the device and read it after the loop", Applicability.UNSAFE, every)
