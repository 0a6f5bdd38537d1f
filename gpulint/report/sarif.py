"""SARIF 2.1.0, which code-scanning services take (OASIS, sarif-v2.1.0)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import Any
from urllib.parse import quote

from gpulint import __version__
from gpulint.finding import Confidence, Edit, Finding, Fix
from gpulint.report import Report, Style, known_rules
from gpulint.rule import Rule
from gpulint.source import Source

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://github.com/gpulint/gpulint"
_LEVELS = {Confidence.CERTAIN: "error", Confidence.LIKELY: "warning", Confidence.POSSIBLE: "note"}


def render(report: Report, style: Style) -> str:
    rules = list(known_rules().values())
    index = {rule.code: position for position, rule in enumerate(rules)}
    problems = report.problems
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "gpulint",
                "version": __version__,
                "informationUri": HOME,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"uri": report.root.absolute().as_uri().rstrip("/") + "/"}},
        "results": _results(report, index),
        "invocations": [
            {
                "executionSuccessful": not problems,
                "toolExecutionNotifications": [
                    {
                        "level": "error",
                        "message": {"text": problem.message},
                        "locations": [
                            _location(
                                report.shown(problem.path),
                                {"startLine": problem.line, "startColumn": problem.column},
                            )
                        ],
                    }
                    for problem in problems
                ],
            }
        ],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    body = rule.doc.partition("\n")[2].strip()
    return {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": f"{rule.title}."},
        "fullDescription": {"text": body.partition("\n\n")[0].replace("\n", " ") or rule.title},
        "help": {"text": rule.doc, "markdown": rule.doc},
        "helpUri": f"{HOME}/blob/main/docs/rules/{rule.name}.md",
        "defaultConfiguration": {"enabled": rule.on_by_default, "level": "warning"},
        "properties": {
            "group": rule.group,
            "severity": rule.severity.label,
            "tags": ["performance", rule.group],
        },
    }


def _results(report: Report, index: dict[str, int]) -> list[dict[str, Any]]:
    results = []
    seen: Counter[str] = Counter()
    for finding in report.findings:
        source = report.sources[finding.path]
        path = report.shown(finding.path)
        key = f"{finding.code}|{path}|{source.line_text(report.start(finding)[0]).strip()}"
        seen[key] += 1  # the same line twice in a file
        result: dict[str, Any] = {
            "ruleId": finding.code,
            "ruleIndex": index[finding.code],
            "level": _LEVELS[finding.confidence],
            "message": {"text": finding.message},
            "locations": [_location(path, _region(source, finding.span.start, finding.span.end))],
            "partialFingerprints": {"gpulint/v1": hashlib.sha256(f"{key}|{seen[key]}".encode()).hexdigest()[:32]},
            "properties": {"confidence": finding.confidence.label},
        }
        if finding.evidence:
            result["relatedLocations"] = _related(report, finding)
        if finding.fix is not None and finding.fix.edits:
            result["fixes"] = [_fix(source, path, finding.fix)]
        results.append(result)
    return results


def _related(report: Report, finding: Finding) -> list[dict[str, Any]]:
    return [
        {
            "id": position,
            **_location(report.shown(e.path), {"startLine": e.line, "startColumn": e.column}),
            "message": {"text": e.message},
        }
        for position, e in enumerate(finding.evidence)
    ]


def _location(path: str, region: dict[str, int]) -> dict[str, Any]:
    artifact: dict[str, str] = {"uri": quote(path)}
    if not path.startswith("/"):
        artifact["uriBaseId"] = "%SRCROOT%"
    return {"physicalLocation": {"artifactLocation": artifact, "region": region}}


def _region(source: Source, start: int, end: int) -> dict[str, int]:
    line, column = source.position(start)
    end_line, end_column = source.position(end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}


def _fix(source: Source, path: str, fix: Fix) -> dict[str, Any]:
    location = _location(path, {})["physicalLocation"]["artifactLocation"]
    return {
        "description": {"text": fix.title},
        "artifactChanges": [
            {"artifactLocation": location, "replacements": [_replacement(source, edit) for edit in fix.edits]}
        ],
    }


def _replacement(source: Source, edit: Edit) -> dict[str, Any]:
    return {
        "deletedRegion": _region(source, edit.start, edit.end),
        "insertedContent": {"text": edit.text},
    }
