"""Evaluations that run with gradients on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpulint.finding import Confidence, Evidence
from gpulint.model.heap import Closure
from gpulint.model.questions import (
    callees,
    evaluation_root,
    names_evaluation,
    trains,
)
from gpulint.model.sites import LoopInfo, Site, SiteKind, Variant
from gpulint.model.steps import Steps
from gpulint.model.syntax import FunctionInfo
from gpulint.model.values import Kind


class Evaluations(Steps):
    """Evaluations that run with gradients on."""

    def evaluations_with_gradients(self) -> Iterator[tuple[Site, Confidence, FunctionInfo | None]]:
        """The first forward pass of each evaluating function that runs with gradients on."""
        done: set[object] = set()
        for group in self.sites(SiteKind.CALL):
            for site in group:
                if not self._runs_module(site) or self._inside_module(site) or self._frozen(site):
                    continue
                root = evaluation_root(site)
                inline = self.inline_evaluation(site)
                if inline is not None and inline not in done and (root is None or self.serves_training(root)):
                    done.add(inline)
                    yield site, Confidence.CERTAIN, site.variant.info
                    break
                if root is None or (root.info or root) in done or self.serves_training(root):
                    continue
                mark = self._interpreter.marks.get(("forward", site.node))
                if mark is not None and mark.used_for("backward"):
                    continue
                confidence = self._evaluation_confidence(site, root)
                done.add(root.info or root)
                yield site, confidence, root.info
                break

    def serves_training(self, variant: Variant) -> bool:
        """Whether the function, or anything that it calls, uses gradients or takes a step."""
        graph = self._interpreter.memo.get("callees")
        if graph is None:
            graph = self._interpreter.memo["callees"] = callees(self._interpreter)
        return trains(graph, variant)

    @staticmethod
    def _frozen(site: Site) -> bool:
        """A module none of whose parameters needs a gradient records no graph by itself."""
        module = site.func.ref.receiver if isinstance(site.func.ref, Closure) else site.func
        return module is not None and (bool(getattr(module.ref, "frozen", False)) or module.const == "frozen")

    def _runs_module(self, site: Site) -> bool:
        """A module is called, or a method of one that calls modules."""
        if site.name == "forward":
            return True
        if site.name.startswith(("load", "save", "init", "reset", "register", "set_", "get_input", "from_pretrained")):
            return False
        closure = site.func.ref
        if not isinstance(closure, Closure) or closure.receiver is None or closure.receiver.kind is not Kind.MODULE:
            return False
        return closure.info in self._interpreter.running_modules

    def _inside_module(self, site: Site) -> bool:
        """A module called by a method of another: the outer call is the one to guard."""
        info = site.variant.info
        return (
            info is not None
            and info.cls is not None
            and bool(site.variant.callers)
            and self._interpreter.is_module(info.cls)
            and not names_evaluation(info.name)
        )

    def inline_evaluation(self, site: Site) -> ast.AST | None:
        """The evaluation loop, after ``.eval()``, of a function that also trains, with gradients on."""
        loop = site.region.loop
        info = self.loop_info(loop.node) if loop is not None else None
        if site.grad is not True or info is None or info.training is not None or info.evaluation is None:
            return None
        if self._uses_gradients(info):
            return None
        modes = [m for m in site.variant.modes if m[0] < site.line]
        return info.node if modes and max(modes)[1] == "eval" else None

    def _uses_gradients(self, info: LoopInfo) -> bool:
        """Whether the loop's body, or a function that it calls, asks for gradients: an attack, saliency."""
        inside = {node for node in ast.walk(info.node) if isinstance(node, ast.Call)}
        if any(
            isinstance(c.func, ast.Attribute) and c.func.attr in ("grad", "backward", "requires_grad_") for c in inside
        ):
            return True
        return any(
            node in inside and self.serves_training(variant)
            for variant in self._interpreter.variants
            for _, _, node in variant.callers
        )

    def _evaluation_confidence(self, site: Site, root: Variant) -> Confidence:
        step = self.step(site)
        if root.eval_mode or any(v.eval_mode for v, _, _ in root.callers):
            return Confidence.CERTAIN if step is not None or root.info is not None else Confidence.LIKELY
        if step is not None and step.loop is not None and step.loop.evaluation is not None:
            return Confidence.LIKELY
        return Confidence.LIKELY if root.callers else Confidence.POSSIBLE

    def evidence_of_evaluation(self, site: Site, info: FunctionInfo | None) -> list[Evidence]:
        links = [self.evidence_at(site.node, "a module is called here with autograd on")]
        if info is not None:
            links.append(
                self.evidence_at(info.node, f"`{info.qualname}` evaluates: nothing in it uses gradients", info.module)
            )
        return links
