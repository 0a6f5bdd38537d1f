"""Workflow commands, which GitHub Actions shows as annotations on the changed lines.

GitHub shows a few annotations of each level per step only, so the worst come first.
"""

from __future__ import annotations

from gpulint.finding import Confidence, Finding
from gpulint.report import Problem, Report, Style

_LEVELS = {Confidence.CERTAIN: "error", Confidence.LIKELY: "warning", Confidence.POSSIBLE: "notice"}


def render(report: Report, style: Style) -> str:
    findings = [_finding(report, finding) for finding in report.findings]
    problems = [_problem(report, problem) for problem in report.problems]
    return "".join(f"{line}\n" for line in [*findings, *problems])


def _finding(report: Report, finding: Finding) -> str:
    place = report.place(finding)
    properties: dict[str, object] = {
        "file": report.portable(finding.path),
        "line": place.line,
        "col": place.column,
        "endLine": place.end_line,
    }
    if place.line == place.end_line:  # GitHub takes an end column in the same line only
        properties["endColumn"] = place.end_column
    properties["title"] = f"{finding.code} {report.name(finding.code)}".rstrip()
    message = finding.message if finding.fix is None else f"{finding.message}\nhelp: {finding.fix.title}"
    return _command(_LEVELS[finding.confidence], properties, message)


def _problem(report: Report, problem: Problem) -> str:
    place = {"file": report.portable(problem.path), "line": problem.line, "col": problem.column}
    return _command("error", {**place, "title": "gpulint"}, problem.message)


def _command(level: str, properties: dict[str, object], message: str) -> str:
    said = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items())
    return f"::{level} {said}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
