"""The formats for programs: their schemas, escapes and fingerprints."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import jsonschema
import pytest
from made_up import CLEAN, CLOCK, DATA, ITEM, PINNED, REPORT, ROOT, TRAIN, TRAIN_TEXT

from gpulint.finding import Checked, Finding
from gpulint.fix import apply_edits
from gpulint.report import Report, Style, every_rule, render
from gpulint.source import from_text

HERE = Path(__file__).parent
DOCS = HERE.parents[1] / "docs" / "output-formats.md"


def schema(name: str) -> Any:
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def of(*findings: Finding) -> Report:
    return replace(REPORT, results=[Checked(f.path, (f,)) for f in findings])


# ---- json ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("report", [REPORT, CLEAN, replace(REPORT, rules=())])
@pytest.mark.parametrize("statistics", [False, True])
def test_json_keeps_its_promise(report: Report, statistics: bool) -> None:
    said = json.loads(render(report, "json", Style(statistics=statistics)))
    jsonschema.Draft202012Validator(schema("report-schema.json")).validate(said)


def test_every_json_field_is_documented() -> None:
    documented = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8")))
    fields = _fields(schema("report-schema.json"))
    assert fields <= documented, fields - documented


def _fields(node: Any) -> set[str]:
    found: set[str] = set()
    if isinstance(node, dict):
        found |= set(node.get("properties", ()))
        for child in node.values():
            found |= _fields(child)
    return found


def test_json_positions_are_those_of_the_text() -> None:
    said = json.loads(render(of(CLOCK), "json"))["findings"][0]
    line = TRAIN_TEXT.splitlines()[said["line"] - 1]
    assert said["line"] == said["end_line"]
    assert line[said["column"] - 1 : said["end_column"] - 1].startswith('{"shape"')


def test_json_edits_make_the_fixed_text() -> None:
    said = json.loads(render(of(ITEM), "json"))["findings"][0]["fix"]
    lines = TRAIN_TEXT.splitlines(keepends=True)
    for edit in reversed(said["edits"]):
        before = "".join(lines[: edit["line"] - 1]) + lines[edit["line"] - 1][: edit["column"] - 1]
        after = lines[edit["end_line"] - 1][edit["end_column"] - 1 :] + "".join(lines[edit["end_line"] :])
        lines = (before + edit["text"] + after).splitlines(keepends=True)
    assert ITEM.fix is not None
    assert "".join(lines) == apply_edits(TRAIN_TEXT, ITEM.fix.edits)


# ---- sarif -----------------------------------------------------------------------------------------


def sarif(report: Report) -> Any:
    return json.loads(render(report, "sarif"))["runs"][0]


ALL_RULES = replace(CLEAN, rules=every_rule())


@pytest.mark.parametrize("report", [REPORT, CLEAN, replace(REPORT, rules=()), ALL_RULES])
def test_sarif_is_valid(report: Report) -> None:
    said = json.loads(render(report, "sarif"))
    validator = jsonschema.Draft4Validator(
        schema("sarif-schema-2.1.0.json"), format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER
    )
    validator.validate(said)


def test_sarif_refers_to_its_rules() -> None:
    run = sarif(of(ITEM, PINNED, CLOCK))
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(rule["id"] for rule in rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]


def test_every_rule_says_in_sarif_what_it_is() -> None:
    for rule in sarif(ALL_RULES)["tool"]["driver"]["rules"]:
        assert rule["shortDescription"]["text"], rule["id"]
        assert rule["fullDescription"]["text"], rule["id"]
        assert rule["help"]["markdown"].startswith("# "), rule["id"]
        assert re.fullmatch(r"https://\S+\w", rule.get("helpUri", "https://none")), rule["id"]


def test_sarif_paths_are_relative_and_encoded() -> None:
    location = sarif(of(PINNED))["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert location == {"uri": "src/data%20set.py", "uriBaseId": "%SRCROOT%"}


@pytest.mark.parametrize("name", ["/other/a b.py", "../up.py"])
def test_sarif_paths_outside_the_root_are_absolute(name: str) -> None:
    location = sarif(of(replace(ITEM, path=Path(name))))["results"][0]["locations"][0]["physicalLocation"]
    assert "uriBaseId" not in location["artifactLocation"]
    assert location["artifactLocation"]["uri"].startswith("file:///")
    assert Path(unquote(location["artifactLocation"]["uri"].removeprefix("file://"))).is_absolute()


def test_sarif_says_nothing_of_the_machine() -> None:
    assert str(ROOT) not in render(REPORT, "sarif")


def test_sarif_doubles_braces_in_messages() -> None:
    assert "{{the time}}" in sarif(of(CLOCK))["results"][0]["message"]["text"]


def _prints(findings: tuple[Finding, ...], text: str) -> list[str]:
    report = replace(REPORT, results=[Checked(TRAIN, findings)], sources={TRAIN: from_text(TRAIN, text)})
    return [result["partialFingerprints"]["gpulint/v1"] for result in sarif(report)["results"]]


def _moved(finding: Finding, by: int) -> Finding:
    where = replace(finding.span, start=finding.span.start + by, end=finding.span.end + by)
    return replace(finding, span=where, fix=None)


def test_fingerprints_outlive_lines_that_move() -> None:
    still = _prints((_moved(ITEM, 0),), TRAIN_TEXT)
    above = "# a comment\n\n"
    assert _prints((_moved(ITEM, len(above)),), above + TRAIN_TEXT) == still
    assert _prints((_moved(ITEM, 0),), TRAIN_TEXT.replace("total +=", "other +=")) != still


def test_findings_in_equal_lines_have_fingerprints_of_their_own() -> None:
    twice = TRAIN_TEXT + TRAIN_TEXT
    prints = _prints((_moved(ITEM, 0), _moved(ITEM, len(TRAIN_TEXT))), twice)
    assert len(set(prints)) == 2
    assert prints[0] == _prints((_moved(ITEM, 0),), TRAIN_TEXT)[0]


def test_a_crash_is_a_notification_of_its_rule() -> None:
    invocation = sarif(REPORT)["invocations"][0]
    assert invocation["executionSuccessful"] is False
    assert [n.get("associatedRule", {}).get("id") for n in invocation["toolExecutionNotifications"]] == [
        None,
        "GPU101",
    ]


# ---- github, concise -------------------------------------------------------------------------------


def test_github_escapes_what_its_syntax_needs() -> None:
    odd = replace(ITEM, path=ROOT / "a,b:c%.py", message="50%\r\nof it: a, b")
    assert render(of(odd), "github").startswith("::error file=a%2Cb%3Ac%25.py,line=1,col=1,")
    assert "::50%25%0D%0Aof it: a, b%0Ahelp: " in render(of(odd), "github")


def test_github_levels_follow_confidence() -> None:
    commands = [line.split(" ")[0] for line in render(of(ITEM, PINNED, CLOCK), "github").splitlines()]
    assert commands == ["::notice", "::warning", "::error"]


def test_concise_is_one_line_each() -> None:
    odd = replace(PINNED, message="two\nlines \x1b[31m")
    assert render(of(odd), "concise") == "src/data set.py:5:12: GPU201 two lines ␛[31m\n"


def test_reports_do_not_look_at_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = [render(REPORT, name) for name in ("text", "concise", "json", "sarif", "github")]
    monkeypatch.chdir(tmp_path)
    assert [render(REPORT, name) for name in ("text", "concise", "json", "sarif", "github")] == before
    assert DATA.is_absolute()
