"""What is kept over steps is kept without its graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from gpulint.finding import Applicability, Edit, Fix
from gpulint.fixes.names import scope_of, uses
from gpulint.fixes.text import ATOMS, atom
from gpulint.model import Kind, Model, Value
from gpulint.model.questions import Kept, is_attached

_COMPOSED = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.Await)


def detach_kept(model: Model, kept: Kept) -> Fix | None:
    """`.detach()` on the kept tensor, or on each tensor in the kept dict, list or tuple."""
    value = kept.site.args[0] if kept.site.args else None
    handed_over = kept.site.node is not kept.node  # a meter keeps it: the argument is in the caller's hands
    members: list[tuple[ast.expr, Value | None]] = []
    if handed_over and kept.value is kept.node:
        members = _keywords(model, kept.node)
    elif handed_over and isinstance(kept.value, ast.expr):
        members = [(kept.value, _value_of(model, kept.node, kept.value))]
    elif isinstance(getattr(kept.value, "ctx", None), ast.Store):
        members = [(node, value) for node in _stored(model, kept.value)]
    elif isinstance(kept.value, ast.expr):
        members = [(kept.value, value)]
    if _flows_on(model, kept):
        return None
    edits = [edit for node, each in members for edit in _edits(model, node, each)]
    if not edits or any(edit is None for edit in edits):
        return None
    safe = not any(each is not None and each.opaque for _, each in members)  # it may be a tuple of tensors
    applicability = Applicability.SAFE if safe else Applicability.UNSAFE
    return Fix("Detach what is kept", applicability, tuple(e for e in edits if e is not None))


def _flows_on(model: Model, kept: Kept) -> bool:
    """Whether a forward pass may gather what it goes on with: detaching that would stop its gradients."""
    scope = scope_of(model, kept.site.node) if not kept.step.training and kept.site.module.path == model.path else None
    root = re.split(r"[.\[]", kept.site.path)[0]
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef) or root in ("self", ""):
        return False
    found = uses(scope, root)
    return bool(found.stores) and any(model.span(n).start > model.span(kept.site.node).end for n in found.loads)


def _stored(model: Model, target: ast.AST) -> list[ast.expr]:
    """What an assignment gives the target, where it gives one thing."""
    statement = model.statement(target)
    if isinstance(statement, ast.AnnAssign):
        return [statement.value] if statement.value is not None else []
    if isinstance(statement, ast.Assign) and target in statement.targets:
        return [statement.value]
    return []


def _keywords(model: Model, call: ast.AST) -> list[tuple[ast.expr, Value | None]]:
    """The keyword arguments that hand over what is kept."""
    if not isinstance(call, ast.Call):
        return []
    for site in model.call(call)[:1]:
        given = [(k.value, site.keywords.get(k.arg)) for k in call.keywords if k.arg is not None]
        return [(node, value) for node, value in given if value is not None and is_attached(value)]
    return []


def _value_of(model: Model, call: ast.AST, argument: ast.AST) -> Value | None:
    if isinstance(call, ast.Call) and argument in call.args:
        position = call.args.index(argument)
        for site in model.call(call):
            if position < len(site.args):
                return site.args[position]
    return None


def _edits(model: Model, node: ast.expr, value: Value | None) -> Iterator[Edit | None]:
    if isinstance(node, ast.Dict | ast.List | ast.Tuple):
        members = node.values if isinstance(node, ast.Dict) else node.elts
        known = value.items if value is not None else None
        if known is not None and len(known) != len(members):
            known = None
        if known is None and value is not None and len(members) == 1 and not isinstance(node, ast.Dict):
            known = (value.element or value,)
        if known is None or any(isinstance(m, ast.Starred) for m in members):
            yield None
            return
        for member, each in zip(members, known, strict=True):
            if is_attached(each) or (each.items is not None and any(is_attached(i) for i in each.items)):
                yield from _edits(model, member, each)
        return
    if value is not None and value.kind is not Kind.TENSOR:
        literal = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else None
        if isinstance(literal, ast.Dict | ast.List | ast.Tuple):  # `OrderedDict({"loss": loss})`
            yield from _edits(model, literal, value)
        else:
            yield None
        return
    span = model.span(node)
    if isinstance(node, ATOMS):
        end = span.end
        yield Edit(end, end, ".detach()")
    elif isinstance(node, _COMPOSED):
        yield from _bracketed(model, node)
    else:
        yield None


def _bracketed(model: Model, node: ast.expr) -> Iterator[Edit | None]:
    """`(a + b).detach()`; brackets that are there already hold the method."""
    text, span = model.source.text, model.span(node)
    before, behind = text[: span.start].rstrip(), text[span.end :].lstrip()
    call = model.parent(node)
    own = not (isinstance(call, ast.Call) and node in call.args and len(call.args) == 1 and not call.keywords)
    if own and before.endswith("(") and behind.startswith(")"):
        end = span.end + text[span.end :].index(")") + 1
        yield Edit(end, end, ".detach()")
    else:
        yield Edit(span.start, span.end, atom(model, node) + ".detach()")
