"""Reading files as text, positions in them, and writing changed text back."""

from __future__ import annotations

import ast
import codecs
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpulint.source import MAX_BYTES, Source, SourceError, compiles, decode, encode, from_text, read, replaced

PATH = Path("train.py")


# ---- positions -------------------------------------------------------------------------------------

_PIECES = ["x", "é", "😀", " ", "\t", "\f", "\x0b", "\x1c", "\x85", "\u2028", "\n", "\r", "\r\n", "ab"]


@given(st.lists(st.sampled_from(_PIECES), max_size=12).map("".join), st.sampled_from(["\n", "\r", "\r\n"]))
@example("\f\x0b\u2028é\r", "\r\n")
def test_offsets_agree_with_the_parser(filling: str, newline: str) -> None:
    """Whatever a string holds, the names before, beside and after it are found where ast says."""
    text = f"alpha = 1{newline}beta = '''{filling}''', gamma{newline}é = '{'ä' * 3}', delta"
    source = from_text(PATH, text)
    names = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    assert {name.id for name in names} == {"alpha", "beta", "gamma", "é", "delta"}
    for node in names:
        start = source.offset(node.lineno, node.col_offset)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        assert text[start : source.offset(node.end_lineno, node.end_col_offset)] == node.id
        line, column = source.position(start)
        assert (line, source.line_text(line)[column - 1 :][: len(node.id)]) == (node.lineno, node.id)


def test_lines_end_where_the_parser_says() -> None:
    source = from_text(PATH, "a\r\nb\rc\x0cd\u2028e\n\nf")
    assert [source.line_text(n) for n in range(7)] == ["", "a", "b", "c\x0cd\u2028e", "", "f", ""]
    assert source.line_count == 5
    assert source.position(0) == (1, 1)
    assert source.position(len(source.text)) == (5, 2)
    assert source.position(source.text.index("b")) == (2, 1)


def test_an_empty_text_has_one_line() -> None:
    source = from_text(PATH, "")
    assert (source.line_count, source.position(0), source.offset(1, 0)) == (1, (1, 1), 0)


def test_a_position_past_the_last_line_does_not_raise() -> None:
    assert from_text(PATH, "x = 1\n").offset(9, 0) == len("x = 1\n")


def test_sources_differ_even_with_the_same_text() -> None:
    first, second = from_text(PATH, "x"), from_text(PATH, "x")
    assert len({first, second}) == 2


# ---- decoding --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "encoding", "text"),
    [
        (b"x = 1\n", "utf-8", "x = 1\n"),
        ("é = 1\r\n\rx".encode(), "utf-8", "é = 1\r\n\rx"),
        ("# -*- coding: latin-1 -*-\né = 1\n".encode("latin-1"), "iso-8859-1", None),
        ("#!/bin/env python\n# vim: set fileencoding=cp1252 :\n€ = '€'\r".encode("cp1252"), "cp1252", None),
        (codecs.BOM_UTF8 + "é = 1\n".encode(), "utf-8", "é = 1\n"),
        (codecs.BOM_UTF8 + b"# coding: utf-8\r\nx = 1", "utf-8", None),
        (b"", "utf-8", ""),
    ],
)
def test_the_bytes_come_back_exactly(raw: bytes, encoding: str, text: str | None) -> None:
    source = decode(PATH, raw)
    assert source.encoding == encoding
    assert not source.text.startswith("\ufeff")
    assert text is None or source.text == text
    assert encode(source, source.text) == raw
    changed = replaced(source, source.text + "y = 2\n")
    assert encode(changed, changed.text) == raw + b"y = 2\n"
    assert changed.raw == raw


@pytest.mark.parametrize(
    ("raw", "line", "message"),
    [
        (b"\x7fELF\0\0", 1, "is a binary file, not Python source"),
        ("x = 1".encode("utf-16"), 1, "is a binary file, not Python source"),
        (b"x = 1\r\ny = 2\rz = '\xff'\n", 3, "cannot be decoded: byte 18 is not utf-8"),
        (b"'\xff'\n", 1, "cannot be decoded: invalid or missing encoding declaration"),
        (b"# coding: klingon\n", 1, "cannot be decoded: unknown encoding: klingon"),
        (b"# coding: rot13\nk = 1\n", 1, "cannot be decoded: 'rot13' is not a text encoding"),
        (b"# coding: undefined\nx = 1\n", 1, "cannot be decoded: "),
        (codecs.BOM_UTF8 + b"# coding: latin-1\n", 1, "cannot be decoded: encoding problem: utf-8"),
    ],
)
def test_what_cannot_be_decoded_is_one_sentence(raw: bytes, line: int, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        decode(PATH, raw)
    assert caught.value.message.startswith(message)
    assert "\n" not in caught.value.message
    assert caught.value.line == line
    assert str(caught.value) == f"train.py: {caught.value.message}"


def test_reading_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="No such file"):
        read(tmp_path / "missing.py")
    with pytest.raises(SourceError, match="cannot be read"):
        read(tmp_path)


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.py"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(SourceError, match="larger than 10 MB"):
        read(path)


def test_read_keeps_bytes_and_newlines(tmp_path: Path) -> None:
    path = tmp_path / "mixed.py"
    path.write_bytes(b"a = 1\r\nb = 2\rc = 3\n")
    source = read(path)
    assert (source.text, source.raw, source.newline) == ("a = 1\r\nb = 2\rc = 3\n", path.read_bytes(), "\r\n")


def test_a_text_from_elsewhere_may_have_a_byte_order_mark() -> None:
    source = from_text(PATH, "\ufeffx = 1\n")
    assert (source.text, source.bom) == ("x = 1\n", True)
    assert isinstance(replaced(source, "y"), Source)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("x = 1\n", True),
        ("await f()\n", True),  # a notebook's cell may wait
        ("x = = 1\n", False),
        ("return 1\n", False),  # parses, and does not compile
        ("x = '\0'", False),
        ("(" * 5000, False),
    ],
)
def test_compiles(text: str, valid: bool) -> None:
    assert compiles(text, PATH) is valid
