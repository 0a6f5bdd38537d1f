"""Values that outlive their step: kept graphs, and outputs that pile up on the GPU."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from gpulint.finding import Confidence
from gpulint.model.base import confidence_of
from gpulint.model.conditions import resets
from gpulint.model.keep import Mark
from gpulint.model.questions import (
    Kept,
    evaluation_root,
    from_parameter,
    holds,
    is_attached,
    kept_expression,
    kept_values,
    tensors_in,
)
from gpulint.model.sites import RegionKind, Site, SiteKind
from gpulint.model.steps import Step, Steps
from gpulint.model.syntax import FunctionInfo, ModuleInfo, dotted
from gpulint.model.values import Value


class KeptValues(Steps):
    """Values that outlive their step: kept graphs, and outputs that pile up on the GPU."""

    def kept_graphs(self) -> Iterator[Kept]:
        """Values in the autograd graph that are kept over steps and never reach a backward pass."""
        yield from self._here("kept graphs", lambda values: any(is_attached(v) for v in values), graphs=True)

    def kept_outputs(self) -> Iterator[Kept]:
        """Outputs on the GPU that are collected over steps and used on the host afterwards."""
        yield from self._here(
            "kept outputs", lambda values: any(v.on_gpu and v.bulk and not v.attached for v in values), graphs=False
        )

    def _here(self, what: str, wanted: Callable[[list[Value]], bool], graphs: bool) -> Iterator[Kept]:
        """Those of the project's kept values that are reported in this file; found once for all files."""
        found = self._interpreter.memo.get(what)
        if found is None:
            found = self._interpreter.memo[what] = list(self._kept(wanted, graphs))
        yield from (kept for module, kept in found if module is self._module)

    def _kept(self, wanted: Callable[[list[Value]], bool], graphs: bool) -> Iterator[tuple[ModuleInfo, Kept]]:
        seen: set[ast.AST] = set()
        for site, mark in kept_values(self._interpreter):
            values = tensors_in(self._interpreter, site.args[0])
            if not wanted(values) or mark.used_for("backward") or site.receiver.const == "bounded":
                continue
            if not graphs and (site.kind is not SiteKind.KEEP or not mark.used_for("host")):
                continue
            if site.name == "constant-key" or (site.name == "updated" and not graphs):
                continue  # a running sum stays as large as it is
            step = self.step(site)
            if step is None or not self._persists(site, mark, step):
                continue
            if graphs and not step.training and evaluation_root(site) is not None:
                continue  # GPU301 names the cause
            for node, value, module in self._where_to_edit(site):
                if node not in seen:
                    seen.add(node)
                    chosen = [v for v in values if v.on_gpu] or values
                    yield module, Kept(node, value, site, step, self._kept_confidence(chosen, graphs))

    @staticmethod
    def _kept_confidence(values: list[Value], graphs: bool) -> Confidence:
        if graphs:
            return Confidence.CERTAIN if all(v.sure for v in values) else Confidence.LIKELY
        return max(confidence_of(v) for v in values)

    def _persists(self, site: Site, mark: Mark, step: Step) -> bool:
        """Whether what the site adds to is found again on the next step."""
        if not holds(site.receiver, mark):
            return False
        root = site.path.partition(".")[0].partition("[")[0]
        info = site.variant.info
        if step.loop is not None and step.loop.node is not None:
            if self._flushed(site, step.loop.node, root):
                return False
            if mark in step.loop.carried:
                return not self._reset_outside(site, mark, step)
            inside = any(r.node is step.loop.node for r in site.region.outward())
            if inside:
                return root == "self" or "." in site.path
        return root == "self" or (info is None) or not self._local(info, root)

    def _reset_outside(self, site: Site, mark: Mark, step: Step) -> bool:
        """Whether a step loop further out starts afresh on each pass: what the inner one keeps is bounded."""
        outward = site.region.outward()
        inner = next(
            (i for i, r in enumerate(outward) if step.loop is not None and r.node is step.loop.node), len(outward)
        )
        for region in outward[inner + 1 :]:
            info = self.loop_info(region.node)
            if region.kind is RegionKind.LOOP and info is not None and info.is_step and mark not in info.carried:
                return True
        return False

    def _flushed(self, site: Site, loop: ast.AST, root: str) -> bool:
        """Whether the loop, the function that keeps, or a method called there empties the container."""
        scopes = [loop]
        if site.variant.info is not None and not any(r.node is loop for r in site.region.outward()):
            scopes.append(site.variant.info.node)  # the loop calls the function that keeps
        cls = site.variant.info.cls if site.variant.info is not None else None
        for scope in list(scopes):
            for node in ast.walk(scope):
                name = dotted(node.func) or "" if isinstance(node, ast.Call) else ""
                method = cls.method(name[5:]) if cls is not None and name.startswith("self.") else None
                if method is not None:
                    scopes.append(method.node)
        return any(resets(scope, site.path) or resets(scope, root) for scope in scopes)

    @staticmethod
    def _local(info: FunctionInfo, name: str) -> bool:
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(info.node)
        )

    def _where_to_edit(self, site: Site) -> Iterator[tuple[ast.AST, ast.AST, ModuleInfo]]:
        """The kept expression; for a meter's method, the call in the step that hands the value over."""
        parameter = from_parameter(site)
        if parameter is None or not site.variant.callers:
            yield site.node, kept_expression(site), site.module
            return
        for caller, region, node in site.variant.callers:
            if not isinstance(node, ast.Call) or self.step_at(region, caller, set()) is None:
                continue
            call = caller.sites.get((SiteKind.CALL, node))
            argument = next(
                (
                    a
                    for a, v in zip(node.args, call.args if call else ())
                    if any(is_attached(t) for t in tensors_in(self._interpreter, v))
                ),
                None,
            )
            yield node, argument or node, caller.module
