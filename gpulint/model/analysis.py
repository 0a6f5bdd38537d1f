"""From the sources of one project to a model per file."""

from __future__ import annotations

import ast
import gc
import sys
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.finding import ParseFailed
from gpulint.model.evidence import mark_gpu_programs
from gpulint.model.interpreter import Interpreter
from gpulint.model.model import Model
from gpulint.model.screen import HOOK_NAMES, relevant, relevant_statement, steps, worth_running
from gpulint.model.settle import settle
from gpulint.model.sites import Site, Variant
from gpulint.model.syntax import FunctionInfo, Index, ModuleInfo, called_names
from gpulint.model.values import Value

if TYPE_CHECKING:
    from gpulint.config import Settings
    from gpulint.source import Source


RECURSION_LIMIT = 6000  # calls followed inside calls, each through a nest of expressions


@dataclass(frozen=True, slots=True)
class Analysis:
    """The models of a project's files, the files that do not parse, and counts for `--statistics`."""

    models: dict[Path, Model]
    failures: dict[Path, ParseFailed]
    statistics: Mapping[str, int] = field(default_factory=dict)
    crashes: Mapping[Path, tuple[str, str, str]] = field(default_factory=dict)  # (where, message, traceback)


def analyse(sources: Sequence[Source], settings: Settings, root: Path | None = None) -> Analysis:
    """Understand the files of one project together.

    The cycle collector is off meanwhile: syntax trees are acyclic and many, and it would walk them
    over and over.
    """
    collecting, limit = gc.isenabled(), sys.getrecursionlimit()
    gc.disable()
    sys.setrecursionlimit(max(limit, RECURSION_LIMIT))
    try:
        interpreter, failures = _interpret(sources, settings, root)
    finally:
        sys.setrecursionlimit(limit)
        if collecting:
            gc.enable()
    sites: dict[ModuleInfo, list[Site]] = defaultdict(list)
    for variant in interpreter.variants:
        sites[variant.module].extend(variant.sites.values())
    models = {
        path: Model(interpreter, module, sites.get(module, []))
        for path, module in interpreter.index.modules.items()
        if path not in failures
    }
    statistics = Counter(interpreter.statistics)
    statistics["variants"] = len(interpreter.variants)
    return Analysis(models, failures, statistics, dict(interpreter.crashes))


def _interpret(
    sources: Sequence[Source], settings: Settings, root: Path | None
) -> tuple[Interpreter, dict[Path, ParseFailed]]:
    ordered = sorted(sources, key=lambda s: s.path)
    index = Index(root or settings.root, ordered)
    mark_gpu_programs(index, settings.gpu)
    interpreter = Interpreter(index, settings)
    failures: dict[Path, ParseFailed] = {}
    entries = []
    hooks = HOOK_NAMES | {name.rpartition(".")[2] for name in settings.step_functions}
    for module in index.modules.values():
        failure = _syntax_error(module)
        if failure is not None:
            failures[module.path] = failure
        elif relevant(module.source.text, hooks) and _worth_entering(module, hooks):
            entries.append(module)
        else:
            module.forget_tree()  # parsed again if a relevant file imports it
    for module in entries:
        with _contained(interpreter, module):
            interpreter.run_module(module)
    _run_roots(interpreter, entries)
    _drop_assumed(interpreter)
    settle(interpreter)
    return interpreter, failures


def _syntax_error(module: ModuleInfo) -> ParseFailed | None:
    try:
        _ = module.tree
    except SyntaxError as error:
        line = error.lineno or 1
        return ParseFailed(module.path, line, error.offset or 1, f"cannot parse: {error.msg}")
    except (RecursionError, MemoryError):
        return ParseFailed(module.path, 1, 1, "cannot parse: the code is nested too deeply")
    except ValueError as error:
        return ParseFailed(module.path, 1, 1, f"cannot parse: {error}")
    return None


def _run_roots(interpreter: Interpreter, modules: list[ModuleInfo]) -> None:
    """Run the functions and methods that no analysed code called, callers before callees.

    First those that no code names, in source order; then the rest backwards, since helpers are
    mostly written above their users.
    """
    chosen = set(modules)
    everything = [i for i in interpreter.infos.values() if i.module in chosen and not isinstance(i.node, ast.Lambda)]
    everything.sort(key=lambda i: (str(i.module.path), i.node.lineno))
    named = _named_from(interpreter.index, modules)
    for info in everything:
        if not info.reached and info.name not in named[info.module] and _worth_running(interpreter, info):
            _run_root(interpreter, info)
    for info in reversed(everything):
        if not info.reached and _worth_running(interpreter, info):
            _run_root(interpreter, info)
    for variant in [v for v in interpreter.variants if v.root]:
        with _contained(interpreter, variant.module):
            interpreter.rerun_if_stale(variant)


def _worth_entering(module: ModuleInfo, hooks: Set[str]) -> bool:
    """Whether any function of the file, or its top level, is worth running."""
    if "__name__" in module.source.text:
        return True  # a script: what it calls gets its context from here
    for node in module.tree.body:
        if isinstance(node, ast.ClassDef):
            methods = [m for m in node.body if isinstance(m, ast.FunctionDef | ast.AsyncFunctionDef)]
            called = set().union(*(called_names(module.segment(m)) for m in methods if m.name in hooks))
            model = any(m.name == "forward" for m in methods)
            for method in methods:
                if model and method.name not in hooks and method.name not in called:
                    if steps(module.segment(method)):
                        return True
                    continue
                hook = method.name in hooks or method.name in called
                if method.name != "__init__" and worth_running(method.name, module.segment(method), hook):
                    return True
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if worth_running(node.name, module.segment(node), node.name in hooks):
                return True
        elif relevant_statement(module.segment(node)):
            return True
    return False


def _worth_running(interpreter: Interpreter, info: FunctionInfo) -> bool:
    if info.name == "__init__":
        return False
    hook = interpreter.hook_phase(info) is not None
    if not hook and info.cls is not None and interpreter.base_kind(info.cls) == "module_base":
        return steps(info.module.segment(info.node))  # a model's method is part of a step, not a loop of steps
    texts = [info.module.segment(info.node)]
    if hook and info.cls is not None:  # forward calls the class's helpers
        called = called_names(texts[0])
        texts += [info.module.segment(m.node) for name, m in info.cls.methods.items() if name in called]
    return any(worth_running(info.name, text, hook) for text in texts)


def _named_from(index: Index, modules: list[ModuleInfo]) -> dict[ModuleInfo, set[str]]:
    """Per module, the names that it and its importers call."""
    called = {module: called_names(module.source.text) for module in modules}
    named = {module: set(names) for module, names in called.items()}
    for importer, targets in (index.imports or {}).items():
        for target in targets:
            if target in named and importer in called:
                named[target] |= called[importer]
    return named


def _drop_assumed(interpreter: Interpreter) -> None:
    """Forget runs on assumed arguments where real calls of the function were seen later."""
    called = {v.info for v in interpreter.variants if v.callers and v.info is not None}
    dropped = {
        v for v in interpreter.variants if v.root and not v.callers and v.info in called and v.step_function is None
    }
    while dropped:
        interpreter.variants = [v for v in interpreter.variants if v not in dropped]
        orphans: set[Variant] = set()
        for variant in interpreter.variants:
            if variant.callers:
                variant.callers = [entry for entry in variant.callers if entry[0] not in dropped]
                if not variant.callers and not variant.root and variant.info is not None and variant.info in called:
                    orphans.add(variant)
        keep = {v.info for v in interpreter.variants if v not in orphans}
        dropped = {v for v in orphans if v.info in keep}


@contextmanager
def _contained(interpreter: Interpreter, module: ModuleInfo) -> Iterator[None]:
    """A defect of the analysis costs one function's findings and is reported; the rest goes on."""
    try:
        yield
    except RecursionError:
        interpreter.statistics["too deep"] += 1
        interpreter.abandon()
    except Exception as error:
        message = f"{type(error).__name__}: {error}"
        interpreter.crashes.setdefault(module.path, ("analysis", message, traceback.format_exc()))
        interpreter.abandon()


def _run_root(interpreter: Interpreter, info: FunctionInfo) -> None:
    with _contained(interpreter, info.module):
        _run_root_unguarded(interpreter, info)


def _run_root_unguarded(interpreter: Interpreter, info: FunctionInfo) -> None:
    receiver: Value | None = None
    if info.cls is not None:
        frame = interpreter.root_frame(info.module)
        receiver = interpreter.generic_instance(frame, info.cls)
        if info.reached:
            return
        decorators = {d.id for d in info.decorators if isinstance(d, ast.Name)}
        if "staticmethod" in decorators:
            receiver = None
    interpreter.run_root(info, receiver)


def reveal(path: Path, line: int, settings: Settings, sources: Sequence[Source]) -> list[tuple[str, str]]:
    """What is known at a line: ``(expression, value)`` of the calls and names on it."""
    interpreter, _ = _interpret(sources, settings, None)
    found: dict[str, str] = {}
    for variant in interpreter.variants:
        if variant.module.path != path:
            continue
        for site in variant.sites.values():
            if site.line == line and hasattr(site.node, "end_col_offset"):
                text = " ".join((ast.get_source_segment(variant.module.source.text, site.node) or "").split())
                value = site.result if site.kind.value == "call" else site.receiver
                found[text] = value.describe()
    return list(found.items())
