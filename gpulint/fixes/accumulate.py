"""`total += loss.item()` becomes `total += loss.detach()`, and one `total = float(total)` after the loop."""

from __future__ import annotations

import ast

from gpulint.edits import Edits
from gpulint.finding import Applicability, Fix
from gpulint.fixes.defer import conversions, interrupted, loop_around
from gpulint.fixes.names import Loop, number, set_before
from gpulint.fixes.reads import Read, counts, floats, kept_on_device, widened
from gpulint.fixes.text import torch_name
from gpulint.model import Model, Site, Step

TITLE = "Accumulate on the device and read once after the loop"
_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult, ast.Div)


def accumulate(model: Model, site: Site, step: Step, read: Read) -> Fix | None:
    loop = loop_around(model, site, step)
    statement = model.statement(read.node)
    if loop is None or statement is None or not read.scalar:
        return None
    name = accumulated(model, statement, read.node)
    if name is None:
        return None
    convert = conversion(model, site, read, loop, name, direct=_addend(statement, name) is read.node)
    if convert is None:
        return None
    edits = accumulator(model, site, loop, name, statement, convert)
    if edits is None:
        return None
    suffix = widened(model) if convert.endswith(f"float({name})") else ""
    return Fix(TITLE, Applicability.UNSAFE, (kept_on_device(model, read, suffix=suffix), *edits))


def accumulator(model: Model, site: Site, loop: Loop, name: str, statement: ast.stmt, convert: str) -> Edits | None:
    """The conversions of a number that a statement adds to, if it can be a tensor within the loop."""
    if set_before(model, loop, name, number) is None or interrupted(model, statement, loop, name):
        return None
    return conversions(model, site, loop, name, [statement], convert)


def accumulated(model: Model, statement: ast.stmt, part: ast.expr) -> str | None:
    """The local name to which a statement adds the part, or a product or sum with it."""
    if isinstance(statement, ast.AugAssign):
        if not isinstance(statement.target, ast.Name) or not isinstance(statement.op, ast.Add | ast.Sub):
            return None
        name = statement.target.id
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if not isinstance(target, ast.Name) or _addend(statement, target.id) is None:
            return None
        if not (isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add)):
            return None
        name = target.id
    else:
        return None
    addend = _addend(statement, name)
    if addend is None or any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(addend)):
        return None
    return name if elementwise(model, part, addend) else None


def _addend(statement: ast.stmt, name: str) -> ast.expr | None:
    if isinstance(statement, ast.AugAssign):
        return statement.value
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        left, right = statement.value.left, statement.value.right
        if isinstance(left, ast.Name) and left.id == name:
            return right
        if isinstance(right, ast.Name) and right.id == name:
            return left
    return None


def elementwise(model: Model, part: ast.expr, whole: ast.expr) -> bool:
    """Whether the whole is plain arithmetic on the part, which means the same for a tensor."""
    node: ast.AST = part
    text = model.text(whole)
    if node is not whole and ("np." in text or "numpy" in text):
        return False  # a NumPy scalar on the left would try to read the tensor
    while node is not whole:
        parent = model.parent(node)
        if not (isinstance(parent, ast.BinOp) and isinstance(parent.op, _ELEMENTWISE)):
            return False
        node = parent
    return True


def conversion(model: Model, site: Site, read: Read, loop: Loop, name: str, *, direct: bool) -> str | None:
    """The line that makes the accumulated tensor the number that it would have been."""
    first = set_before(model, loop, name, number)
    if first is None:
        return None
    start = first[0].value
    if isinstance(start, float) or floats(model, site, read.base) or _is_float(read.node):
        return f"{name} = float({name})"
    if direct and counts(model, read.base):
        return f"{name} = int({name})"
    torch = torch_name(model)
    return f"{name} = {torch}.as_tensor({name}).item()" if torch is not None else None


def _is_float(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float"
