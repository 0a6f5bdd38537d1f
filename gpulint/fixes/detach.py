"""What is kept over steps is kept without its graph."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpulint.finding import Applicability, Edit, Fix
from gpulint.fixes.text import atom
from gpulint.model import Model, Value
from gpulint.model.questions import Kept, is_attached

_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_COMPOSED = (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.Await)


def detach_kept(model: Model, kept: Kept) -> Fix | None:
    """`.detach()` on the kept tensor, or on each tensor in the kept dict, list or tuple."""
    value = kept.site.args[0] if kept.site.args else None
    handed_over = kept.site.node is not kept.node  # a meter keeps it: the argument is in the caller's hands
    node: ast.AST | None = kept.value
    if handed_over and kept.value is kept.node:
        node, value = _argument(model, kept.node)
    elif isinstance(getattr(kept.value, "ctx", None), ast.Store):
        statement = model.statement(kept.value)
        node = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if isinstance(statement, ast.Assign) and any(isinstance(t, ast.Tuple | ast.List) for t in statement.targets):
            node = None
    if handed_over and kept.value is not kept.node:
        value = _value_of(model, kept.node, kept.value)
    edits = list(_edits(model, node, value)) if isinstance(node, ast.expr) else []
    if not edits or any(edit is None for edit in edits):
        return None
    return Fix("Detach what is kept", Applicability.SAFE, tuple(e for e in edits if e is not None))


def _argument(model: Model, call: ast.AST) -> tuple[ast.AST | None, Value | None]:
    """The keyword argument that hands over what is kept, where only one is attached."""
    if not isinstance(call, ast.Call):
        return None, None
    found: list[tuple[ast.AST, Value]] = []
    for site in model.call(call)[:1]:
        found = [
            (k.value, site.keywords[k.arg])
            for k in call.keywords
            if k.arg in site.keywords and is_attached(site.keywords[k.arg])
        ]
    return found[0] if len(found) == 1 else (None, None)


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
    span = model.span(node)
    if isinstance(node, _PLAIN):
        end = span.end
        yield Edit(end, end, ".detach()")
    elif isinstance(node, _COMPOSED):
        if isinstance(model.parent(node), ast.Call | ast.AugAssign | ast.Assign | ast.Dict | ast.List | ast.Tuple):
            yield from _bracketed(model, node)
        else:
            yield None
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
