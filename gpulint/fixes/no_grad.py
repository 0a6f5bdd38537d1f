"""Evaluation without a graph: a decorator on the function that evaluates, or a block around its loop."""

from __future__ import annotations

import ast

from gpulint.edits import Edits, add_import, decorate, wrap_in_with
from gpulint.finding import Applicability, Fix
from gpulint.fixes.names import LOOPS, ancestors
from gpulint.fixes.text import merged, torch_name
from gpulint.model import Model, Site
from gpulint.model.questions import evaluation_root, is_attached, names_evaluation
from gpulint.model.syntax import FunctionInfo
from gpulint.model.values import UNKNOWN

_STEPS = ("forward", "training_step", "compute_loss", "__call__")  # run by a framework, or by others, to train
_SCRIPTS = ("main", "run", "cli", "worker", "main_worker")


def _trained(site: Site, info: FunctionInfo) -> bool:
    """Whether the function may serve a training step that is not seen: by its hook, or by what it returns."""
    if info.name in _STEPS:
        return True
    methods = [m for name in _STEPS if info.cls is not None and (m := info.cls.method(name)) is not None]
    if any(isinstance(n, ast.Attribute) and n.attr == info.name for m in methods for n in ast.walk(m.node)):
        return True
    root = evaluation_root(site)
    result = root.result if root is not None else UNKNOWN
    attached = is_attached(result) or any(is_attached(v) for v in result.items or ())
    return attached and not names_evaluation(info.name)


def _uses_gradients(node: ast.AST) -> bool:
    """A last look at the text that would lose its gradients."""
    names = {n.attr if isinstance(n, ast.Attribute) else getattr(n, "id", "") for n in ast.walk(node)}
    return bool(names & {"backward", "grad", "requires_grad_", "enable_grad", "set_grad_enabled"})


def switch_grad_off(model: Model, site: Site, info: FunctionInfo | None) -> Fix:
    """`@torch.no_grad()` where the whole function evaluates, else `with torch.no_grad():` around the loop."""
    torch = torch_name(model) or "torch"
    edits = _edits(model, site, info, torch)
    if edits is None:
        return _in_words(model, info)
    if torch_name(model) is None:
        edits = merged((*add_import(model.source.text, "import torch"), *edits))
    return Fix("Evaluate without recording a graph", Applicability.SAFE, edits)


def _edits(model: Model, site: Site, info: FunctionInfo | None, torch: str) -> Edits | None:
    text = model.source.text
    if info is not None and info.module.path == model.path and not _only_loop(model, site, info):
        if not isinstance(info.node, ast.FunctionDef) or _uses_gradients(info.node) or _trained(site, info):
            return None  # a decorator on a coroutine ends before the coroutine runs
        return decorate(text, model.span(info.node), f"@{torch}.no_grad()")
    if site.module.path != model.path:
        return None
    if info is not None and info is not site.variant.info:
        return None
    statement = _around(model, site)
    if statement is None or _uses_gradients(statement):
        return None
    return wrap_in_with(text, model.span(statement), f"{torch}.no_grad()")


def _only_loop(model: Model, site: Site, info: FunctionInfo) -> bool:
    """Whether the function does more than evaluate: the block around the loop is enough, and all that is right."""
    inline = model.inline_evaluation(site)
    root = evaluation_root(site)
    if inline is not None and (root is None or root.info is not info or model.serves_training(root)):
        return True
    script = info.cls is None and info.name in _SCRIPTS
    return script and info is site.variant.info and site.region.loop is not None


def _around(model: Model, site: Site) -> ast.stmt | None:
    """The evaluation loop around the site, as far out as it still only evaluates; else its statement."""
    inline = model.inline_evaluation(site)
    if isinstance(inline, ast.stmt):
        return inline
    found: ast.stmt | None = None
    for parent in ancestors(model, site.node):
        if isinstance(parent, LOOPS):
            info = model.loop_info(parent)
            if info is not None and info.training is None and (info.is_step or found is not None):
                found = parent
    if found is not None:
        return found
    statement = model.statement(site.node)
    return statement if isinstance(statement, ast.Assign | ast.Expr | ast.AnnAssign) else None


def _in_words(model: Model, info: FunctionInfo | None) -> Fix:
    if info is None:
        return Fix("Evaluate under `with torch.no_grad():`", Applicability.MANUAL)
    where = "" if info.module.path == model.path else f" in {info.module.path.name}"
    if isinstance(info.node, ast.AsyncFunctionDef):
        return Fix(f"Wrap the body of `{info.qualname}`{where} in `with torch.no_grad():`", Applicability.MANUAL)
    sketch = f"@torch.no_grad()\ndef {info.name}(...):"
    return Fix(f"Decorate `{info.qualname}`{where} with `@torch.no_grad()`", Applicability.MANUAL, sketch=sketch)
