"""Every fixture and every rule's example, through the same invariants."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from harness import FIXTURES, assert_places, codes_of, expected, fixable, fixed, relint

from gpulint.finding import Applicability
from gpulint.fix import MAX_ROUNDS, apply_edits
from gpulint.rule import Rule, all_rules
from gpulint.source import Source, compiles, decode, from_text, replaced

RULES = {rule.name: rule for rule in all_rules()}
FOLDERS = sorted(path for path in FIXTURES.iterdir() if path.is_dir() and path.name != "demo")
FILES = sorted(p for folder in FOLDERS for p in folder.glob("*.py") if not p.name.endswith(".fixed.py"))
REPORTED = [path for path in FILES if not path.stem.endswith("_ok")]


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


@cache
def load(path: Path) -> Source:
    return decode(path, path.read_bytes())


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_findings_are_those_expected(path: Path) -> None:
    source = load(path)
    wanted = expected(source.text)
    assert bool(wanted) is not path.stem.endswith("_ok"), "a file without expectations is named *_ok.py"
    found = [(source.position(f.span.start)[0], f.code) for f in relint(source)]
    assert_places(source.text, type(wanted)(found), wanted, name_of(path))


@pytest.mark.parametrize("path", REPORTED, ids=name_of)
def test_fixes_give_the_fixed_text(path: Path) -> None:
    source = load(path)
    after, mended, _ = fixed(source)
    golden = path.with_suffix(".fixed.py")
    if os.environ.get("GPULINT_UPDATE") and mended:
        golden.write_bytes(after.encoded(after.text))
    assert golden.exists() is bool(mended)
    if mended:
        assert after.encoded(after.text) == golden.read_bytes()


@pytest.mark.parametrize("path", REPORTED, ids=name_of)
def test_fixes_compile_settle_and_bring_nothing_new(path: Path) -> None:
    source = load(path)
    before = set(codes_of(relint(source)))
    after, _, rounds = fixed(source)
    assert rounds <= MAX_ROUNDS
    assert compiles(after.text, path)
    left = relint(after)
    assert not [f for f in left if fixable(f)]
    assert set(codes_of(left)) <= before


@pytest.mark.parametrize("path", REPORTED, ids=name_of)
def test_safe_fixes_leave_no_safe_fix(path: Path) -> None:
    after, _, _ = fixed(load(path), unsafe=False)
    assert not [f for f in relint(after) if fixable(f, unsafe=False)]


@pytest.mark.parametrize("path", REPORTED, ids=name_of)
def test_lines_outside_of_edits_stay(path: Path) -> None:
    source = load(path)
    for finding in relint(source):
        if fixable(finding) and finding.fix is not None:
            text = apply_edits(source.text, finding.fix.edits)
            first = min(edit.start for edit in finding.fix.edits)
            last = max(edit.end for edit in finding.fix.edits)
            assert text.startswith(source.text[:first])
            assert text.endswith(source.text[last:])


@pytest.mark.parametrize("path", REPORTED, ids=name_of)
def test_findings_move_with_the_text(path: Path) -> None:
    source = load(path)
    moved = replaced(source, "# a line before\n" + source.text)
    before = [(source.position(f.span.start)[0] + 1, f.code, f.message) for f in relint(source)]
    assert [(moved.position(f.span.start)[0], f.code, f.message) for f in relint(moved)] == before


@pytest.mark.parametrize("path", REPORTED, ids=name_of)
def test_newlines_do_not_matter(path: Path) -> None:
    source = load(path)
    plain = source.text.replace("\r\n", "\n")
    windows = replaced(source, plain.replace("\n", "\r\n"))
    unix = replaced(source, plain)
    assert [(unix.position(f.span.start), f.code) for f in relint(unix)] == [
        (windows.position(f.span.start), f.code) for f in relint(windows)
    ]
    assert "\n" not in fixed(windows)[0].text.replace("\r\n", "")


# ---- the rules' examples ---------------------------------------------------------------------------


def example(rule: Rule, text: str) -> Source:
    return from_text(Path(f"/project/{rule.name}/main.py"), text)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_before_is_reported_and_after_is_not(rule: Rule) -> None:
    assert rule.code in codes_of(relint(example(rule, rule.example.before)))
    assert codes_of(relint(example(rule, rule.example.after))) == []
    assert compiles(rule.example.after, Path(rule.name))


@pytest.mark.parametrize("rule", [r for r in RULES.values() if r.fixable != "never"], ids=lambda rule: rule.code)
def test_the_fix_of_before_is_after(rule: Rule) -> None:
    assert fixed(example(rule, rule.example.before))[0].text == rule.example.after


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_declared_and_real_fixability_agree(rule: Rule) -> None:
    found = [f for path in (FIXTURES / rule.name).glob("*.py") if path in REPORTED for f in relint(load(path))]
    mine = [replace(f, code=f.code) for f in found if f.code == rule.code]
    mine += [f for f in relint(example(rule, rule.example.before)) if f.code == rule.code]
    able = [fixable(f) for f in mine]
    assert {"always": all(able), "sometimes": any(able), "never": not any(able)}[rule.fixable]
    for finding in mine:
        if finding.fix is not None and finding.fix.applicability is Applicability.MANUAL:
            assert not finding.fix.edits
