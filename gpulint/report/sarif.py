"""SARIF 2.1.0, for code scanning services. Free of anything about the machine that it was written on."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from gpulint import __version__
from gpulint.finding import Confidence, Evidence, Finding, Fix, Severity
from gpulint.report import Place, Problem, Report, Style
from gpulint.rule import Rule

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
BASE = "%SRCROOT%"
FINGERPRINT = "gpulint/v1"
_LEVELS = {Severity.WRONG: "error", Severity.MEMORY: "warning", Severity.SLOW: "warning"}
_LINK = re.compile(r"https://[^\s<>)\"'`]+")

Object = dict[str, object]


def render(report: Report, style: Style) -> str:
    rules = sorted(report.by_code.values(), key=lambda rule: rule.code)
    index = {rule.code: number for number, rule in enumerate(rules)}
    prints = dict(_fingerprints(report))
    run = {
        "tool": {
            "driver": {
                "name": "gpulint",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [_rule(rule) for rule in rules],
            }
        },
        "invocations": [
            {
                "executionSuccessful": not report.problems,
                "toolExecutionNotifications": [_notification(report, p, index) for p in report.problems],
            }
        ],
        "originalUriBaseIds": {BASE: {"description": {"text": "The folder that gpulint was run in."}}},
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\r", "\n"],
        "defaultSourceLanguage": "python",
        "results": [_result(report, f, index, prints[n]) for n, f in enumerate(report.findings)],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


# ---- rules -----------------------------------------------------------------------------------------


def _rule(rule: Rule) -> Object:
    from gpulint.pages import markdown, text

    _, _, body = rule.doc.partition("\n")
    paragraph = " ".join(body.strip().partition("\n\n")[0].split())
    level = _LEVELS[rule.severity]
    said: Object = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": paragraph or rule.title},
        "help": {"text": text(rule), "markdown": markdown(rule)},
        "defaultConfiguration": {"enabled": rule.on_by_default, "level": level},
        "properties": {
            "group": rule.group,
            "severity": rule.severity.label,
            "tags": list(dict.fromkeys(("gpu", "pytorch", rule.group, rule.severity.label))),
            "problem.severity": level,
        },
    }
    link = _LINK.search(rule.doc)
    return said | {"helpUri": link.group().rstrip(".,")} if link else said


# ---- results ---------------------------------------------------------------------------------------


def _result(report: Report, finding: Finding, index: dict[str, int], fingerprint: str) -> Object:
    level = "note" if finding.confidence is Confidence.POSSIBLE else _LEVELS[report.severity(finding)]
    said: Object = {
        "ruleId": finding.code,
        "level": level,
        "message": {"text": _message(finding)},
        "locations": [{"physicalLocation": _physical(report, finding.path, report.place(finding))}],
        "partialFingerprints": {FINGERPRINT: fingerprint},
        "properties": {
            "confidence": finding.confidence.label,
            "severity": report.severity(finding).label,
        },
    }
    if finding.code in index:
        said["ruleIndex"] = index[finding.code]
    if finding.evidence:
        said["relatedLocations"] = [_related(report, n, link) for n, link in enumerate(finding.evidence, 1)]
    if finding.fix is not None and finding.fix.edits:
        said["fixes"] = [_fix(report, finding, finding.fix)]
    return said


def _message(finding: Finding) -> str:
    """The finding in one sentence, and what to do about it in a second."""
    sentences = [finding.message] if finding.fix is None else [finding.message, finding.fix.title]
    return _text(" ".join(f"{s[:1].upper()}{s[1:].rstrip('.')}." for s in sentences))


def _text(message: str) -> str:
    """Braces are placeholders in a SARIF message unless they are doubled."""
    return message.replace("{", "{{").replace("}", "}}")


def _related(report: Report, number: int, link: Evidence) -> Object:
    place = {"startLine": link.line, "startColumn": link.column}
    where = {"artifactLocation": _artifact(report, link.path), "region": place}
    return {"id": number, "physicalLocation": where, "message": {"text": _text(link.message)}}


def _fix(report: Report, finding: Finding, fix: Fix) -> Object:
    replacements = [
        {
            "deletedRegion": _region(report.region(finding.path, edit.start, edit.end)),
            "insertedContent": {"text": edit.text},
        }
        for edit in sorted(fix.edits)
    ]
    change = {"artifactLocation": _artifact(report, finding.path), "replacements": replacements}
    return {
        "description": {"text": _text(fix.title)},
        "artifactChanges": [change],
        "properties": {"applicability": fix.applicability.value},
    }


def _notification(report: Report, problem: Problem, index: dict[str, int]) -> Object:
    place = {"startLine": problem.line, "startColumn": problem.column}
    where = {"artifactLocation": _artifact(report, problem.path), "region": place}
    said: Object = {
        "level": "error",
        "message": {"text": _text(problem.message)},
        "locations": [{"physicalLocation": where}],
    }
    if problem.code in index:
        said["associatedRule"] = {"id": problem.code, "index": index[problem.code]}
    return said


# ---- places ----------------------------------------------------------------------------------------


def _physical(report: Report, path: Path, place: Place) -> Object:
    return {"artifactLocation": _artifact(report, path), "region": _region(place)}


def _region(place: Place) -> Object:
    return {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }


def _artifact(report: Report, path: Path) -> Object:
    """Relative to the root, percent-encoded; a file outside it is named in full."""
    whole = Path(os.path.normpath(report.root / path))
    root = Path(os.path.normpath(report.root))
    if whole.is_relative_to(root):
        return {"uri": quote(os.fsencode(whole.relative_to(root).as_posix())), "uriBaseId": BASE}
    if whole.is_absolute():
        return {"uri": whole.as_uri()}
    return {"uri": quote(os.fsencode(whole.as_posix()))}


def _fingerprints(report: Report) -> Iterator[tuple[int, str]]:
    """What stays the same when lines move: code, path, the text of the line, and which such it is."""
    seen: Counter[tuple[str, str, str]] = Counter()
    order = sorted(range(len(report.findings)), key=lambda n: (report.findings[n].span, n))
    for number in order:
        finding = report.findings[number]
        source = report.sources.get(finding.path)
        line = "" if source is None else source.line_text(report.place(finding).line).strip()
        key = (finding.code, report.portable(finding.path), line)
        text = "\0".join((*key, str(seen[key])))
        seen[key] += 1
        yield number, hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]
