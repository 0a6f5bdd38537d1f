"""`torch.cuda.amp.*` becomes `torch.amp.*`, with the device as first argument: all uses of a file at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from gpulint.edits import Edits, insert_positional, set_keyword
from gpulint.finding import Applicability, Edit, Fix
from gpulint.fixes.text import merged
from gpulint.model import Model
from gpulint.model.conditions import on_version
from gpulint.model.syntax import dotted

_NAMES = ("autocast", "GradScaler", "custom_fwd", "custom_bwd")
_OLD = {"torch.cuda.amp": "cuda", "torch.cpu.amp": "cpu"}
_AUTOCAST = ("enabled", "dtype", "cache_enabled")  # the old order of autocast's arguments
TITLE = "Use `torch.amp`, which names the device"


def renew_amp(model: Model, name: str) -> Fix:
    """One fix for the whole file: an import and its uses must change together."""
    if name.startswith("apex"):
        return Fix("Use `torch.amp.autocast` and `torch.amp.GradScaler`", Applicability.MANUAL)
    edits = _whole_file(model)
    return Fix(TITLE, Applicability.SAFE, edits) if edits else Fix(TITLE, Applicability.MANUAL)


@dataclass(slots=True)
class _Imports:
    """What the file's imports bind, and their edits."""

    bound: dict[str, tuple[str, str]] = field(default_factory=dict)  # name -> device, what it is ("": the module)
    roots: set[str] = field(default_factory=set)  # names of the torch package itself
    edits: list[Edit] = field(default_factory=list)


def _whole_file(model: Model) -> Edits | None:
    imports = _imports(model)
    if imports is None or any(name in _stored(model) for name in imports.bound):
        return None
    if imports.bound and "__all__" in model.source.text:
        return None  # other files may call what this one hands on
    edits = imports.edits
    for node, device, what, attribute in _uses(model, imports):
        change = _called(model, node, device, what)
        if change is None or _is_shim(model, node):
            return None
        edits += change if attribute is None else (attribute, *change)
    return merged(edits) if edits else None


def _imports(model: Model) -> _Imports | None:
    found = _Imports()
    for node in ast.walk(model.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in _OLD and alias.asname:
                    found.bound[alias.asname] = (_OLD[alias.name], "")
                    found.edits.append(_renamed(model, node, alias.name))
                elif alias.name == "torch" or (alias.name.startswith("torch.") and alias.asname is None):
                    found.roots.add(alias.asname or "torch")
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            brought = _imported(model, node)
            if brought is None:
                continue
            names, edit = brought
            if edit is None or _is_shim(model, node):
                return None
            found.bound.update(names)
            found.edits.append(edit)
    return found


def _imported(model: Model, node: ast.ImportFrom) -> tuple[dict[str, tuple[str, str]], Edit | None] | None:
    """The old names that an import brings, and the import's edit; None for any other import."""
    if node.module in _OLD:
        names = {a.asname or a.name: (_OLD[node.module], a.name) for a in node.names}
        fits = all(a.name in _NAMES for a in node.names)
        return names, _renamed(model, node, node.module) if fits else None
    if node.module in ("torch.cuda", "torch.cpu") and any(a.name == "amp" for a in node.names):
        alias = next(a for a in node.names if a.name == "amp")
        names = {alias.asname or "amp": (node.module.removeprefix("torch."), "")}
        return names, _renamed(model, node, node.module, "torch") if len(node.names) == 1 else None
    return None


def _renamed(model: Model, node: ast.stmt, old: str, new: str = "torch.amp") -> Edit:
    span = model.span(node)
    start = span.start + model.text(node).index(old)
    return Edit(start, start + len(old), new)


def _uses(model: Model, imports: _Imports) -> Iterator[tuple[ast.expr, str, str, Edit | None]]:
    """Each use of an old name: the node, its device, what it is, and the edit of the name itself."""
    bound = imports.bound
    for node in ast.walk(model.tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and bound.get(node.id, ("", ""))[1]:
            yield node, *bound[node.id], None
        if not isinstance(node, ast.Attribute) or node.attr not in _NAMES:
            continue
        owner = dotted(node.value) or ""
        if owner in bound and not bound[owner][1]:
            yield node, bound[owner][0], node.attr, None
            continue
        root, _, rest = owner.partition(".")
        if root in imports.roots and f"torch.{rest}" in _OLD:
            span = model.span(node.value)
            yield node, _OLD[f"torch.{rest}"], node.attr, Edit(span.start, span.end, f"{root}.amp")


def _called(model: Model, node: ast.expr, device: str, what: str) -> Edits | None:
    """The device for one use: an argument of its call, or of the decorator."""
    parent = model.parent(node)
    text = model.source.text
    quoted = f'"{device}"'
    if isinstance(parent, ast.Call) and parent.func is node:
        span = model.span(parent)
        if any(isinstance(a, ast.Starred) for a in parent.args):
            return None
        if what == "GradScaler":
            return insert_positional(text, span, quoted)
        if what in ("custom_fwd", "custom_bwd"):
            return set_keyword(text, span, "device_type", quoted)
        if len(parent.args) > len(_AUTOCAST):
            return None
        starts = [model.span(a).start for a in parent.args]
        first = insert_positional(text, span, quoted)
        if first is None or (starts and starts[0] != first[0].start):
            return None  # an argument in brackets, say
        return merged((*first, *(Edit(at, at, f"{name}=") for name, at in zip(_AUTOCAST, starts))))
    decorates = isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and node in parent.decorator_list
    if decorates and what in ("custom_fwd", "custom_bwd"):
        end = model.span(node).end
        return (Edit(end, end, f"(device_type={quoted})"),)
    if what == "GradScaler" and _only_mentioned(parent, node):
        return ()
    return None


def _only_mentioned(parent: ast.AST | None, node: ast.expr) -> bool:
    """An annotation or an `isinstance`: nothing is called."""
    if isinstance(parent, ast.AnnAssign | ast.arg) and parent.annotation is node:
        return True
    if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef) and parent.returns is node:
        return True
    if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.BitOr):
        return True
    if isinstance(parent, ast.Subscript) and parent.slice is node:
        return True
    return isinstance(parent, ast.Call) and dotted(parent.func) == "isinstance"


def _stored(model: Model) -> set[str]:
    names = {n.id for n in ast.walk(model.tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)}
    names |= {n.arg for n in ast.walk(model.tree) if isinstance(n, ast.arg)}
    return names | {n.name for n in ast.walk(model.tree) if isinstance(n, ast.FunctionDef | ast.ClassDef)}


def _is_shim(model: Model, node: ast.AST) -> bool:
    """Whether the old name stands in a ``try`` or behind a version check."""
    current: ast.AST | None = node
    while current is not None:
        parent = model.parent(current)
        if isinstance(parent, ast.Try | ast.ExceptHandler) and isinstance(node, ast.Import | ast.ImportFrom):
            return True
        if isinstance(parent, ast.ExceptHandler):
            return True
        if isinstance(parent, ast.If) and on_version(parent):
            return True
        current = parent
    return False
