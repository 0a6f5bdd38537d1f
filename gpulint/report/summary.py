"""The figures of a report, and the sentences that say them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from gpulint.finding import Applicability, Confidence, Finding, ParseFailed
from gpulint.report import Report


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts. ``unsafe_fixable`` are those that ``--fix`` leaves to ``--unsafe-fixes``."""

    files: int
    findings: int
    files_with_findings: int
    errors: int
    fixable: int
    unsafe_fixable: int
    fixed: int
    by_confidence: dict[str, int]
    by_rule: dict[str, int]


def summarise(report: Report) -> Summary:
    fixes = Counter(_applicability(finding) for finding in report.findings)
    sure = Counter(finding.confidence for finding in report.findings)
    return Summary(
        files=len({r.path for r in report.results if not isinstance(r, ParseFailed)}),
        findings=len(report.findings),
        files_with_findings=len({finding.path for finding in report.findings}),
        errors=len(report.problems),
        fixable=fixes[Applicability.SAFE],
        unsafe_fixable=fixes[Applicability.UNSAFE],
        fixed=report.fixed,
        by_confidence={level.label: sure[level] for level in sorted(Confidence, reverse=True)},
        by_rule=dict(sorted(Counter(finding.code for finding in report.findings).items())),
    )


def sentences(summary: Summary, width: int) -> list[str]:
    """What stands at the end of the text report: one line if it fits, else one per sentence."""
    said = [f"Fixed {count(summary.fixed, 'finding')}."] if summary.fixed else []
    if summary.findings:
        whole = f"{_found(summary)}; {_fixable(summary)}."
        if not _fixable(summary):
            said.append(f"{_found(summary)}.")
        elif len(whole) <= width:
            said.append(whole)
        else:
            said += [f"{_found(summary)}.", f"{_fixable(summary)}."]
    else:
        left = " left" if summary.fixed else ""
        said.append(f"No findings{left} in {count(summary.files, 'file')}.")
    if summary.errors:
        said.append(f"{count(summary.errors, 'error')}.")
    whole = " ".join(said)
    return [whole] if len(whole) <= width else said


def _found(summary: Summary) -> str:
    levels = ", ".join(f"{n} {level}" for level, n in summary.by_confidence.items() if n)
    where = count(summary.files_with_findings, "file")
    if summary.fixed:
        return f"{count(summary.findings, 'finding')} left in {where} ({levels})"
    return f"Found {count(summary.findings, 'finding')} in {where} ({levels})"


def _fixable(summary: Summary) -> str:
    safe, unsafe = summary.fixable, summary.unsafe_fixable
    if not safe:
        return f"{unsafe} fixable with --fix --unsafe-fixes" if unsafe else ""
    return f"{safe} fixable with --fix" + (f" ({unsafe} more with --unsafe-fixes)" if unsafe else "")


def count(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _applicability(finding: Finding) -> Applicability | None:
    return finding.fix.applicability if finding.fix is not None and finding.fix.edits else None
