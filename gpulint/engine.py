"""Files and rules to results, a project at a time; and the fix loop around it."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.config import Settings
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
    outcome = Outcome()
    asked = {source.path: source for source in project.asked}
    outcome.originals = dict(asked)
    for _ in range(MAX_ROUNDS):
        outcome.results = _round(project.root, asked, project.context, settings_for, outcome)
        if not fix:
            break
        changed = False
        for result in outcome.results:
            if isinstance(result, ParseFailed):
                continue
            source = asked[result.path]
            text, mended = apply_fixes(source, result.findings, unsafe)
            if text != source.text:
                asked[result.path] = replaced(source, text)
                outcome.fixed.extend(mended)
                changed = True
        if not changed:
            break
    outcome.sources = asked
    outcome.originals = {p: s for p, s in outcome.originals.items() if asked[p].text != s.text}
    return outcome


def _round(
    root: Path,
    asked: dict[Path, Source],
    context: Sequence[Source],
    settings_for: SettingsFor,
    outcome: Outcome,
) -> list[FileResult]:
    from gpulint.model import analyse

    started = time.perf_counter()
    analysis = analyse([*asked.values(), *context], settings_for(root), root)
    analysed = time.perf_counter()
    results = [_file(analysis, source, settings_for(source.path)) for source in asked.values()]
    _add(outcome.seconds, "analysis", analysed - started)
    _add(outcome.seconds, "rules", time.perf_counter() - analysed)
    outcome.statistics.update(analysis.statistics)
    return results


def _add(seconds: dict[str, float], phase: str, spent: float) -> None:
    seconds[phase] = seconds.get(phase, 0.0) + spent


def _file(analysis: Analysis, source: Source, settings: Settings) -> FileResult:
    failure = analysis.failures.get(source.path)
    if failure is not None:
        return failure
    rules = rules_for(settings, source.path)
    findings, crash = _run_rules(analysis.models[source.path], rules, settings, source.path)
    ran = {rule.code: rule for rule in rules}
    shown = filtered(source, findings, ran, report_unused=_reports_unused(settings, source.path))
    shown.sort(key=lambda f: (f.span.start, f.code, f.span.end))
    crash = crash or analysis.crashes.get(source.path)
    if crash is not None:
        return RuleCrashed(source.path, crash[0], crash[1], crash[2], tuple(shown))
    return Checked(source.path, tuple(shown))


def _run_rules(
    model: Model, rules: Iterable[Rule], settings: Settings, path: Path
) -> tuple[list[Finding], tuple[str, str, str] | None]:
    """All rules on a file; one that raises does not hide what the others found."""
    from dataclasses import replace

    findings: list[Finding] = []
    crash: tuple[str, str, str] | None = None
    for rule in rules:
        try:
            findings.extend(
                replace(finding, code=rule.code, path=path)
                for finding in rule.check(model)
                if finding.confidence >= settings.min_confidence
            )
        except Exception as error:
            crash = (rule.code, f"{type(error).__name__}: {error}", traceback.format_exc())
    return findings, crash


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
    from gpulint.discover import project_root

    folders = [path for path in given if path.is_dir()]
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
    whole = {Path(folder).resolve() for folder in folders}
    return [
        Project(root, tuple(sources), () if root.resolve() in whole else context(root, sources, settings_for))
        for root, sources in groups.items()
    ], failures


def context(root: Path, asked: Sequence[Source], settings_for: SettingsFor) -> tuple[Source, ...]:
    """The project's other files that import those asked for, or are imported by them, however far."""
    from gpulint.discover import discover
    from gpulint.model.evidence import spread
    from gpulint.model.syntax import Index

    known = {source.path.resolve() for source in asked}
    others: list[Source] = []
    for file in discover([root], settings_for).files[:CONTEXT_LIMIT]:
        if file.resolve() not in known:
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
