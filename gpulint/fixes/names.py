"""Where a local name is read and written: what a fix must know before it changes when a value is made."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from gpulint.model import Model

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While
T = TypeVar("T")

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_NESTED = (*_FUNCTIONS, ast.ClassDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def ancestors(model: Model, node: ast.AST) -> Iterator[ast.AST]:
    """What the node stands in, nearest first, up to the function or module that runs it."""
    parent = model.parent(node)
    while parent is not None:
        yield parent
        if isinstance(parent, _NESTED):
            return
        parent = model.parent(parent)


def scope_of(model: Model, node: ast.AST) -> Scope | None:
    """The function or module that runs the node; None in lambdas and class bodies."""
    *_, outermost = ancestors(model, node)
    return outermost if isinstance(outermost, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) else None


def inside(model: Model, node: ast.AST, top: ast.AST) -> bool:
    return node is top or any(parent is top for parent in ancestors(model, node))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statement lists directly in a statement."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield block
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def block_of(model: Model, statement: ast.AST) -> tuple[list[ast.stmt], int] | None:
    """The statement list that holds a statement, and its index there."""
    parent = model.parent(statement)
    for block in blocks(parent) if parent is not None else ():
        for index, other in enumerate(block):
            if other is statement:
                return block, index
    return None


@dataclass(slots=True)
class Uses:
    """Loads and stores of one name in one scope; ``captured`` where other scopes may see it too."""

    loads: list[ast.Name] = field(default_factory=list)
    stores: list[ast.AST] = field(default_factory=list)
    captured: bool = False


def uses(scope: ast.AST, name: str) -> Uses:
    found = Uses()
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        if isinstance(node, _NESTED):
            found.captured |= _captures(node, name)
            if getattr(node, "name", None) == name:
                found.stores.append(node)
            continue
        if isinstance(node, ast.Name) and node.id == name:
            (found.loads if isinstance(node.ctx, ast.Load) else found.stores).append(node)
        elif (isinstance(node, ast.Global | ast.Nonlocal) and name in node.names) or (
            isinstance(node, ast.Name) and node.id in ("locals", "globals", "vars", "eval", "exec")
        ):
            found.captured = True
        elif _binds(node, name):
            found.stores.append(node)
        stack.extend(ast.iter_child_nodes(node))
    found.loads.sort(key=_place)
    found.stores.sort(key=_place)
    return found


def _place(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _binds(node: ast.AST, name: str) -> bool:
    """Imports, ``except … as name`` and patterns bind names without a Name node."""
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    return isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name == name


def _captures(nested: ast.AST, name: str) -> bool:
    """Whether a nested function or class uses the name of the scope around it."""
    nodes = list(ast.walk(nested))
    if any(isinstance(n, ast.Global | ast.Nonlocal) and name in n.names for n in nodes):
        return True
    own = isinstance(nested, ast.FunctionDef | ast.AsyncFunctionDef) and (
        any(isinstance(n, ast.arg) and n.arg == name for n in ast.walk(nested.args))
        or any(
            isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)
            for s in nested.body
            for n in _own_nodes(s)
        )
    )
    return not own and any(isinstance(n, ast.Name) and n.id == name for n in nodes)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        if not isinstance(current, _NESTED):
            stack.extend(ast.iter_child_nodes(current))


def writes(node: ast.AST, name: str) -> bool:
    return any(
        (isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load)) or _binds(n, name)
        for n in ast.walk(node)
    )


def set_before(
    model: Model, loop: ast.stmt, name: str, accept: Callable[[ast.stmt, str], T | None]
) -> tuple[T, ast.stmt] | None:
    """What a name holds when a loop starts, where a single statement before the loop decides it.

    Gives what ``accept`` makes of that statement, and the statement beside it that holds the loop (an epoch
    loop, say). Where a loop further out brings another value around, or a branch may, there is no answer.
    """
    child: ast.stmt = loop
    while True:
        place = block_of(model, child)
        parent = model.parent(child)
        if place is None or parent is None:
            return None
        block, index = place
        for statement in reversed(block[:index]):
            if writes(statement, name):
                accepted = accept(statement, name)
                return (accepted, child) if accepted is not None else None
        if isinstance(parent, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        if isinstance(parent, ast.ExceptHandler) or not isinstance(parent, ast.stmt):
            return None
        if not isinstance(parent, ast.If) and any(
            writes(other, name) for other in ast.iter_child_nodes(parent) if other is not child
        ):
            return None
        child = parent


def number(statement: ast.stmt, name: str) -> ast.Constant | None:
    """The number that a statement gives the name: ``x = 0.0``, ``a = x = 0``, ``a, x = 0, 0``."""
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets: list[ast.expr] = [statement.target]
    elif isinstance(statement, ast.Assign):
        targets = statement.targets
    else:
        return None
    found: list[ast.expr] = []
    for target in targets:
        value = statement.value
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
            if len(target.elts) == len(value.elts):
                pairs = zip(target.elts, value.elts, strict=True)
                found += [v for t, v in pairs if isinstance(t, ast.Name) and t.id == name]
        elif isinstance(target, ast.Name) and target.id == name and value is not None:
            found.append(value)
    last = found[-1] if found else None
    if isinstance(last, ast.Constant) and type(last.value) in (int, float):
        return last
    return None


def empty_list(statement: ast.stmt, name: str) -> ast.expr | None:
    """``xs = []``, ``xs: list[float] = []``, ``xs, ys = [], []``: a list that no other name shares."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    value = getattr(statement, "value", None)
    if len(targets) != 1 or not isinstance(statement, ast.Assign | ast.AnnAssign):
        return None
    target = targets[0]
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        value = next((v for t, v in pairs if isinstance(t, ast.Name) and t.id == name), None)
    elif not (isinstance(target, ast.Name) and target.id == name):
        return None
    if isinstance(value, ast.List) and not value.elts:
        return value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "list":
        return value if not (value.args or value.keywords) else None
    return None
