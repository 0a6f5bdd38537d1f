"""Lists that grow by a read on each step: keep tensors, and read them together after the loop."""

from __future__ import annotations

import ast

from gpulint.edits import Edits
from gpulint.finding import Applicability, Edit, Fix
from gpulint.fixes.accumulate import elementwise
from gpulint.fixes.defer import after, interrupted, loop_around
from gpulint.fixes.names import Loop, empty_list, inside, scope_of, set_before, uses
from gpulint.fixes.reads import Read, fresh, kept_on_device
from gpulint.fixes.text import atom, together, torch_name
from gpulint.model import Model, Site, Step
from gpulint.model.syntax import dotted

_JOINED = {
    "torch.cat": "cat", "torch.concat": "cat", "torch.stack": "stack", "np.concatenate": "cat",
    "numpy.concatenate": "cat", "np.stack": "stack", "numpy.stack": "stack",
}  # fmt: skip


def collect_numbers(model: Model, site: Site, step: Step, read: Read) -> Fix | None:
    """`losses.append(loss.item())` becomes `losses.append(loss.detach())`, and one `tolist()` after the loop."""
    loop = loop_around(model, site, step)
    appended = _appended(model, read.node)
    if loop is None or appended is None or not read.scalar:
        return None
    statement, added, name = appended
    torch = torch_name(model)
    flat = "" if model.read_value(site).scalar else ".flatten()"
    line = f"{name} = {torch}.stack({name}){flat}.tolist() if {name} else []"
    if torch is None:
        line = f"{name} = [value.item() for value in {name}]"
    edits = collected(model, loop, statement, name, line)
    if edits is None:
        return None
    suffix = "" if fresh(model, read) or added is not read.node else ".clone()"
    kept = kept_on_device(model, read, suffix=suffix)
    return Fix("Collect on the device and read together after the loop", Applicability.UNSAFE, (kept, *edits))


def collected(model: Model, loop: Loop, statement: ast.stmt, name: str, line: str) -> Edits | None:
    """The line after the loop, if the list is only appended to until then."""
    whole = _whole_loop(model, loop, statement, name)
    scope = scope_of(model, loop)
    if whole is None or scope is None or interrupted(model, statement, loop, name):
        return None
    if not _later(model, scope, name, whole):
        return ()
    return after(model, whole, line)


def _appended(model: Model, node: ast.expr) -> tuple[ast.stmt, ast.expr, str] | None:
    """The statement that appends plain arithmetic on the node to a list, what it appends, and the list."""
    statement = model.statement(node)
    added: list[ast.expr] = []
    owner: ast.expr | None = None
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call) and not statement.value.keywords:
        func = statement.value.func
        if isinstance(func, ast.Attribute) and func.attr == "append":
            owner, added = func.value, statement.value.args
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
        if isinstance(statement.value, ast.List):
            owner, added = statement.target, statement.value.elts
    if statement is None or not isinstance(owner, ast.Name) or len(added) != 1:
        return None
    return (statement, added[0], owner.id) if elementwise(model, node, added[0]) else None


def _whole_loop(model: Model, loop: Loop, own: ast.stmt, name: str) -> ast.stmt | None:
    """The loop, or the one around it, before which the list is made empty and after which all its uses stand."""
    scope = scope_of(model, loop)
    start = set_before(model, loop, name, empty_list)
    if scope is None or start is None:
        return None
    whole = start[1]
    found = uses(scope, name)
    if found.captured or any(_else_inside(model, node, whole, own) for node in (*found.loads, *found.stores)):
        return None
    start_of_loop = model.span(whole).start
    earlier = any(model.span(node).start < start_of_loop for node in found.loads)  # it may be shared by then
    return None if earlier else whole


def _else_inside(model: Model, node: ast.AST, whole: ast.stmt, own: ast.stmt) -> bool:
    return inside(model, node, whole) and not inside(model, node, own)


def _later(model: Model, scope: ast.AST, name: str, whole: ast.stmt) -> list[ast.Name]:
    end = model.span(whole).end
    return [n for n in uses(scope, name).loads if model.span(n).start >= end]


# ---- tensors -------------------------------------------------------------------------------------------


def collect_tensors(model: Model, site: Site, step: Step, read: Read) -> Fix | None:
    """`labels.append(t.cpu())` … `torch.cat(labels)` becomes `labels.append(t)` … `torch.cat(labels).cpu()`.

    Not for a model's outputs: collected on the device they would fill it.
    """
    loop = loop_around(model, site, step)
    appended = _appended(model, read.node)
    if loop is None or appended is None or model.read_value(site).bulk or model.read_value(site).opaque:
        return None
    statement, added, name = appended
    scope = scope_of(model, loop)
    whole = _whole_loop(model, loop, statement, name)
    if added is not read.node or scope is None or whole is None or interrupted(model, statement, loop, name):
        return None
    later = _later(model, scope, name, whole)
    as_array = ".numpy()" in model.text(read.node).replace(" ", "")
    joins = together(_join(model, node, as_array) for node in later)
    if not joins:
        return None
    suffix = "" if fresh(model, read) else ".clone()"
    edits = (kept_on_device(model, read, suffix=suffix), *joins)
    return Fix("Collect on the device and copy once after the loop", Applicability.UNSAFE, edits)


def _join(model: Model, node: ast.Name, as_array: bool) -> Edits | None:
    """`torch.cat(xs)` with the copy to the host behind it."""
    call = model.parent(node)
    torch = torch_name(model)
    if not isinstance(call, ast.Call) or torch is None or call.args[:1] != [node] or len(call.args) > 2:
        return None
    name = dotted(call.func) or ""
    how = _JOINED.get(name.replace(f"{torch}.", "torch.", 1) if name.startswith(f"{torch}.") else name)
    if how is None or any(k.arg not in ("dim", "axis") for k in call.keywords):
        return None
    host = name.startswith(("np.", "numpy."))
    if host is not as_array:
        return None
    span = model.span(call)
    if not host:
        return (Edit(span.end, span.end, ".cpu()"),)
    rest = "".join(f", dim={model.text(a)}" for a in (*call.args[1:], *(k.value for k in call.keywords)))
    return (Edit(span.start, span.end, f"{torch}.{how}({atom(model, node)}{rest}).cpu().numpy()"),)
