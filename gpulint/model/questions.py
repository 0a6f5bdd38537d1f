"""Questions that need the whole project: kept values, evaluations with gradients, programs that train."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpulint.finding import Confidence
from gpulint.model.keep import Mark
from gpulint.model.sites import Site, SiteKind, Variant
from gpulint.model.values import Graph, Value

if TYPE_CHECKING:
    from gpulint.model.interpreter import Interpreter
    from gpulint.model.steps import Step

_EVALUATES = re.compile(
    r"(^|_)(?!evaluate_actions|val_to)(eval|evals|evaluate|evaluates|evaluation|evaluating|validate|validation|val|valid|test|testing|infer|inference|"
    r"predict|predicts|prediction|predictions)(_|$)|^(do_)?(eval|validate)|_eval$"
)
_GENERATES = re.compile(r"(^|_)(score|benchmark|sample|generate|decode|embed|extract|encode|detect|demo)(_|$)")


@dataclass(frozen=True, slots=True)
class Kept:
    """A value that outlives its step: where to report it, the expression, and where it is kept."""

    node: ast.AST
    value: ast.AST
    site: Site
    step: Step
    confidence: Confidence


def callees(interpreter: Interpreter) -> dict[Variant, list[Variant]]:
    graph: dict[Variant, list[Variant]] = {}
    for variant in interpreter.variants:
        for caller, _, _ in variant.callers:
            graph.setdefault(caller, []).append(variant)
    return graph


def reachable(graph: dict[Variant, list[Variant]], start: Variant) -> Iterator[Variant]:
    seen = {start}
    stack = [start]
    while stack:
        variant = stack.pop()
        yield variant
        for callee in graph.get(variant, ()):
            if callee not in seen:
                seen.add(callee)
                stack.append(callee)


# ---- evaluation with gradients ---------------------------------------------------------------------------


def names_evaluation(name: str) -> bool:
    return _EVALUATES.search(name.lower()) is not None


def is_test(variant: Variant) -> bool:
    """A unit test: what it runs once on tiny inputs is no evaluation."""
    path = variant.module.path
    parts = {part.lower() for part in path.parts[-3:-1]}
    return (
        path.name.startswith("test_")
        or path.name.endswith("_test.py")
        or bool(parts & {"test", "tests", "testing"})
        or (
            variant.info is not None
            and variant.info.cls is not None
            and any("TestCase" in b for b in variant.info.cls.all_outside)
        )
    )


def evaluates(variant: Variant) -> bool:
    """Whether the function is one that evaluates: by its name, or by `.eval()` and a name that does not train."""
    if is_test(variant):
        return False
    if variant.info is None:
        return variant.eval_mode
    return names_evaluation(variant.name) or variant.eval_mode


def evaluation_root(site: Site) -> Variant | None:
    """The outermost evaluating function through which the site runs with gradients on."""
    if site.grad is not True:
        return None
    found: Variant | None = None
    stack = [site.variant]
    seen: set[Variant] = set()
    while stack:
        variant = stack.pop()
        if variant in seen:
            continue
        seen.add(variant)
        if evaluates(variant):
            found = variant
        for caller, _, _ in variant.callers:
            if caller.info is not None and caller not in seen:
                stack.append(caller)
    return found


def trains(graph: dict[Variant, list[Variant]], variant: Variant) -> bool:
    """Whether the function, or anything that it calls, uses gradients or takes a step."""
    if variant.trains is None:
        variant.trains = _trains(graph, variant)
    return variant.trains


def _trains(graph: dict[Variant, list[Variant]], variant: Variant) -> bool:
    return any(v.uses_gradients or any(e.name != "forward" for e in v.events) for v in reachable(graph, variant))


# ---- kept values ------------------------------------------------------------------------------------------


def kept_values(interpreter: Interpreter) -> Iterator[tuple[Site, Mark]]:
    """Sites that add to something that they find again on the next pass, with a tensor among the values."""
    for variant in interpreter.variants:
        for site in variant.sites.values():
            if site.kind not in (SiteKind.AUGMENT, SiteKind.KEEP) or not site.args:
                continue
            mark = interpreter.marks.get(("keep", site.node))
            if mark is not None:
                yield site, mark


def holds(value: Value, mark: Mark) -> bool:
    """Whether a value, or anything in it, carries the mark."""
    return (
        mark in value.marks
        or (value.element is not None and holds(value.element, mark))
        or (value.items is not None and any(holds(item, mark) for item in value.items))
    )


def tensors_in(interpreter: Interpreter, value: Value) -> list[Value]:
    return [v for v in interpreter.flatten(value) if v.is_tensor]


def from_parameter(site: Site) -> str | None:
    """The parameter of the site's function that the kept expression is made of, if it is that alone."""
    info = site.variant.info
    if info is None or info.cls is None or info.name in ("__init__",) or site.variant.step_function is not None:
        return None
    value = kept_expression(site)
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)} - {"self"}
    arguments = info.node.args
    known = {
        a.arg for a in (*arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg) if a is not None
    }
    for node in ast.walk(info.node):  # `for k, v in kwargs.items():` draws parameters from parameters
        if isinstance(node, ast.For) and {n.id for n in ast.walk(node.iter) if isinstance(n, ast.Name)} & known:
            known |= {n.id for n in ast.walk(node.target) if isinstance(n, ast.Name)}
    found = sorted(names & known)
    return found[0] if found and names <= known else None


def kept_expression(site: Site) -> ast.expr:
    node = site.node
    if isinstance(node, ast.AugAssign):
        return node.value
    if isinstance(node, ast.Call):
        return node.args[-1] if node.args else node
    if isinstance(node, ast.Assign):
        return node.value.right if isinstance(node.value, ast.BinOp) else node.value
    return node  # type: ignore[return-value]


def is_attached(value: Value) -> bool:
    return value.graph is Graph.ATTACHED
