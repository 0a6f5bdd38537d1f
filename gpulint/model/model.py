"""The questions that rules ask of one file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpulint.model.api import api
from gpulint.model.conditions import always_leaves, on_version
from gpulint.model.evaluation import Evaluations
from gpulint.model.heap import Loader
from gpulint.model.keep import Mark
from gpulint.model.kept import KeptValues
from gpulint.model.loaders import Cost, cost, yields_gpu
from gpulint.model.reads import Reads
from gpulint.model.sites import Site, SiteKind
from gpulint.model.syntax import ModuleInfo
from gpulint.model.values import Kind


class Model(Reads, KeptValues, Evaluations):
    """One file as the analysis understands it; what rules may ask."""

    def yields_gpu(self, loader: Loader) -> bool:
        return yields_gpu(self._interpreter, loader)

    def reads_items(self, loader: Loader) -> bool:
        return cost(loader.dataset) is Cost.READS

    def own_batches_copy_plainly(self) -> bool:
        """Whether the project has a class whose `to(device)` takes no `non_blocking`, as DETR's NestedTensor."""
        memo = self._interpreter.memo
        if "plain copies" not in memo:
            memo["plain copies"] = any(
                info.name == "to" and info.cls is not None and not _takes(info.node.args, "non_blocking")
                for info in self._interpreter.infos.values()
            )
        return bool(memo["plain copies"])

    def sites_of_allocation(self) -> Iterator[list[Site]]:
        for group in self.sites(SiteKind.CALL):
            if ("alloc", group[0].node) in self._interpreter.marks:
                yield group

    def moved_after(self, site: Site) -> tuple[ast.AST, ModuleInfo] | None:
        mark = self._interpreter.marks[("alloc", site.node)]
        return mark.uses.get(("moved", ""))

    def allocated_in_step(self, mark: Mark) -> bool:
        return any(
            self.step(site) is not None
            for variant in self._interpreter.variants
            for site in variant.sites.values()
            if site.node is mark.node
        )

    @staticmethod
    def is_random(site: Site) -> bool:
        return api().has("create.random", site.name)

    def seeds_host(self) -> bool:
        return "manual_seed" in self.source.text

    def deprecated_amp(self) -> Iterator[tuple[ast.AST, str]]:
        """Uses of deprecated AMP names, outside shims."""
        for group in self.sites(SiteKind.CALL):
            site = group[0]
            name = str(site.func.const) if site.func.kind is Kind.NAMESPACE else ""
            if (
                name.startswith(("torch.cuda.amp.", "torch.cpu.amp.", "apex.amp."))
                and not any(r.note == "except" for r in site.region.outward())
                and not self._version_checked(site.node)
            ):
                yield site.node, name

    def _version_checked(self, node: ast.AST) -> bool:
        """Whether the code stands in a branch on a version, or in an ``except``: a shim."""
        current: ast.AST | None = node
        while current is not None:
            if isinstance(current, ast.If) and on_version(current):
                return True
            if isinstance(current, ast.ExceptHandler):
                return True
            parent = self.parent(current)
            body = getattr(parent, "body", None)
            if isinstance(current, ast.stmt) and isinstance(body, list) and current in body:
                earlier = body[: body.index(current)]
                if any(
                    isinstance(s, ast.If) and always_leaves(s.body, returns=True) and on_version(s) for s in earlier
                ):
                    return True
            current = parent
        return False


def _takes(arguments: ast.arguments, keyword: str) -> bool:
    return arguments.kwarg is not None or any(a.arg == keyword for a in (*arguments.args, *arguments.kwonlyargs))
