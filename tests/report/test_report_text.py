"""The text format: carets, cutting, wrapping, colours, and the sentences at the end."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import CLEAN, ITEM, PINNED, REPORT, alone, span

from gpulint.finding import Applicability, Checked, Edit, Evidence, Finding, Fix, ParseFailed, Span
from gpulint.report import Report, Style, render
from gpulint.report.display import cells, clip, measure, wrap

_ANSI = re.compile(r"\033\[[\d;]*m")


def width_of(line: str) -> int:
    """Cells on a terminal, counted independently of the code under test."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in line)
    return len(line) + wide - sum(unicodedata.category(c) in ("Mn", "Me", "Cf") for c in line)


def shown(finding: Finding, text: str, **style: int) -> list[str]:
    return render(alone(finding, text), "text", Style(quiet=True, **style)).splitlines()  # type: ignore[arg-type]


def bare(text: str, part: str, fix: Fix | None = None) -> list[str]:
    return shown(replace(ITEM, span=span(text, part), fix=fix, message="m"), text)[2:]


# ---- carets ----------------------------------------------------------------------------------------


def test_carets_stand_under_the_span() -> None:
    assert bare("total += loss.item()\n", "loss.item()") == [
        "  |",
        "1 | total += loss.item()",
        "  |          ^^^^^^^^^^^",
    ]


@pytest.mark.parametrize("start", ["\tx = ", "  \tx = ", "大 = ", "e\u0301 = ", "'\x1b[31m' + "])
def test_carets_stand_right_after_tabs_and_wide_or_invisible_characters(start: str) -> None:
    text = f"{start}loss.item()\n"
    _, code, carets = bare(text, "loss.item()")
    assert width_of(code[: code.index("loss")]) == carets.index("^")
    assert carets.count("^") == len("loss.item()")


def test_an_empty_span_has_one_caret() -> None:
    assert shown(replace(ITEM, span=Span(2, 2), fix=None), "x = 1\n")[-1] == "  |   ^"


def test_a_span_at_the_end_of_the_text() -> None:
    assert shown(replace(ITEM, span=Span(6, 6), fix=None), "x = 1\n")[-2:] == ["2 |", "  | ^"]


def test_a_span_of_several_lines_is_bracketed() -> None:
    text = "x = f(\n    1,\n)\n"
    assert bare(text, "f(\n    1,\n)") == [
        "  |",
        "1 |   x = f(",
        "  |  _____^",
        "2 | |     1,",
        "3 | | )",
        "  | |_^",
    ]


def test_a_span_of_several_lines_from_the_first_character_on() -> None:
    text = "if x:\n    f()\n"
    assert bare(text, "if x:\n    f()") == ["  |", "1 | / if x:", "2 | |     f()", "  | |_______^"]


def test_the_middle_of_a_long_span_is_left_out() -> None:
    text = "f(\n" + "".join(f"    {n},\n" for n in range(20)) + ")\n"
    lines = bare(text, text.rstrip("\n"))
    assert lines[-4:] == ["   | | ...", "21 | |     19,", "22 | | )", "   | |_^"]
    assert len(lines) == 10


def test_a_long_line_is_cut_around_the_carets() -> None:
    text = f"x = [{'1, ' * 100}] + loss.item() + [{'2, ' * 100}]\n"
    _, code, carets = bare(text, "loss.item()")
    assert code.startswith("1 | …")
    assert code.endswith("…")
    assert code[carets.index("^") : carets.rindex("^") + 1] == "loss.item()"


def test_a_span_longer_than_the_line_is_wide() -> None:
    text = f"x = f({'1, ' * 100})\n"
    _, code, carets = bare(text, text[4:-1])
    assert len(code) == len(carets) == 80


# ---- the fix ---------------------------------------------------------------------------------------


def test_a_change_far_to_the_right_is_in_view() -> None:
    text = f"x = [{'1, ' * 50}] + loss.item()\ny = 1\n"
    fix = Fix("Fix it", Applicability.SAFE, (Edit(*_offsets(text, "loss.item()"), "loss.detach()"),))
    removed, added = (line for line in bare(text, "x", fix) if re.match(r"[ 1] [-+]", line))
    assert "loss.item()" in removed
    assert "loss.detach()" in added
    assert removed.index("loss") == added.index("loss")


def test_a_long_fix_is_cut() -> None:
    text = "".join(f"x{n} = 1\n" for n in range(60))
    fix = Fix("Fix it", Applicability.SAFE, (Edit(0, len(text), text.replace("1", "2")),))
    assert bare(text, "x0", fix)[-1].endswith("more lines: see --diff")


def test_a_long_line_of_a_sketch_goes_on_below() -> None:
    sketch = f"x = [{'1, ' * 40}]"
    fix = Fix("Fix it", Applicability.MANUAL, sketch=sketch)
    lines = bare("x = 1\n", "x", fix)[-2:]
    assert lines[1].startswith("  : ")
    assert "".join(line[4:] for line in lines).replace(" ", "") == sketch.replace(" ", "")


def _offsets(text: str, part: str) -> tuple[int, int]:
    where = span(text, part)
    return where.start, where.end


# ---- the summary -----------------------------------------------------------------------------------


def last(report: Report, width: int = 80) -> str:
    return render(report, "text", Style(width=width)).rpartition("\n\n")[2].rstrip("\n")


def many(*findings: Finding, fixed: int = 0) -> Report:
    results = [Checked(f.path, (f,)) for f in findings]
    return replace(REPORT, results=results, fixed=fixed)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (CLEAN, "No findings in 1 file."),
        (replace(CLEAN, fixed=2), "Fixed 2 findings. No findings left in 1 file."),
        (many(PINNED), "Found 1 finding in 1 file (1 likely); 1 fixable with --fix."),
        (many(ITEM), "Found 1 finding in 1 file (1 certain); 1 fixable with --fix --unsafe-fixes."),
        (many(replace(ITEM, fix=None), fixed=1), "Fixed 1 finding. 1 finding left in 1 file (1 certain)."),
        (
            many(PINNED, ITEM),
            """Found 2 findings in 2 files (1 certain, 1 likely).
1 fixable with --fix (1 more with --unsafe-fixes).""",
        ),
    ],
)
def test_the_summary(report: Report, expected: str) -> None:
    assert last(report) == expected


def test_errors_are_in_the_summary() -> None:
    report = replace(CLEAN, results=[ParseFailed(Path("/project/a.py"), 2, 3, "invalid syntax")])
    assert render(report, "text") == ("a.py:2:3: error: invalid syntax\n\nNo findings in 0 files. 1 error.\n")


# ---- order, paths ----------------------------------------------------------------------------------


def test_the_worst_comes_first() -> None:
    codes = [finding.code for finding in REPORT.findings]
    assert codes == ["GPU108", "GPU201", "GPU999", "GPU101"]


def test_a_path_outside_the_root_is_named_in_full() -> None:
    path = Path("/elsewhere/x.py")
    report = replace(REPORT, results=[Checked(path, (replace(UNSOURCED, path=path),))])
    assert render(report, "text").startswith("/elsewhere/x.py:1:1: GPU101 item-in-step-loop\n")


def test_a_path_that_is_no_text_can_be_written() -> None:
    path = Path("/project/na\udce4me.py")
    report = replace(REPORT, results=[Checked(path, (replace(UNSOURCED, path=path),))])
    for name in ("text", "concise", "json", "sarif", "github"):
        assert re.search(rb"na(\\{1,2}udce4|%E4)me.py", render(report, name).encode("utf-8"))


UNSOURCED = replace(ITEM, evidence=(), fix=None)


# ---- properties ------------------------------------------------------------------------------------

_TEXT = st.text(st.sampled_from("ab ()=.,'\t大字\u0301\u200d🔥\x1b\x00\x0c\u202e\u2028\n"), max_size=300)
_PROSE = st.text(st.sampled_from("abcdefg  `大\t\n\x1b"), min_size=1, max_size=120)


@st.composite
def reports(draw: st.DrawFn) -> Report:
    text = draw(_TEXT)
    offset = st.integers(0, len(text))
    start, end = sorted((draw(offset), draw(offset)))
    cuts = sorted(draw(st.lists(offset, min_size=2, max_size=4)))
    edits = tuple(Edit(a, b, draw(_TEXT)) for a, b in zip(cuts[::2], cuts[1::2], strict=False))
    evidence = (
        Evidence(Path("x.py"), 1, 1, draw(_PROSE)),
        Evidence(Path("pack/age.py"), 12, 1, draw(_PROSE)),
    )
    manual = draw(st.booleans())
    kind = Applicability.MANUAL if manual else Applicability.SAFE
    fix = Fix(draw(_PROSE), kind, () if manual else edits, draw(_TEXT) if manual else "")
    return alone(replace(ITEM, span=Span(start, end), message=draw(_PROSE), evidence=evidence, fix=fix), text)


@settings(deadline=None)
@given(reports(), st.integers(40, 120))
def test_every_line_fits_and_nothing_reaches_the_terminal_as_a_command(report: Report, width: int) -> None:
    plain = render(report, "text", Style(explain=True, width=width))
    for line in plain.split("\n"):
        assert width_of(line) <= width
        assert line == line.rstrip()
        assert not any(unicodedata.category(c) == "Cc" or c in "\u202e\u2028" for c in line)


@settings(deadline=None)
@given(reports())
def test_colours_change_nothing_else(report: Report) -> None:
    plain = render(report, "text", Style(explain=True))
    painted = render(report, "text", Style(explain=True, color=True))
    assert [line.rstrip() for line in _ANSI.sub("", painted).split("\n")] == plain.split("\n")


@settings(deadline=None)
@given(_TEXT, st.integers(0, 60), st.integers(2, 60))
def test_cut_lines_fit(text: str, shift: int, width: int) -> None:
    assert width_of(clip(cells(text)[0], shift, width)) <= width


@settings(deadline=None)
@given(_PROSE, st.integers(10, 60))
def test_wrapping_loses_no_word(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert all(measure(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join("".join(cells(text)[0]).replace("␊", "").split())
