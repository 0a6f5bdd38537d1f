"""Why code runs on every step: its step loop, or the step function that it stands in."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from gpulint.finding import Confidence, Evidence
from gpulint.model.base import FileModel, _a
from gpulint.model.heap import Loader
from gpulint.model.sites import LoopInfo, Phase, Region, RegionKind, Site, Variant


@dataclass(frozen=True, slots=True)
class Step:
    """Why code runs on every step: its step loop, or the step function that it stands in."""

    phase: Phase
    loop: LoopInfo | None
    variant: Variant

    @property
    def training(self) -> bool:
        return self.phase is Phase.TRAINING


class Steps(FileModel):
    """Why code runs on every step: its step loop, or the step function that it stands in."""

    def step(self, site: Site) -> Step | None:
        """The step loop or step function on whose every pass the site runs, else None."""
        return self.step_at(site.region, site.variant, set())

    def step_at(self, region: Region, variant: Variant, visited: set[int]) -> Step | None:
        current: Region | None = region
        found: Step | None = None
        while current is not None:
            if current.kind is RegionKind.GUARD and not current.holds_step:
                return found
            if current.kind is RegionKind.ALLOWED:
                return None
            if current.kind is RegionKind.LOOP and current.node is not None:
                info = self._interpreter.loops.get(current.node)
                if info is not None and info.is_step:
                    here = Step(info.phase, info, variant)
                    if info.training or info.evaluation:
                        return here
                    found = found or here  # weak evidence: look for better further out
            current = current.parent
        if self._interpreter.allowed(variant):
            return None
        if variant.step_function is not None:
            return Step(variant.step_function, None, variant)
        if id(variant) in visited:
            return found
        visited.add(id(variant))
        for caller, call_region, _ in variant.callers:
            step = self.step_at(call_region, caller, visited)
            if step is not None and (found is None or step.training or not found.training):
                found = step
                if step.training:
                    break
        return found

    def every_step(
        self, groups: Iterable[list[Site]], judge: Callable[[Site, Step], Confidence | None]
    ) -> Iterator[tuple[Confidence, Site, Step]]:
        """Of the places that run on every step, the surest view of each, where ``judge`` sees a fault."""
        for group in groups:
            best = self._best(group, judge)
            if best is not None:
                yield best

    def _best(
        self, group: list[Site], judge: Callable[[Site, Step], Confidence | None]
    ) -> tuple[Confidence, Site, Step] | None:
        found: tuple[Confidence, Site, Step] | None = None
        for site in group:
            step = self.step(site)
            confidence = judge(site, step) if step is not None else None
            if step is not None and confidence is not None and (found is None or confidence > found[0]):
                found = confidence, site, step
        return found

    def nested(self, site: Site, step: Step) -> bool:
        """Whether a further loop stands between the site and its step loop: once per image, per element."""
        loop = site.region.loop
        return loop is not None and (step.loop is None or loop.node is not step.loop.node)

    def over_parameters(self, site: Site) -> bool:
        """Whether the site runs once per parameter of a module: a cause of its own."""
        loop = site.region.loop
        node = loop.node if loop is not None else None
        iterable = node.iter if isinstance(node, ast.For | ast.comprehension) else None
        return iterable is not None and "parameters" in ast.unparse(iterable)

    def evidence_of_step(self, step: Step) -> list[Evidence]:
        """The links that show why the site runs on every step."""
        links: list[Evidence] = []
        if step.loop is not None:
            loop, phase = step.loop, step.phase.value
            at = loop.node if hasattr(loop.node, "lineno") else getattr(loop.node, "target", loop.node)
            links.append(self.evidence_at(at, f"this loop is {_a(phase)} step loop", loop.module))
            reason = loop.reason
            if reason is not None:
                owner = loop.training_module if loop.training is not None else loop.evaluation_module
                what = (
                    "the step is taken here"
                    if loop.training is not None
                    else "a module is called here on data of the loop"
                )
                links.append(self.evidence_at(reason, what, owner or loop.module))
        else:
            info = step.variant.info
            if info is not None:
                links.append(
                    self.evidence_at(
                        info.node, f"`{info.qualname}` is a step function: it runs once per step", info.module
                    )
                )
        return links

    def step_over(self, loader: Loader) -> LoopInfo | None:
        """A step loop that draws its batches from the loader."""
        for info in self._interpreter.loops.values():
            ref = info.iterates.ref
            if isinstance(ref, frozenset) and loader in ref and info.is_step:
                return info
        return None

    def serves_framework(self, loader: Loader) -> bool:
        """Whether a framework fetches the loader from a hook: ``train_dataloader``."""
        info = loader.variant.info
        return info is not None and info.cls is not None and info.name.endswith("dataloader")
