"""The syntax index of a project: modules, classes, functions, and what names they use on what.

Nothing here knows values. A `ModuleInfo` is parsed on demand, so that a file that nobody asks for
costs nothing.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.model.values import Value

if TYPE_CHECKING:
    from gpulint.source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """What a call gives a keyword argument, if it does."""
    return next((k.value for k in call.keywords if k.arg == name), None)


def dotted(node: ast.AST) -> str | None:
    """``a.b.c`` of a chain of names, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def walk(node: ast.AST, *, into_scopes: bool = True) -> Iterator[ast.AST]:
    """The node and everything below it, in no order; optionally not into nested functions."""
    stack = [node]
    while stack:
        node = stack.pop()
        yield node
        for value in node.__dict__.values():
            if isinstance(value, list):
                stack += [c for c in value if isinstance(c, ast.AST) and (into_scopes or not isinstance(c, _SCOPES))]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                if into_scopes or not isinstance(value, _SCOPES):
                    stack.append(value)


_CHAIN = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_CALLED = re.compile(r"(?<!def )\b([^\W\d]\w*)\(")


def uses(text: str) -> dict[str, set[str]]:
    """Which attributes are taken of which access path: ``{"loss": {"backward", "item"}}``.

    A look at the text: what a comment or string adds does no harm, and a walk over the tree costs
    ten times as much.
    """
    found: dict[str, set[str]] = {}
    for chain in set(_CHAIN.findall(text)):
        path, *rest = chain.split(".")
        for attr in rest:
            found.setdefault(path, set()).add(attr)
            path = f"{path}.{attr}"
    return found


def called_names(text: str) -> set[str]:
    """The last names of what the text calls."""
    return set(_CALLED.findall(text))


class FunctionInfo:
    """One function or lambda of the project."""

    def __init__(self, node: Function, module: ModuleInfo, qualname: str, cls: ClassInfo | None) -> None:
        self.node = node
        self.module = module
        self.qualname = qualname
        self.cls = cls
        self.reached = False  # whether any analysis has run it

    @property
    def name(self) -> str:
        return getattr(self.node, "name", "<lambda>")

    @property
    def body(self) -> list[ast.stmt]:
        node = self.node
        return [ast.copy_location(ast.Return(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body

    @cached_property
    def is_generator(self) -> bool:
        return any(
            isinstance(n, ast.Yield | ast.YieldFrom)
            for stmt in self.body
            if not isinstance(stmt, _SCOPES)
            for n in walk(stmt, into_scopes=False)
        )

    @cached_property
    def uses(self) -> dict[str, set[str]]:
        return uses(self.module.segment(self.node))

    @cached_property
    def counters(self) -> frozenset[str]:
        """Names and paths that the function counts up: ``step += 1``."""
        return frozenset(
            path
            for n in walk(self.node)
            if isinstance(n, ast.AugAssign) and isinstance(n.op, ast.Add) and (path := dotted(n.target))
        )

    @cached_property
    def decorators(self) -> list[ast.expr]:
        return getattr(self.node, "decorator_list", [])


class ClassInfo:
    """One class of the project; bases are resolved by the analysis, which knows names."""

    def __init__(self, node: ast.ClassDef, module: ModuleInfo, qualname: str) -> None:
        self.node = node
        self.module = module
        self.qualname = qualname
        self.name = node.name
        self.methods: dict[str, FunctionInfo] = {}
        self.bases: list[ClassInfo] = []
        self.outside: list[str] = []  # qualified names of bases that are not in the project
        self.attrs: dict[str, Value] = {}  # class-level assignments

    @cached_property
    def mro(self) -> list[ClassInfo]:
        """The class and its bases in the project, nearest first, each once."""
        seen: list[ClassInfo] = []
        stack = [self]
        while stack:
            cls = stack.pop(0)
            if cls not in seen:
                seen.append(cls)
                stack.extend(cls.bases)
        return seen

    @property
    def all_outside(self) -> list[str]:
        return [name for cls in self.mro for name in cls.outside]

    def method(self, name: str) -> FunctionInfo | None:
        return next((cls.methods[name] for cls in self.mro if name in cls.methods), None)

    @cached_property
    def own_uses(self) -> dict[str, set[str]]:
        return uses(self.module.segment(self.node))

    @cached_property
    def uses(self) -> dict[str, set[str]]:
        """Uses of ``self.*`` in all methods of the class and its bases."""
        found: dict[str, set[str]] = {}
        for cls in self.mro:
            for path, attrs in cls.own_uses.items():
                if path.startswith("self."):
                    found.setdefault(path, set()).update(attrs)
        return found


class ModuleInfo:
    """One file of the project, parsed when first needed."""

    def __init__(self, source: Source, name: tuple[str, ...], is_package: bool) -> None:
        self.source = source
        self.path = source.path
        self.name = name
        self.is_package = is_package
        self.env: dict[str, Value] | None = None  # final environment of the module body
        self.running = False
        self.gpu = False  # part of a GPU program
        self.trains = False  # part of a program that trains
        self.stars: list[ModuleInfo] = []  # modules whose names it imports by `*`

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree. Raises SyntaxError, ValueError, RecursionError or MemoryError."""
        return ast.parse(self.source.text)

    def may_bind(self, name: str) -> bool:
        """Whether the text defines, assigns or imports the name at all."""
        defined = rf"^(?:async def|def|class)\s+{name}\b|^{name}\s*[:=]"
        imported = rf"^(?:from|import)\b.*\b{name}\b|^\s+{name},?\s*$|import \*"
        pattern = f"{defined}|{imported}"
        return re.search(pattern, self.source.text, re.M) is not None

    def segment(self, node: ast.AST) -> str:
        """The lines of a definition, for a look at its text."""
        lines = self._lines
        return "\n".join(lines[node.lineno - 1 : node.end_lineno])  # type: ignore[attr-defined]

    @cached_property
    def _lines(self) -> list[str]:
        return self.source.text.splitlines()

    def forget_tree(self) -> None:
        self.__dict__.pop("tree", None)

    @cached_property
    def package(self) -> tuple[str, ...]:
        return self.name if self.is_package else self.name[:-1]


class Index:
    """The modules of one project, found by the names under which code imports them."""

    def __init__(self, root: Path, sources: list[Source]) -> None:
        self.root = root
        self.modules: dict[Path, ModuleInfo] = {}
        self._by_name: dict[tuple[str, ...], ModuleInfo] = {}
        self._by_last: dict[str, list[ModuleInfo]] = {}
        self.imports: dict[ModuleInfo, list[ModuleInfo]] | None = None
        for source in sources:
            name, is_package = _module_name(root, source.path)
            info = ModuleInfo(source, name, is_package)
            self.modules[source.path] = info
            if source.path.suffix == ".ipynb":
                continue  # nothing imports a notebook, and `train.ipynb` often lies beside `train.py`
            self._by_name[name] = info
            if name:
                self._by_last.setdefault(name[-1], []).append(info)

    def resolve(self, importer: ModuleInfo, target: tuple[str, ...], level: int = 0) -> ModuleInfo | None:
        """The module that ``import a.b`` (level 0) or ``from ..a import`` (level 2) means, if in the project.

        An absolute name is looked up beside the importer (a script's folder is on the path), then in
        each folder above it up to the root and its ``src``; then by a suffix that only one module has.
        """
        if level:
            keep = len(importer.package) - (level - 1)
            return self._by_name.get(importer.package[: max(keep, 0)] + target)
        if not target:
            return None
        for depth in range(len(importer.package), -1, -1):
            found = self._by_name.get(importer.package[:depth] + target)
            if found is not None and found is not importer:
                return found
        found = self._by_name.get(("src", *target))
        if found is not None:
            return found
        same = [m for m in self._by_last.get(target[-1], ()) if m.name[-len(target) :] == target]
        return same[0] if len(same) == 1 and (len(target) > 1 or len(same[0].name) <= 2) else None


def _module_name(root: Path, path: Path) -> tuple[tuple[str, ...], bool]:
    try:
        relative = Path(os.path.abspath(path)).relative_to(os.path.abspath(root))
    except ValueError:
        relative = Path(path.name)
    parts = list(relative.with_suffix("").parts)
    if parts and parts[-1] == "__init__":
        return tuple(parts[:-1]), True
    return tuple(parts), False
