"""What a run found, and how it is written down: one module per output format, all pure functions.

A format is a module of this package with ``render(report, style) -> str``; nothing here prints,
reads files or looks at the current folder.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpulint.finding import FileResult, Finding, ParseFailed, RuleCrashed, Severity
from gpulint.rule import Rule, all_rules

if TYPE_CHECKING:
    from gpulint.source import Source

FORMATS = ("text", "concise", "json", "sarif", "github")


def every_rule() -> tuple[Rule, ...]:
    """All rules that a finding can come from: those of the package and the engine's own."""
    from gpulint.suppress import UNUSED

    return (UNUSED, *all_rules())


@dataclass(frozen=True, slots=True)
class Style:
    """How to show it. Machine formats only look at ``statistics``."""

    color: bool = False
    width: int = 80
    explain: bool = False  # the evidence behind each finding
    quiet: bool = False  # findings and errors, no summary
    verbose: bool = False  # also time, and the traceback of a rule that crashed
    statistics: bool = False


class Place(NamedTuple):
    """A range of text: lines and columns (in characters) from 1, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Problem(NamedTuple):
    """Why a file, or a rule on a file, said nothing."""

    path: Path
    line: int
    column: int
    message: str
    code: str = ""  # of the rule that crashed
    traceback: str = ""


@dataclass(frozen=True)
class Report:
    """The outcome of one run. ``root`` is the folder that paths are shown relative to."""

    results: Sequence[FileResult]
    sources: Mapping[Path, Source] = field(default_factory=dict)
    rules: Sequence[Rule] = field(default_factory=every_rule)
    fixed: int = 0
    statistics: Mapping[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    root: Path = field(default_factory=Path)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """Worst first: by the class of the rule, then path and position."""
        found = [f for result in self.results if not isinstance(result, ParseFailed) for f in result.findings]
        return tuple(sorted(found, key=lambda f: (self.severity(f), self.shown(f.path), f.span, f.code)))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Files that could not be read or parsed and rules that crashed, by path and position."""
        found = [_problem(r) for r in self.results if isinstance(r, ParseFailed | RuleCrashed)]
        return tuple(sorted(found, key=lambda p: (self.shown(p.path), p.line, p.column, p.code)))

    @cached_property
    def by_code(self) -> Mapping[str, Rule]:
        return {rule.code: rule for rule in self.rules}

    def severity(self, finding: Finding) -> Severity:
        rule = self.by_code.get(finding.code)
        return Severity.SLOW if rule is None else rule.severity

    def name(self, code: str) -> str:
        rule = self.by_code.get(code)
        return "" if rule is None else rule.name

    def shown(self, path: Path) -> str:
        """The path for people: relative to the root where it lies below it."""
        return _encodable(str(self._relative(path)))

    def portable(self, path: Path) -> str:
        """The same for machines: forward slashes on every system."""
        return _encodable(self._relative(path).as_posix())

    def _relative(self, path: Path) -> Path:
        return path.relative_to(self.root) if path.is_absolute() and path.is_relative_to(self.root) else path

    def place(self, finding: Finding) -> Place:
        return self.region(finding.path, finding.span.start, finding.span.end)

    def region(self, path: Path, start: int, end: int) -> Place:
        """A range of offsets as lines and columns; the top of the file where its text is not known."""
        source = self.sources.get(path)
        return Place(1, 1, 1, 1) if source is None else Place(*source.position(start), *source.position(end))


def render(report: Report, format: str = "text", style: Style | None = None) -> str:  # noqa: A002
    """The report in one of ``FORMATS``; empty, or ending in a newline."""
    if format not in FORMATS:
        raise ValueError(f"unknown output format {format!r}: choose from {', '.join(FORMATS)}")
    text: str = importlib.import_module(f"gpulint.report.{format}").render(report, style or Style())
    return _encodable(text)


def _problem(result: ParseFailed | RuleCrashed) -> Problem:
    if isinstance(result, ParseFailed):
        return Problem(result.path, result.line, result.column, result.message)
    message = f"rule {result.code} crashed ({result.message}); what the other rules found is kept"
    return Problem(result.path, 1, 1, message, result.code, result.traceback)


def _encodable(text: str) -> str:
    """File names need not be text, and a strange coding can yield half a surrogate pair."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")
