"""Values that are read on the host: which tensor, whether it could wait, whether it was read before."""

from __future__ import annotations

import ast

from gpulint.model.api import api
from gpulint.model.sites import Region, Site, SiteKind
from gpulint.model.steps import Step, Steps
from gpulint.model.values import Value

_FETCHES = ("item", "tolist", "cpu", "builtins.float", "builtins.int")


class Reads(Steps):
    """Values that are read on the host: which tensor, whether it could wait, whether it was read before."""

    @staticmethod
    def read_value(site: Site) -> Value:
        """The tensor whose value a site reads: a method's receiver, else the first argument."""
        converted = site.name.startswith(("builtins.", "math."))
        return site.args[0] if converted and site.args else site.receiver

    @staticmethod
    def read_node(site: Site) -> ast.AST:
        node = site.node
        if isinstance(node, ast.Call):
            if site.name.startswith(("builtins.", "math.")) and node.args:
                return node.args[0]
            if isinstance(node.func, ast.Attribute):
                return node.func.value
        return node

    def cannot_wait(self, site: Site, step: Step) -> bool:
        """Whether the host must have the value within the step: an action, a matcher's input, a stop token."""
        mark = self._interpreter.marks.get(("fetch", site.node))
        if mark is None:
            return False
        table = api()
        if "distributed.rpc" in self.source.text:
            return True
        for (how, name), places in mark.places.items():
            if not any(self.step_at(region, variant, set()) for variant, region in places):
                continue  # used after the loop: it can wait
            if how == "index" and not step.training:
                return True
            if how == "branch" and not step.training and self._generates(step):
                return True
            if how == "call" and (
                table.starts("host_needs.packages", name) or name in table.names("host_needs.methods")
            ):
                return True
        return False

    @staticmethod
    def _generates(step: Step) -> bool:
        return step.loop is not None and step.loop.evaluation is None

    def fetched_before(self, site: Site) -> bool:
        """Whether the same unchanged tensor was fetched just before, with no GPU work in between."""
        node = self.read_node(site)
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        for other in self._fetches(site):
            earlier = (other.line, other.node.col_offset) < (site.line, site.node.col_offset)  # type: ignore[attr-defined]
            if other.node is site.node or not earlier:
                continue
            first = self.read_node(other)
            if isinstance(first, ast.expr) and ast.unparse(first) == text and not self._work_between(other, site, text):
                return True
        return False

    def _fetches(self, site: Site) -> list[Site]:
        """The sites that fetch in the region of this one, in this variant; gathered once."""
        memo: dict[Region, list[Site]] | None = self._interpreter.memo.get(("fetches", site.variant))
        if memo is None:
            memo = {}
            for other in site.variant.sites.values():
                if other.kind is SiteKind.CALL and other.name in _FETCHES:
                    memo.setdefault(other.region, []).append(other)
            self._interpreter.memo["fetches", site.variant] = memo
        return memo.get(site.region, [])

    def _work_between(self, first: Site, second: Site, text: str) -> bool:
        head = text.partition(".")[0].partition("[")[0]
        for node in ast.walk(second.variant.body.node or self.tree):
            line = getattr(node, "lineno", 0)
            if first.line < line < second.line or (line in (first.line, second.line) and first.line != second.line):
                if (
                    isinstance(node, ast.Name)
                    and node.id == head
                    and isinstance(node.ctx, ast.Store)
                    and line > first.line
                ):
                    return True
                if isinstance(node, ast.Call) and first.line < line < second.line:
                    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                    sites = second.variant.sites.get((SiteKind.CALL, node))
                    if name in ("backward", "step") or (sites is not None and sites.name == "forward"):
                        return True
        return False
