"""One JSON object for programs; docs/output-formats.md describes every field."""

from __future__ import annotations

import json

from gpulint.finding import Finding, Fix
from gpulint.report import Place, Report, Style
from gpulint.report.summary import summarise

VERSION = 1


def render(report: Report, style: Style) -> str:
    whole = {
        "version": VERSION,
        "findings": [_finding(report, finding) for finding in report.findings],
        "errors": [
            {"path": report.portable(problem.path), "line": problem.line, "message": problem.message}
            for problem in report.problems
        ],
        "summary": _summary(report, style),
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


def _finding(report: Report, finding: Finding) -> dict[str, object]:
    rule = report.by_code.get(finding.code)
    return {
        "code": finding.code,
        "name": report.name(finding.code),
        "group": "" if rule is None else rule.group,
        "severity": report.severity(finding).label,
        "message": finding.message,
        "path": report.portable(finding.path),
        **report.place(finding)._asdict(),
        "confidence": finding.confidence.label,
        "evidence": [
            {
                "path": report.portable(link.path),
                "line": link.line,
                "column": link.column,
                "message": link.message,
            }
            for link in finding.evidence
        ],
        "fix": None if finding.fix is None else _fix(report, finding, finding.fix),
    }


def _fix(report: Report, finding: Finding, fix: Fix) -> dict[str, object]:
    def place(start: int, end: int) -> Place:
        return report.region(finding.path, start, end)

    return {
        "title": fix.title,
        "applicability": fix.applicability.value,
        "edits": [{**place(e.start, e.end)._asdict(), "text": e.text} for e in sorted(fix.edits)],
    }


def _summary(report: Report, style: Style) -> dict[str, object]:
    figures = summarise(report)
    said: dict[str, object] = {name: getattr(figures, name) for name in figures.__slots__}
    if style.statistics:
        said["statistics"] = dict(sorted(report.statistics.items()))
    return said
