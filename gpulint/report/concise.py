"""One line per finding, for editors and for grep."""

from __future__ import annotations

from gpulint.report import Report, Style
from gpulint.report.display import clean


def render(report: Report, style: Style) -> str:
    lines: list[str] = []
    for finding in report.findings:
        place = report.place(finding)
        where = f"{report.shown(finding.path)}:{place.line}:{place.column}"
        lines.append(_line(where, finding.code, finding.message))
    for problem in report.problems:
        where = f"{report.shown(problem.path)}:{problem.line}:{problem.column}"
        lines.append(_line(where, "error:", problem.message))
    return "".join(lines)


def _line(where: str, what: str, message: str) -> str:
    return f"{clean(where)}: {what} {clean(' '.join(message.split()))}\n"
