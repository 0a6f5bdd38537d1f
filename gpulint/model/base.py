"""One file as the analysis understands it: its sites, its places, its evidence."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.finding import Confidence, Evidence, Span
from gpulint.model.heap import Loader
from gpulint.model.sites import LoopInfo, Site, SiteKind
from gpulint.model.syntax import ModuleInfo
from gpulint.model.values import Device, Kind, Value

if TYPE_CHECKING:
    from gpulint.model.interpreter import Interpreter


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def confidence_of(value: Value) -> Confidence:
    """How sure a finding about a value can be: a device not known gives a possibility at most."""
    if not value.on_gpu:
        return Confidence.POSSIBLE
    return Confidence.CERTAIN if value.sure else Confidence.LIKELY


class FileModel:
    """One file as the analysis understands it: its sites, its places, its evidence."""

    def __init__(self, interpreter: Interpreter, module: ModuleInfo, sites: list[Site]) -> None:
        self._interpreter = interpreter
        self._module = module
        self.source = module.source
        self.path: Path = module.path
        self.gpu = module.gpu
        self._by_kind: dict[SiteKind, dict[ast.AST, list[Site]]] = defaultdict(lambda: defaultdict(list))
        for site in sites:
            self._by_kind[site.kind][site.node].append(site)
        self._in_order: dict[tuple[SiteKind, ...], list[list[Site]]] = {}
        self._parents: dict[ast.AST, ast.AST] | None = None

    @property
    def tree(self) -> ast.Module:
        return self._module.tree

    def sites(self, *kinds: SiteKind) -> Iterator[list[Site]]:
        """Per place in source order: how each variant of the function around it sees it."""
        found = self._in_order.get(kinds)
        if found is None:
            groups = [group for kind in kinds for group in self._by_kind[kind].values()]
            groups.sort(key=lambda g: (g[0].line, getattr(g[0].node, "col_offset", 0)))
            found = self._in_order[kinds] = groups
        yield from found

    def calls(self, *names: str) -> Iterator[list[Site]]:
        """Calls by method name or qualified name."""
        for group in self.sites(SiteKind.CALL):
            if group[0].name in names or any(s.name in names for s in group):
                yield group

    def call(self, node: ast.AST) -> list[Site]:
        return self._by_kind[SiteKind.CALL].get(node, [])

    @property
    def loops(self) -> list[LoopInfo]:
        return [info for info in self._interpreter.loops.values() if info.module is self._module]

    @property
    def loaders(self) -> list[Loader]:
        return [loader for loader in self._interpreter.loaders.values() if loader.module is self._module]

    def loop_info(self, node: ast.AST | None) -> LoopInfo | None:
        return self._interpreter.loops.get(node) if node is not None else None

    @property
    def marks(self) -> dict[tuple[str, ast.AST], object]:
        return self._interpreter.marks  # type: ignore[return-value]

    def span(self, node: ast.AST) -> Span:
        """Character offsets of a node that has a position."""
        start = self.source.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self.source.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return Span(start, end)

    def text(self, node: ast.AST) -> str:
        span = self.span(node)
        return self.source.text[span.start : span.end]

    def short(self, node: ast.AST, limit: int = 60) -> str:
        """The source of a node on one line, shortened: for messages."""
        text = " ".join(self.text(node).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def parent(self, node: ast.AST) -> ast.AST | None:
        if self._parents is None:
            self._parents = {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}
        return self._parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parent(current)
        return current

    def evidence_at(self, node: ast.AST, message: str, module: ModuleInfo | None = None) -> Evidence:
        owner = module or self._module
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        source = owner.source
        return Evidence(owner.path, line, source.position(source.offset(line, column))[1], message)

    def evidence_of_value(self, node: ast.AST, value: Value) -> Evidence:
        where = {
            Device.GPU: "on the GPU",
            Device.HOST: "on the host",
            Device.UNKNOWN: "on an unknown device",
        }[value.device]
        graph = ", attached to the graph" if value.attached else ""
        sure = "" if value.sure else " (by use and name; no code that was seen makes it)"
        return self.evidence_at(
            node,
            f"`{self.short(node, 40)}` is {'a tensor ' if value.kind is Kind.TENSOR else ''}{where}{graph}{sure}",
        )

    def confidence(self, value: Value) -> Confidence:
        """Without evidence of a GPU in the program, a finding about waiting is only possible."""
        return confidence_of(value) if self.gpu else Confidence.POSSIBLE

    @property
    def trains(self) -> bool:
        """Whether the file belongs to a program that trains."""
        return self._module.trains
