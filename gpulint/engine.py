"""Files and rules to results, a project at a time; and the fix loop around it."""

from __future__ import annotations

import gc
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.config import Settings
from gpulint.discover import PROJECT_MARKS, discover, project_root
from gpulint.finding import Checked, FileResult, Finding, ParseFailed, RuleCrashed
from gpulint.fix import MAX_ROUNDS, apply_fixes
from gpulint.rule import Rule, matches, select
from gpulint.source import Source, SourceError, read, replaced
from gpulint.suppress import UNUSED, filtered

if TYPE_CHECKING:
    from gpulint.model import Analysis, Model

SettingsFor = Callable[[Path], Settings]
CONTEXT_LIMIT = 2000  # files of the project read besides those asked for


@dataclass(slots=True)
class Outcome:
    """What a run found: a result per file asked for, their sources, and counts."""

    results: list[FileResult] = field(default_factory=list)
    sources: dict[Path, Source] = field(default_factory=dict)
    statistics: Counter[str] = field(default_factory=Counter)
    fixed: list[Finding] = field(default_factory=list)
    originals: dict[Path, Source] = field(default_factory=dict)  # of the files that fixes changed
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        return [f for r in self.results if not isinstance(r, ParseFailed) for f in r.findings]


@dataclass(frozen=True, slots=True)
class Project:
    """The files of one project: those asked for, and those read only to understand them."""

    root: Path
    asked: tuple[Source, ...]
    context: tuple[Source, ...] = ()


def check(project: Project, settings_for: SettingsFor, *, fix: bool = False, unsafe: bool = False) -> Outcome:
    """Lint one project; with ``fix``, mend what can be mended in memory, round after round."""
    outcome = Outcome(sources={source.path: source for source in project.asked})
    originals = dict(outcome.sources)
    _lint(project, settings_for, outcome)
    for _ in range(MAX_ROUNDS if fix else 0):
        if not _mend(outcome, unsafe):
            break
        gc.collect()  # the last round's trees and values refer to one another
        _lint(project, settings_for, outcome)
    outcome.originals = {
        path: source for path, source in originals.items() if outcome.sources[path].text != source.text
    }
    return outcome


def _mend(outcome: Outcome, unsafe: bool) -> bool:
    """One round of fixes in all files; whether there was anything to mend."""
    changed = False
    for result in outcome.results:
        if not isinstance(result, ParseFailed):
            source = outcome.sources[result.path]
            text, mended = apply_fixes(source, result.findings, unsafe)
            if text != source.text:
                outcome.sources[result.path] = replaced(source, text)
                outcome.fixed.extend(mended)
                changed = True
    return changed


def _lint(project: Project, settings_for: SettingsFor, outcome: Outcome) -> None:
    """Analyse the files together and run the rules on each; the outcome's results are replaced."""
    from gpulint.model import analyse

    asked = outcome.sources.values()
    started = time.perf_counter()
    analysis = analyse([*asked, *project.context], settings_for(project.root), project.root)
    analysed = time.perf_counter()
    outcome.results = [_file(analysis, source, settings_for(source.path)) for source in asked]
    outcome.seconds["analysis"] = outcome.seconds.get("analysis", 0.0) + analysed - started
    outcome.seconds["rules"] = outcome.seconds.get("rules", 0.0) + time.perf_counter() - analysed
    outcome.statistics = Counter(analysis.statistics)
    outcome.statistics["files"] = len(asked)
    outcome.statistics["lines"] = sum(source.line_count for source in asked)


def _file(analysis: Analysis, source: Source, settings: Settings) -> FileResult:
    failure = analysis.failures.get(source.path)
    if failure is not None:
        return failure
    rules = rules_for(settings, source.path)
    findings, crashes = _run_rules(analysis.models[source.path], rules)
    crash = next(iter(crashes.values()), None) or analysis.crashes.get(source.path)
    ran = [rule for rule in rules if rule.code not in crashes]
    unused = _reports_unused(settings, source.path) and source.path not in analysis.crashes
    # Comments first: one is in use also when what it silences would not be shown.
    shown = [f for f in filtered(source, findings, ran, unused) if f.confidence >= settings.min_confidence]
    shown.sort(key=lambda f: (f.span.start, f.code, f.span.end))
    if crash is not None:
        return RuleCrashed(source.path, crash[0], crash[1], crash[2], tuple(shown))
    return Checked(source.path, tuple(shown))


def _run_rules(model: Model, rules: Iterable[Rule]) -> tuple[list[Finding], dict[str, tuple[str, str, str]]]:
    """All rules on a file; one that raises does not hide what the others found."""
    findings: list[Finding] = []
    crashes: dict[str, tuple[str, str, str]] = {}
    for rule in rules:
        try:
            for finding in rule.check(model):
                findings.append(replace(finding, code=rule.code, path=model.path))  # noqa: PERF401
        except Exception as error:
            message = f"{type(error).__name__}: {error}".partition("\n")[0]
            crashes[rule.code] = (rule.code, message, traceback.format_exc())
    return findings, crashes


def rules_for(settings: Settings, path: Path) -> tuple[Rule, ...]:
    """The rules that run on a file: its settings' selection less its ``per-file-ignores``."""
    ignored = (*settings.ignore, *settings.ignored_in(path))
    return select(settings.select, ignored, settings.extend_select)


def _reports_unused(settings: Settings, path: Path) -> bool:
    chosen = (*settings.select, *settings.extend_select)
    ignored = (*settings.ignore, *settings.ignored_in(path))
    wanted = not settings.select or any(matches(UNUSED, s) for s in chosen)
    return wanted and not any(matches(UNUSED, s) for s in ignored)


# ---- projects --------------------------------------------------------------------------------------


def projects(
    files: Iterable[Path], settings_for: SettingsFor, given: Sequence[Path] = ()
) -> tuple[list[Project], list[ParseFailed]]:
    """Group files by project, read them, and read what else of the project they need to be understood."""
    folders = {path: Path(os.path.abspath(path)) for path in given if path.is_dir()}
    failures: list[ParseFailed] = []
    groups: dict[Path, list[Source]] = {}
    for file in files:
        try:
            source = read(file)
        except SourceError as error:
            failures.append(ParseFailed(file, error.line, error.column, error.message))
            continue
        owner = next((folder for folder in folders if file.is_relative_to(folder)), None)
        groups.setdefault(project_root(file, owner), []).append(source)
    return [
        Project(
            root,
            tuple(sources),
            () if any(map(root.is_relative_to, folders.values())) else context(root, sources, settings_for),
        )
        for root, sources in groups.items()
    ], failures


def context(root: Path, asked: Sequence[Source], settings_for: SettingsFor) -> tuple[Source, ...]:
    """The project's other files that import those asked for, or are imported by them, however far.

    Of a huge project only the files nearest to those asked for are read.
    """
    from gpulint.model.evidence import spread
    from gpulint.model.syntax import Index

    known = {os.path.realpath(source.path) for source in asked}
    others: list[Source] = []
    for file in _neighbours(root, {Path(os.path.abspath(source.path)).parent for source in asked}, settings_for):
        if len(others) == CONTEXT_LIMIT:
            break
        if os.path.realpath(file) not in known:
            try:
                others.append(read(file))
            except SourceError:
                continue  # not asked for: not reported
    if not others:
        return ()
    index = Index(root, [*asked, *others])
    reached = spread(index, [index.modules[source.path] for source in asked])
    paths = {module.path for module in reached}
    return tuple(source for source in others if source.path in paths)


def _neighbours(root: Path, folders: set[Path], settings_for: SettingsFor) -> list[Path]:
    """The Python files of a project, those nearest to some folders first."""
    if not any(os.path.lexists(root / mark) for mark in PROJECT_MARKS):
        return sorted(root.glob("*.py"))  # just a folder, of which nobody said that it is a project
    files = [file for file in discover([root], settings_for).files if file.suffix == ".py"]
    return sorted(files, key=lambda file: min(_distance(file.parent, folder) for folder in folders))


def _distance(a: Path, b: Path) -> int:
    common = len(Path(os.path.commonpath((a, b))).parts)
    return len(a.parts) + len(b.parts) - 2 * common
