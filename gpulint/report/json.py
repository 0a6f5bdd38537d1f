"""One JSON object, version 1; docs/output-formats.md describes every field."""

from __future__ import annotations

import json
from typing import Any

from gpulint.finding import Finding, Fix
from gpulint.report import Report, Style, known_rules
from gpulint.source import Source


def render(report: Report, style: Style) -> str:
    findings = [_finding(report, finding) for finding in report.findings]
    by_code: dict[str, int] = {}
    for finding in report.findings:
        by_code[finding.code] = by_code.get(finding.code, 0) + 1
    document = {
        "version": 1,
        "findings": findings,
        "errors": [{"path": report.shown(p.path), "line": p.line, "message": p.message} for p in report.problems],
        "summary": {
            "files": len(report.results),
            "findings": len(findings),
            "fixed": report.fixed,
            "by_code": dict(sorted(by_code.items())),
            "seconds": round(report.elapsed, 3),
        },
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _finding(report: Report, finding: Finding) -> dict[str, Any]:
    rule = known_rules()[finding.code]
    source = report.sources[finding.path]
    line, column = source.position(finding.span.start)
    end_line, end_column = source.position(finding.span.end)
    return {
        "code": finding.code,
        "name": rule.name,
        "group": rule.group,
        "severity": rule.severity.label,
        "message": finding.message,
        "path": report.shown(finding.path),
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "confidence": finding.confidence.label,
        "evidence": [
            {"path": report.shown(e.path), "line": e.line, "column": e.column, "message": e.message}
            for e in finding.evidence
        ],
        "fix": _fix(source, finding.fix),
    }


def _fix(source: Source, fix: Fix | None) -> dict[str, Any] | None:
    if fix is None:
        return None
    edits = []
    for edit in fix.edits:
        line, column = source.position(edit.start)
        end_line, end_column = source.position(edit.end)
        edits.append(
            {
                "line": line,
                "column": column,
                "end_line": end_line,
                "end_column": end_column,
                "text": edit.text,
            }
        )
    return {"title": fix.title, "applicability": fix.applicability.value, "edits": edits}
