"""After the fixpoint: which loops are step loops, by the events that ran inside them."""

from __future__ import annotations

from gpulint.model.evidence import spread
from gpulint.model.interpreter import Interpreter
from gpulint.model.sites import Event, LoopInfo, Phase, Region, RegionKind, Variant
from gpulint.model.values import Kind


def settle(interpreter: Interpreter) -> None:
    for variant in interpreter.variants:
        for event in variant.events:
            if event.name != "forward":
                _climb(interpreter, event, variant, event.region, False, set())
    for variant in interpreter.variants:
        for event in variant.events:
            if event.name == "forward":
                _climb(interpreter, event, variant, event.region, False, set())
    _mark_outer(interpreter)
    _mark_step_functions(interpreter)
    training = {e.module for v in interpreter.variants for e in v.events if e.name != "forward"}
    training |= {v.module for v in interpreter.variants if v.step_function is Phase.TRAINING and v.name != "forward"}
    for module in spread(interpreter.index, sorted(training, key=lambda m: m.path)):
        module.trains = True


def _mark_step_functions(interpreter: Interpreter) -> None:
    """A function that nothing calls and that takes a whole step (backward and optimizer) is called once per step."""
    for variant in interpreter.variants:
        if variant.root and variant.info is not None and not variant.callers:
            here = {e.name for e in variant.events if e.region.loop is None}
            if {"backward", "step"} <= here and variant.step_function is None:
                variant.step_function = Phase.TRAINING


def _climb(
    interpreter: Interpreter,
    event: Event,
    variant: Variant,
    region: Region,
    marked: bool,
    visited: set[tuple[int, bool]],
) -> None:
    """From an event outwards: the innermost loop becomes a step loop, a guard on the way none."""
    current: Region | None = region
    while current is not None:
        if current.kind is RegionKind.GUARD and not marked and event.name != "forward" and current.note != "except":
            current.holds_step = True
        if current.kind is RegionKind.LOOP and current.node is not None and not marked:
            info = interpreter.loops.get(current.node)
            if info is not None:
                marked = _mark(info, event)
        current = current.parent
    if marked or (id(variant), marked) in visited:
        return
    visited.add((id(variant), marked))
    for caller, call_region, _ in variant.callers:
        _climb(interpreter, event, caller, call_region, marked, visited)


def _mark(info: LoopInfo, event: Event) -> bool:
    """Mark the loop; False if it runs over a few objects (optimizers, losses), so that the next one counts too."""
    if event.name == "forward":
        if info.weak_evaluation is None:
            info.weak_evaluation, info.evaluation_module = event.node, info.evaluation_module or event.module
        return True
    small = _few(info)
    if info.training is None and not small:
        info.training, info.training_module = event.node, event.module
    return not small


def _few(info: LoopInfo) -> bool:
    iterable = info.iterates
    if iterable.items is not None:
        return True
    element = iterable.element
    if iterable.kind is Kind.CONTAINER and element is not None:
        members = element.items or (element,)
        return any(
            m.kind in (Kind.OPTIMIZER, Kind.MODULE, Kind.LOSS) or (m.kind is Kind.TENSOR and m.attached)
            for m in members
        )
    return iterable.kind is Kind.MODULE


def _mark_outer(interpreter: Interpreter) -> None:
    """Loops that stand around a step loop, in the same function or in a caller."""
    for variant in interpreter.variants:
        for region in variant.regions.values():
            if region.kind is RegionKind.LOOP and region.node is not None:
                info = interpreter.loops.get(region.node)
                if info is not None and (info.training or info.evaluation):
                    _outward(interpreter, variant, region.parent, set())


def _outward(interpreter: Interpreter, variant: Variant, region: Region | None, visited: set[int]) -> None:
    current = region
    while current is not None:
        if current.kind is RegionKind.LOOP and current.node is not None:
            info = interpreter.loops.get(current.node)
            if info is not None:
                info.outer = True
        current = current.parent
    if id(variant) in visited:
        return
    visited.add(id(variant))
    for caller, call_region, _ in variant.callers:
        _outward(interpreter, caller, call_region, visited)
