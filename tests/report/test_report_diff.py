"""The diff of a fix."""

from __future__ import annotations

import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gpulint.finding import Edit
from gpulint.fix import apply_edits
from gpulint.report.diff import Row, rows
from gpulint.source import from_text

_NEWLINE = re.compile(r"\r\n|\r|\n")


def drawn(text: str, *edits: Edit, context: int = 2) -> list[str]:
    made = rows(from_text(Path("x.py"), text), edits, context)
    return [f"{row.mark}{row.number or ''} {row.text}".rstrip() for row in made]


def test_a_replaced_line_with_its_context() -> None:
    text = "a\nb\nc\nd\ne\nf\n"
    assert drawn(text, Edit(6, 7, "D")) == [" 2 b", " 3 c", "-4 d", "+ D", " 5 e", " 6 f"]


def test_changes_far_apart_are_two_pieces() -> None:
    text = "".join(f"{n}\n" for n in range(1, 10))
    assert drawn(text, Edit(0, 1, "x"), Edit(16, 17, "y"), context=1) == [
        "-1 1", "+ x", " 2 2", ":", " 8 8", "-9 9", "+ y",
    ]  # fmt: skip


def test_changes_close_together_share_their_context() -> None:
    text = "a\nb\nc\nd\n"
    assert drawn(text, Edit(0, 1, "A"), Edit(4, 5, "C")) == ["-1 a", "+ A", " 2 b", "-3 c", "+ C", " 4 d"]


def test_added_lines_have_no_number() -> None:
    assert drawn("a\nb\n", Edit(2, 2, "new\n")) == [" 1 a", "+ new", " 2 b"]


def test_a_removed_line() -> None:
    assert drawn("a\nb\nc\n", Edit(2, 4, "")) == [" 1 a", "-2 b", " 3 c"]


def test_an_insertion_at_the_end() -> None:
    assert drawn("a\n", Edit(2, 2, "b\n")) == [" 1 a", "+ b"]
    assert drawn("a", Edit(1, 1, "\nb")) == [" 1 a", "+ b"]


def test_blank_lines_at_the_edges_are_left_out() -> None:
    assert drawn("a\n\nb\n\nc\n", Edit(3, 4, "B"), context=1) == ["-3 b", "+ B"]


def test_no_edits_no_diff() -> None:
    assert drawn("a\n") == []


_LINES = st.text(st.sampled_from("ab \n\r"), max_size=40)


@settings(deadline=None)
@given(_LINES, st.data())
def test_with_all_context_it_is_the_old_text_and_the_new(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6)))
    edits = [Edit(a, b, data.draw(_LINES)) for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    made = rows(from_text(Path("x.py"), text), edits, context=100)
    if any(row.mark in "+-" for row in made):
        assert _said(made, " -") == _filled(text)
        assert _said(made, " +") == _filled(apply_edits(text, edits))


def _said(made: list[Row], marks: str) -> list[str]:
    return [row.text for row in made if row.mark in marks and row.text.strip()]


def _filled(text: str) -> list[str]:
    return [line for line in _NEWLINE.split(text) if line.strip()]
