"""Workflow commands that GitHub shows as annotations on the changed lines."""

from __future__ import annotations

from gpulint.finding import Confidence
from gpulint.report import Report, Style, known_rules


def render(report: Report, style: Style) -> str:
    lines = []
    rules = known_rules()
    for finding in report.findings:
        line, column = report.start(finding)
        end_line, end_column = report.end(finding)
        level = "error" if finding.confidence is Confidence.CERTAIN else "warning"
        place = f"file={_property(report.shown(finding.path))},line={line},endLine={end_line},col={column}"
        if end_line == line:
            place += f",endColumn={end_column}"
        title = _property(f"gpulint {finding.code} {rules[finding.code].name}")
        lines.append(f"::{level} {place},title={title}::{_data(finding.message)}\n")
    for problem in report.problems:
        place = f"file={_property(report.shown(problem.path))},line={problem.line},col={problem.column}"
        lines.append(f"::error {place},title=gpulint error::{_data(problem.message)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
