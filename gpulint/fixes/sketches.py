"""Fixes in words where the choice is a person's, with the lines that the mended file would say."""

from __future__ import annotations

import ast

from gpulint.finding import Applicability, Fix
from gpulint.fixes.names import LOOPS
from gpulint.model import Model, Site, Step
from gpulint.model.questions import Kept
from gpulint.model.syntax import dotted

EVERY = 100


def check_rarely(model: Model, site: Site, step: Step) -> Fix:
    """GPU103: a branch on a tensor."""
    statement = model.statement(site.node)
    tested = model.short(site.node)
    sketch = ""
    if isinstance(statement, ast.If) and statement.test is site.node:
        sketch = f"if {_rare(model, step)} and {_operand(site.node, tested)}:\n    ..."
    elif isinstance(statement, ast.Assert):
        sketch = f"torch._assert_async({tested})"
    title = f"Decide on the device (`torch.where`) or check every {EVERY} steps"
    return Fix(title, Applicability.MANUAL, sketch=sketch)


def log_rarely(model: Model, site: Site, step: Step) -> Fix:
    """GPU104: a tensor that is formatted."""
    statement = model.statement(site.node)
    sketch = ""
    if isinstance(statement, ast.Expr):
        sketch = f"if {_rare(model, step)}:\n    {model.short(statement, 100)}"
    return Fix(f"Log every {EVERY} steps, from an accumulator on the device", Applicability.MANUAL, sketch=sketch)


def flush_blocks(model: Model, kept: Kept) -> Fix:
    """GPU303: outputs that pile up on the device."""
    where = kept.site.path or "outputs"
    value = model.short(kept.value)
    counter = _counter(model, kept.step) or "step"
    sketch = (
        f"block.append({value})\n"
        f"if ({counter} + 1) % 64 == 0:\n"
        f"    {where}.append(torch.cat(block).cpu())\n"
        "    block.clear()"
    )
    title = "Move a block to the host every N steps, or reduce on the fly"
    return Fix(title, Applicability.MANUAL, sketch=sketch)


def pin_source(model: Model, site: Site) -> Fix:
    """GPU210: an asynchronous copy from pageable memory."""
    node = site.node
    sketch = ""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if site.name == "copy_" and node.args:
            source, rest = model.short(node.args[0]), f"{model.short(node.func.value)}.copy_(pinned, non_blocking=True)"
        else:
            source = model.short(node.func.value)
            rest = "pinned" + model.short(node)[len(source) :] if model.short(node).startswith(source) else "pinned"
        sketch = f"pinned = torch.empty(size, dtype=dtype, pin_memory=True)  # once\npinned.copy_({source})\n{rest}"
    return Fix("Allocate the source pinned, once, before the loop", Applicability.MANUAL, sketch=sketch)


def _rare(model: Model, step: Step) -> str:
    return f"{_counter(model, step) or 'step'} % {EVERY} == 0"


def _counter(model: Model, step: Step) -> str | None:
    """The step's number, where the loop has one: ``for step, batch in enumerate(loader)``."""
    node = step.loop.node if step.loop is not None else None
    if not isinstance(node, LOOPS) or isinstance(node, ast.While):
        return None
    target, source = node.target, node.iter
    called = dotted(source.func) if isinstance(source, ast.Call) else None
    if called == "enumerate" and isinstance(target, ast.Tuple) and isinstance(target.elts[0], ast.Name):
        return target.elts[0].id
    return target.id if called == "range" and isinstance(target, ast.Name) else None


def _operand(node: ast.AST, text: str) -> str:
    return f"({text})" if isinstance(node, ast.BoolOp) else text
