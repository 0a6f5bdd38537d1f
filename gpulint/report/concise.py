"""One line per finding, for editors and grep: ``path:line:column: CODE message``."""

from __future__ import annotations

from gpulint.report import Report, Style


def render(report: Report, style: Style) -> str:
    lines = []
    for finding in report.findings:
        line, column = report.start(finding)
        lines.append(f"{report.shown(finding.path)}:{line}:{column}: {finding.code} {finding.message}\n")
    for problem in report.problems:
        lines.append(f"{report.shown(problem.path)}:{problem.line}:{problem.column}: error: {problem.message}\n")
    return "".join(lines)
