"""When a name may hold a tensor through a loop: every read in the loop is rare, and is told to the host there.

for step, (x, y) in enumerate(loader):
    total += loss.detach()
    if step % 100 == 0:
        total = float(total)        <- before the first use in the guard
        print(total / 100)
total = float(total)                <- after the loop, where it is used later
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpulint.edits import Edits, insert_after, insert_before
from gpulint.fixes.names import LOOPS, Loop, ancestors, block_of, inside, number, scope_of, uses
from gpulint.fixes.text import together
from gpulint.model import Model, Site, Step
from gpulint.model.sites import RegionKind


def loop_around(model: Model, site: Site, step: Step) -> Loop | None:
    """The step loop, where it stands around the site in the same function and no step goes on after it."""
    node = step.loop.node if step.loop is not None else None
    if not isinstance(node, LOOPS) or not inside(model, site.node, node):
        return None
    region = next((r for r in site.region.outward() if r.kind is RegionKind.LOOP and r.node is node), None)
    if region is None or region.parent is None:
        return None
    return node if model.step(replace(site, region=region.parent)) is None else None


def interrupted(model: Model, node: ast.AST, loop: Loop, name: str) -> bool:
    """Whether an exception could leave the name a tensor where a handler reads it."""
    below = True
    for parent in ancestors(model, node):
        if isinstance(parent, ast.Try) and parent.handlers and below:
            return True
        if isinstance(parent, ast.Try):
            parts = (*parent.handlers, *parent.finalbody)
            if any(isinstance(n, ast.Name) and n.id == name for part in parts for n in ast.walk(part)):
                return True
        below = below and parent is not loop
    return False


def guard_point(model: Model, site: Site, node: ast.AST, loop: Loop) -> tuple[ast.stmt, int] | None:
    """The statement of the outermost guard's body, within the loop, in which a node stands; and its block."""
    found: tuple[ast.stmt, int] | None = None
    child = node
    for parent in ancestors(model, node):
        if isinstance(child, ast.stmt):
            place = block_of(model, child)
            if place is not None and _guards(site, parent, child, place[0], place[1]):
                found = child, id(place[0])
        if parent is loop:
            return found
        child = parent
    return None


def _guards(site: Site, parent: ast.AST, child: ast.stmt, block: list[ast.stmt], index: int) -> bool:
    regions = site.variant.regions
    places: list[tuple[ast.AST, str]] = [(other, "rest") for other in block[:index] if isinstance(other, ast.If)]
    if isinstance(parent, ast.If):
        places.append((parent, "body" if child in parent.body else "else"))
    for place, part in places:
        region = regions.get((place, f"{RegionKind.GUARD.value}:{part}"))
        if region is not None and not region.holds_step:
            return True
    return False


def conversions(model: Model, site: Site, loop: Loop, name: str, own: Sequence[ast.AST], convert: str) -> Edits | None:
    """Insertions of ``convert`` where the name is read outside ``own``; None where a read cannot wait."""
    scope = scope_of(model, loop)
    if scope is None:
        return None
    found = uses(scope, name)
    if found.captured:
        return None
    points: dict[int, ast.stmt] = {}
    outside = False
    for node in found.loads:
        if any(inside(model, node, mine) for mine in own):
            continue
        if not inside(model, node, loop):
            outside = True
            continue
        point = guard_point(model, site, node, loop)
        if point is None:
            return None
        points.setdefault(point[1], point[0])
    for store in found.stores:
        if any(inside(model, store, mine) for mine in own) or not inside(model, store, loop):
            continue
        statement = model.statement(store)
        if statement is not None and _is(model, statement, convert):
            continue
        if statement is None or number(statement, name) is None or guard_point(model, site, store, loop) is None:
            return None
    return _written(model, loop, points.values(), outside, convert)


def _written(model: Model, loop: Loop, points: Iterable[ast.stmt], outside: bool, convert: str) -> Edits | None:
    edits: list[Edits | None] = [
        insert_before(model.source.text, model.span(statement), [convert])
        for statement in points
        if not _is(model, statement, convert)
    ]
    if outside:
        edits.append(after(model, loop, convert))
    return together(edits)


def after(model: Model, statement: ast.stmt, line: str) -> Edits | None:
    """Write a line after a statement, unless it stands there."""
    place = block_of(model, statement)
    if place is None:
        return None
    last = statement
    for following in place[0][place[1] + 1 :]:
        if _is(model, following, line):
            return ()
        if not _converts(following):
            break
        last = following  # keep the order in which the fixes come
    return insert_after(model.source.text, model.span(last), [line])


def _is(model: Model, statement: ast.stmt, line: str) -> bool:
    return isinstance(statement, ast.Assign) and model.text(statement) == line


def _converts(statement: ast.stmt) -> bool:
    """One of the lines that other fixes wrote after the loop: ``x = float(x)``."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return False
    name = statement.targets[0].id
    names = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)}
    return name in names and names <= {name, "float", "int", "torch", "value"}
