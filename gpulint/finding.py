"""What a rule says: spans, edits, fixes, evidence, findings, and the result for one file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, IntEnum
from pathlib import Path


class Confidence(IntEnum):
    """How sure a finding is; ``LIKELY`` and up are shown by default."""

    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3

    @property
    def label(self) -> str:
        return self.name.lower()


class Severity(IntEnum):
    """The class of a rule, worst first in reports: silently wrong, leaking memory, slow, advice."""

    WRONG = 1
    MEMORY = 2
    SLOW = 3

    @property
    def label(self) -> str:
        return self.name.lower()


class Applicability(Enum):
    """Whether ``--fix`` may apply a fix: safe, only with ``--unsafe-fixes``, or never (words only)."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A half-open range of *character* offsets into the decoded text of one file."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace ``text[start:end]`` by ``text``; an insertion has ``start == end``."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Fix:
    """A way to mend a finding.

    ``title`` is an imperative without a full stop. A manual fix has no edits; ``sketch`` may then
    hold a few lines of code that show what the mended file would say.
    """

    title: str
    applicability: Applicability
    edits: tuple[Edit, ...] = ()
    sketch: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One link of the chain behind a finding: a fact and the place where it can be checked.

    ``line`` and ``column`` count from 1; ``path`` may be another file of the project.
    """

    path: Path
    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One anti-pattern at one place. ``code`` and ``path`` are stamped by the engine."""

    span: Span
    message: str
    confidence: Confidence
    evidence: tuple[Evidence, ...] = ()
    fix: Fix | None = None
    code: str = ""
    path: Path = field(default_factory=Path)


@dataclass(frozen=True, slots=True)
class Checked:
    """A file that was read, understood and checked by every selected rule."""

    path: Path
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class ParseFailed:
    """A file that could not be read or parsed; ``line`` and ``column`` are 1 where unknown."""

    path: Path
    line: int
    column: int
    message: str


@dataclass(frozen=True, slots=True)
class RuleCrashed:
    """A rule raised on a file: a defect of gpulint. The other rules' findings are kept."""

    path: Path
    code: str
    message: str
    traceback: str
    findings: tuple[Finding, ...] = ()


FileResult = Checked | ParseFailed | RuleCrashed
