"""`total += loss.item()` becomes `total += loss.detach()`, and one `total = float(total)` after the loop."""

from __future__ import annotations

import ast

from gpulint.edits import Edits
from gpulint.finding import Applicability, Fix
from gpulint.fixes.defer import conversions, interrupted, loop_around
from gpulint.fixes.names import Loop, number, set_before
from gpulint.fixes.reads import Read, counts, floats, kept_on_device, widened
from gpulint.fixes.text import torch_name
from gpulint.model import Kind, Model, Site, SiteKind, Step

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
    if _adds_to_gpu(model, statement):
        return Fix("Add on the device", Applicability.UNSAFE, (kept_on_device(model, read),))
    convert = conversion(model, site, read, loop, name, direct=_addend(statement, name) is read.node)
    if convert is None:
        return None
    edits = accumulator(model, site, loop, name, statement, convert)
    if edits is None:
        return None
    suffix = widened(model, read.base) if convert.endswith(f"float({name})") else ""
    return Fix(TITLE, Applicability.UNSAFE, (kept_on_device(model, read, suffix=suffix), *edits))


def _adds_to_gpu(model: Model, statement: ast.stmt) -> bool:
    """Whether the sum is a tensor on the GPU already, so that the read serves nothing."""
    for group in model.sites(SiteKind.AUGMENT):
        if group[0].node is statement and isinstance(statement, ast.AugAssign):
            return all(s.receiver.kind is Kind.TENSOR and s.receiver.on_gpu and s.receiver.sure for s in group)
    return False


def accumulator(model: Model, site: Site, loop: Loop, name: str, statement: ast.stmt, convert: str) -> Edits | None:
    """The conversions of a number that a statement adds to, if it can be a tensor within the loop."""
    if set_before(model, loop, name, number) is None or interrupted(model, statement, loop, name):
        return None
    return conversions(model, site, loop, name, [statement], convert)


def accumulated(model: Model, statement: ast.stmt, part: ast.expr) -> str | None:
    """The local name that a statement updates by plain arithmetic with the part: `x += part`, `x = a * x + part`."""
    if isinstance(statement, ast.AugAssign):
        target, value = statement.target, statement.value
        if not isinstance(target, ast.Name) or not isinstance(statement.op, ast.Add | ast.Sub):
            return None
        itself = _mentions(value, target.id)
        return target.id if not itself and elementwise(model, part, value) else None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        name = statement.targets[0]
        if not isinstance(name, ast.Name) or not elementwise(model, part, statement.value):
            return None
        itself = _mentions(statement.value, name.id)
        return name.id if itself and all(elementwise(model, n, statement.value) for n in itself) else None
    return None


def _mentions(value: ast.expr, name: str) -> list[ast.Name]:
    return [n for n in ast.walk(value) if isinstance(n, ast.Name) and n.id == name]


def _addend(statement: ast.stmt, name: str) -> ast.expr | None:
    """What is added as it is, so that whole numbers stay whole."""
    if isinstance(statement, ast.AugAssign):
        return statement.value
    if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
        left, right = statement.value.left, statement.value.right
        if isinstance(statement.value.op, ast.Add) and isinstance(left, ast.Name) and left.id == name:
            return right
        if isinstance(statement.value.op, ast.Add) and isinstance(right, ast.Name) and right.id == name:
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
