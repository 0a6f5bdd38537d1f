"""Output formats, one module each: pure functions from a report to text."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpulint.finding import Checked, FileResult, Finding, ParseFailed, RuleCrashed
from gpulint.rule import Rule, all_rules
from gpulint.source import Source

FORMATS = ("text", "concise", "json", "sarif", "github")


@dataclass(frozen=True, slots=True)
class Style:
    """How to show a report; only ``text`` and ``concise`` look at it."""

    color: bool = False
    explain: bool = False
    quiet: bool = False
    verbose: bool = False
    statistics: bool = False
    width: int = 80


@dataclass(frozen=True, slots=True)
class Problem:
    """A file that was not, or not wholly, linted. ``line`` counts from 1."""

    path: Path
    line: int
    column: int
    message: str
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """One run: results, the sources they speak of, and counts. Paths are shown relative to ``root``."""

    results: tuple[FileResult, ...]
    sources: Mapping[Path, Source]
    fixed: int = 0
    statistics: Mapping[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    root: Path = field(default_factory=Path)

    @property
    def findings(self) -> list[Finding]:
        """Worst first: by the rule's class (wrong, memory, slow), then by place."""
        rules = known_rules()
        found = [f for r in self.results if isinstance(r, Checked | RuleCrashed) for f in r.findings]
        return sorted(found, key=lambda f: (rules[f.code].severity, str(f.path), f.span.start, f.code))

    @property
    def problems(self) -> list[Problem]:
        problems = []
        for result in self.results:
            if isinstance(result, ParseFailed):
                problems.append(Problem(result.path, result.line, result.column, result.message))
            elif isinstance(result, RuleCrashed):
                message = f"internal error in {result.code} ({result.message}): please report it"
                problems.append(Problem(result.path, 1, 1, message, result.traceback))
        return problems

    def shown(self, path: Path) -> str:
        """A path as the user would type it, with forward slashes."""
        if path.is_absolute() and path.is_relative_to(self.root):
            path = path.relative_to(self.root)
        return Path(os.path.normpath(path)).as_posix()

    def start(self, finding: Finding) -> tuple[int, int]:
        return self.sources[finding.path].position(finding.span.start)

    def end(self, finding: Finding) -> tuple[int, int]:
        return self.sources[finding.path].position(finding.span.end)


def known_rules() -> dict[str, Rule]:
    """All rules by code, the engine's own included."""
    from gpulint.suppress import UNUSED

    return {rule.code: rule for rule in (*all_rules(), UNUSED)}


def render(report: Report, format: str, style: Style | None = None) -> str:
    """The report as text in one of `FORMATS`."""
    module = importlib.import_module(f"gpulint.report.{format}")
    text: str = module.render(report, style or Style())
    return text
