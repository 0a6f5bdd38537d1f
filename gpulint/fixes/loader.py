"""Options of a loader, and copies of its batches that need not wait."""

from __future__ import annotations

import ast

from gpulint.edits import Edits
from gpulint.finding import Applicability, Fix
from gpulint.fixes.text import keyword_edits, merged
from gpulint.model import Model
from gpulint.model.heap import Loader
from gpulint.model.syntax import keyword

_POSITION = {"num_workers": 5, "pin_memory": 7}  # of the arguments of `DataLoader`


def pin_batches(model: Model, loader: Loader) -> Fix | None:
    """`pin_memory=True`, and `non_blocking=True` at the copies of its batches: either alone does nothing."""
    edits = _option(model, loader, "pin_memory", "True")
    if edits is None:
        return None
    seen: set[ast.AST] = set()
    copies: list[Edits] = []
    for node, _, module in loader.moved:
        if module.path == model.path and node not in seen:
            seen.add(node)
            copies.append(_without_waiting(model, node))
    title = "Pin the loader's batches" + (" and copy them without waiting" if any(copies) else "")
    return Fix(title, Applicability.SAFE, merged((*edits, *(e for copy in copies for e in copy))))


def load_in_workers(model: Model, loader: Loader) -> Fix | None:
    edits = _option(model, loader, "num_workers", "4")
    return Fix("Load in worker processes", Applicability.UNSAFE, edits) if edits else None


def copy_without_waiting(model: Model, node: ast.AST) -> Fix | None:
    edits = _without_waiting(model, node, everywhere=True)
    return Fix("Copy without waiting", Applicability.SAFE, edits) if edits else None


def _option(model: Model, loader: Loader, name: str, value: str) -> Edits | None:
    call = loader.node
    given = keyword(call, name)
    if given is not None and not isinstance(given, ast.Constant):
        return None  # the value comes from elsewhere: that is the place to change
    if len(call.args) > _POSITION[name] or any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if any(k.arg is None for k in call.keywords) or (name in loader.options and given is None):
        return None  # it is given by a dict or by a wrapper
    return keyword_edits(model, call, name, value)


def _without_waiting(model: Model, node: ast.AST, *, everywhere: bool = False) -> Edits:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return ()
    most = {"to": 2, "cuda": 1}.get(node.func.attr)
    if most is None or len(node.args) > most or any(isinstance(a, ast.Starred) for a in node.args):
        return ()
    if keyword(node, "non_blocking") is not None:
        return ()
    if not everywhere and not any(model.step(site) is not None for site in model.call(node)):
        return ()
    if any(site.receiver.opaque for site in model.call(node)) and model.own_batches_copy_plainly():
        return ()
    return keyword_edits(model, node, "non_blocking", "True") or ()
