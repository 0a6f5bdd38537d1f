"""Fixes to text: which go together, what they may not break, how a file is replaced, and the diff."""

from __future__ import annotations

import codecs
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpulint import fix
from gpulint.finding import Applicability, Confidence, Edit, Finding, Fix, Span
from gpulint.fix import MAX_ROUNDS, apply_edits, apply_fixes, unified_diff, wanted, write_atomic
from gpulint.notebook import read_notebook
from gpulint.source import Source, SourceError, compiles, decode, from_text, read

PATH = Path("train.py")
SAFE, UNSAFE, MANUAL = Applicability.SAFE, Applicability.UNSAFE, Applicability.MANUAL
quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def finding(*edits: Edit, at: int | None = None, how: Applicability = SAFE, code: str = "GPU101") -> Finding:
    """A finding with a fix; it stands where its first edit does."""
    start = (edits[0].start if edits else 0) if at is None else at
    return Finding(Span(start, start + 1), "message", Confidence.CERTAIN, fix=Fix("Fix", how, edits), code=code)


def swap(text: str, old: str, new: str, how: Applicability = SAFE) -> Finding:
    start = text.index(old)
    return finding(Edit(start, start + len(old), new), how=how)


def mended(text: str, *findings: Finding, unsafe: bool = False) -> tuple[str, list[Finding]]:
    return apply_fixes(from_text(PATH, text), findings, unsafe)


# ---- which fixes -----------------------------------------------------------------------------------


def test_only_the_fixes_asked_for() -> None:
    text = "a, b, c\n"
    safe, unsafe, manual = swap(text, "a", "1"), swap(text, "b", "2", how=UNSAFE), swap(text, "c", "3", how=MANUAL)
    bare = Finding(Span(0, 1), "message", Confidence.CERTAIN)
    assert mended(text, safe, unsafe, manual, bare) == ("1, b, c\n", [safe])
    assert mended(text, safe, unsafe, manual, bare, unsafe=True) == ("1, 2, c\n", [safe, unsafe])
    assert not wanted(Fix("Say", SAFE), unsafe=True)  # no edits: nothing to apply


def test_a_fix_that_overlaps_waits_whole() -> None:
    text = "abcdef = 1\n"
    first = finding(Edit(0, 3, "x"))
    second = finding(Edit(2, 4, "y"), Edit(9, 10, "2"), at=2)
    third = finding(Edit(4, 6, "z"))  # does not overlap the first, and the second is not taken
    assert mended(text, third, second, first) == ("xdz = 1\n", [first, third])


def test_the_same_edit_mends_two_findings_and_is_made_once() -> None:
    text = "a, b\n"
    both = Edit(0, 0, "import torch\n")
    first, second = finding(Edit(0, 1, "x"), both), finding(Edit(3, 4, "y"), both)
    assert mended(text, first, second) == ("import torch\nx, y\n", [first, second])


def test_insertions_by_two_fixes_at_one_place_take_two_rounds() -> None:
    text = "f()\n"
    first, second = finding(Edit(2, 2, "a=1")), finding(Edit(2, 2, "b=2"), code="GPU102")
    assert mended(text, second, first) == ("f(a=1)\n", [first])


def test_edits_side_by_side_do_not_overlap() -> None:
    text = "ab = 1\n"
    replaced, behind, before = finding(Edit(0, 2, "c")), finding(Edit(2, 2, "d")), finding(Edit(0, 0, "e"))
    assert mended(text, replaced, behind, before)[0] == "ecd = 1\n"
    within = finding(Edit(1, 1, "_"))
    assert mended(text, replaced, within) == ("c = 1\n", [replaced])


def test_a_fix_whose_own_edits_overlap_is_never_applied() -> None:
    assert mended("abcd = 1\n", finding(Edit(0, 3, "x"), Edit(2, 4, "y"))) == ("abcd = 1\n", [])


@st.composite
def fixes(draw: st.DrawFn) -> list[Finding]:
    """Findings whose edits lie anywhere in ten characters, some alike."""
    place = st.tuples(st.integers(0, 10), st.integers(0, 3), st.sampled_from("xyz"))
    edit = place.map(lambda p: Edit(p[0], min(p[0] + p[1], 10), p[2]))
    every = draw(st.lists(st.lists(edit, min_size=1, max_size=3, unique=True), max_size=8))
    return [finding(*edits, at=number) for number, edits in enumerate(every)]


def overlap(a: Edit, b: Edit) -> bool:
    """Whether two edits touch a common character, or one inserts within the other, or both at one place."""
    if a.start == a.end == b.start == b.end:
        return True
    inside = any(x.start == x.end and y.start < x.start < y.end for x, y in ((a, b), (b, a)))
    return inside or bool(set(range(a.start, a.end)) & set(range(b.start, b.end)))


@quick
@given(fixes())
def test_fixes_are_taken_first_come_first_served(findings: list[Finding]) -> None:
    text = "#abcdefghi"  # a comment compiles whatever becomes of it, but for its first character
    findings = [f for f in findings if f.fix and all(e.start > 0 for e in f.fix.edits)]
    taken: list[Edit] = []
    expected: list[Finding] = []
    for one in findings:
        own = list(one.fix.edits) if one.fix else []
        new = [edit for edit in own if edit not in taken]
        alone = all(a.end <= b.start for a, b in pairwise(sorted(own)))
        if alone and not any(overlap(a, b) for a in new for b in taken):
            taken += new
            expected.append(one)
    result, chosen = mended(text, *findings)
    assert chosen == expected
    assert result == apply_edits(text, taken)
    assert len(result) == len(text) + sum(len(e.text) - (e.end - e.start) for e in taken)


@quick
@given(st.lists(st.sampled_from(["a", "é", "\r\n", "\n", "\u2028"]), max_size=12).map("".join), st.data())
def test_characters_outside_the_edits_are_the_same(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=6, unique=True)))
    edits = [Edit(a, b, f"<{a}>") for a, b in zip(cuts[::2], cuts[1::2], strict=False)]
    kept = [text[a:b] for a, b in pairwise([0, *(n for e in edits for n in (e.start, e.end)), len(text)])][::2]
    assert re.split(r"<\d+>", apply_edits(text, edits)) == kept


# ---- what a fix may not break ----------------------------------------------------------------------


def test_a_fix_that_breaks_the_file_is_dropped_and_the_others_are_not() -> None:
    text = "a = f(k=1)\nb = 2\nc = 3\n"
    twice = swap(text, "k=1", "k=1, k=1")  # parses, does not compile
    result, chosen = mended(text, swap(text, "a", "x"), twice, swap(text, "b", "y"), swap(text, "c", "z"))
    assert result == "x = f(k=1)\ny = 2\nz = 3\n"
    assert len(chosen) == 3


def test_fixes_that_break_only_each_other_go_as_far_as_they_can() -> None:
    text = "f(a, b)\n"
    first, second = swap(text, "a", "k=1"), swap(text, "b", "k=2")  # the first breaks the call by itself, too
    assert mended(text, first, second) == ("f(a, k=2)\n", [second])


def test_few_compilations_find_one_bad_fix_among_many(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"a{n} = 1\n" for n in range(256))
    findings = [finding(Edit(m.start(), m.end(), "b")) for m in re.finditer("a", text)]
    findings[100] = finding(Edit(findings[100].span.start, findings[100].span.end, "("))
    asked = 0

    def counted(text: str, path: Path) -> bool:
        nonlocal asked
        asked += 1
        return compiles(text, path)

    monkeypatch.setattr(fix, "compiles", counted)
    assert len(mended(text, *findings)[1]) == 255
    assert asked < 30


def test_a_file_that_only_parses_must_still_parse() -> None:
    text = "return a, b\n"  # outside a function
    assert mended(text, swap(text, "a", "x"), swap(text, "b", "(")) == ("return x, b\n", [swap(text, "a", "x")])


def test_what_the_encoding_lacks_is_dropped() -> None:
    source = decode(PATH, b"# coding: latin-1\na = b = 1\n")
    good, bad = swap(source.text, "a =", "\u00e9 ="), swap(source.text, "b =", "\u03b1 =")
    assert apply_fixes(source, [good, bad], unsafe=False) == ("# coding: latin-1\n\u00e9 = b = 1\n", [good])


def test_a_fix_that_reaches_across_cells_is_dropped() -> None:
    cells = '{"cells": [%s, %s]}' % (('{"cell_type": "code", "source": "a = 1"}',) * 2)
    notebook = read_notebook(Path("a.ipynb"), cells.encode())
    across = finding(Edit(notebook.text.index("a"), len(notebook.text), "b = 2\n"))
    assert apply_fixes(notebook, [across], unsafe=False) == (notebook.text, [])


_WORDS = {"slow": "fast", "slowly": "slow", "heavy": "slowly", "bad": "("}


def lint(source: Source) -> list[Finding]:
    """A word may be found twice, overlap others, be mended into a word that is found again, or break the file."""
    found = []
    for word, better in _WORDS.items():
        for match in re.finditer(word, source.text):
            edits = [Edit(match.start(), match.end(), better)]
            if word == "heavy" and not source.text.startswith("import light"):
                edits.append(Edit(0, 0, "import light\n"))
            found.append(finding(*edits, at=match.start()))
    return found


@quick
@given(st.lists(st.sampled_from([*_WORDS, "x = 'é\u2028'", ""]), max_size=6), st.sampled_from(["\n", "\r\n", "\r"]))
def test_rounds_settle_and_keep_every_other_line(lines: list[str], newline: str) -> None:
    text = newline.join(lines)
    source = from_text(PATH, text)
    for _ in range(MAX_ROUNDS):
        new, chosen = apply_fixes(source, lint(source), unsafe=False)
        assert compiles(new, PATH)
        assert (new == source.text) is (not chosen)
        if not chosen:
            break
        source = source.replaced(new)
    else:
        raise AssertionError("the fixes do not settle")
    assert not re.search("slow|heavy", source.text)
    better = {"slow": "fast", "slowly": "fastly", "heavy": "fastly"}
    settled = newline.join(better.get(line, line) for line in lines)
    assert source.text == ("import light\n" if "heavy" in lines else "") + settled


# ---- writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "after"),
    [
        (b"a = 1\r\nb = 2\rc = 3\n", b"x = 1\r\nb = 2\rc = 3\n"),
        (codecs.BOM_UTF8 + "a = 'é'".encode(), codecs.BOM_UTF8 + "x = 'é'".encode()),
        ("# coding: cp1251\r\na = 'я'\r\n".encode("cp1251"), "# coding: cp1251\r\nx = 'я'\r\n".encode("cp1251")),
    ],
)
def test_all_bytes_but_the_edit_stay(tmp_path: Path, raw: bytes, after: bytes) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(raw)
    source = read(path)
    write_atomic(source, source.text.replace("a =", "x ="))
    assert path.read_bytes() == after
    assert [p.name for p in tmp_path.iterdir()] == ["a.py"]


def test_mode_and_link_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("a = 1\n", encoding="utf-8")
    real.chmod(0o754)
    link.symlink_to("real.py")
    write_atomic(read(link), "b = 1\n")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "b = 1\n"
    assert real.stat().st_mode & 0o777 == 0o754


def test_nothing_changed_nothing_written(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n", encoding="utf-8")
    before = path.stat()
    source = read(path)
    write_atomic(source, source.text)
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def _edited(path: Path) -> None:
    path.write_text("c = 1\n", encoding="utf-8")


def _removed(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("meanwhile", "message"), [(_edited, "changed while it was linted"), (_removed, "cannot be written: No such file")]
)
def test_a_file_that_changed_meanwhile_is_left_alone(
    tmp_path: Path, meanwhile: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n", encoding="utf-8")
    source = read(path)
    meanwhile(path)
    state = path.read_bytes() if path.exists() else None
    with pytest.raises(SourceError, match=message):
        write_atomic(source, "b = 1\n")
    assert (path.read_bytes() if path.exists() else None) == state


def test_trouble_leaves_the_file_and_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.py"
    path.write_text("a = 1\n", encoding="utf-8")
    source = read(path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SourceError, match="cannot be written: No space left on device"):
        write_atomic(source, "b = 1\n")
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a.py": b"a = 1\n"}


@pytest.mark.parametrize(
    ("raw", "text", "message"),
    [
        (b"# coding: ascii\na = 1\n", "# coding: ascii\n\u00e9 = 1\n", "cannot be written as ascii"),
        # Two byte sequences stand for one character: the other would come back.
        (b"# coding: cp932\na = '\x87\x90'\n", "# coding: cp932\nb = '\u2252'\n", "does not give back all its bytes"),
    ],
)
def test_bytes_that_cannot_be_kept(tmp_path: Path, raw: bytes, text: str, message: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(raw)
    with pytest.raises(SourceError, match=message) as caught:
        write_atomic(read(path), text)
    assert "\n" not in caught.value.message
    assert path.read_bytes() == raw


# ---- diffs -----------------------------------------------------------------------------------------


def test_unified_diff() -> None:
    assert unified_diff("a\nb\n", "a\nc", "a.py") == (
        "--- a.py\n+++ a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n\\ No newline at end of file\n"
    )
    assert unified_diff("a\n", "a\n", "a.py") == ""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\nc\n", "a\nx\nc\n"),
        ("a\r\nb\r\n", "a\r\nx\r\n"),
        ("a\rb\rc", "a\rx\rc"),
        ("a\u2028b\x0cc\x1cd\ne\n", "a\u2028b\x0cx\x1cd\ne\n"),
        ("a\nb", "a\nb\n"),
        ("a\nb\n", "a\nb"),
    ],
)
def test_git_applies_the_diff(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(before.encode())
    diff = unified_diff(before, after, "a.py").encode()
    subprocess.run(["git", "apply", "-p0", "-"], input=diff, cwd=tmp_path, check=True, capture_output=True)
    assert path.read_bytes() == after.encode()
