"""A fix as a small diff of the lines that it touches, numbered as in the file at hand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from gpulint.finding import Edit
from gpulint.source import NEWLINE, Source


@dataclass(frozen=True, slots=True)
class Row:
    """One line: kept (`` ``), removed (``-``), added (``+``), or left out (``:``)."""

    mark: str
    number: int | None
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Change:
    """Lines ``first`` up to (not with) ``stop`` are replaced by others."""

    first: int
    stop: int
    lines: tuple[str, ...]


def rows(source: Source, edits: Sequence[Edit], context: int = 2) -> list[Row]:
    """The changed lines with ``context`` kept lines around them."""
    shown: list[Row] = []
    following = 1  # the first line that is not shown yet
    changes = list(_changes(source, edits))
    for change, after in zip_longest(changes, changes[1:]):
        start = max(following, change.first - context)
        if shown and start > following:
            shown.append(Row(":", None))
        shown += _kept(source, start, change.first)
        shown += (Row("-", number, source.line_text(number)) for number in range(change.first, change.stop))
        shown += (Row("+", None, line) for line in change.lines)
        following = change.stop + context if after is None else min(change.stop + context, after.first)
        shown += _kept(source, change.stop, following)
    while shown and shown[0].mark == " " and not shown[0].text.strip():
        shown.pop(0)
    while shown and shown[-1].mark == " " and not shown[-1].text.strip():
        shown.pop()
    return shown


def _kept(source: Source, first: int, stop: int) -> Iterator[Row]:
    for number in range(first, min(stop, source.line_count + 1)):
        text = source.line_text(number)
        if text or number < source.line_count:  # after the last newline there is no line
            yield Row(" ", number, text)


def _changes(source: Source, edits: Sequence[Edit]) -> Iterator[_Change]:
    for first, last, group in _blocks(source, edits):
        old = [source.line_text(number) for number in range(first, last + 1)]
        new = NEWLINE.split(_edited(source, first, last, group))
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                yield _Change(first + a, first + b, tuple(new[c:d]))


def _blocks(source: Source, edits: Iterable[Edit]) -> list[tuple[int, int, list[Edit]]]:
    """Edits by the lines that they touch: no line is in two blocks."""
    blocks: list[tuple[int, int, list[Edit]]] = []
    for edit in sorted(edits):
        first, last = source.position(edit.start)[0], source.position(edit.end)[0]
        if blocks and first <= blocks[-1][1]:
            start, end, group = blocks.pop()
            blocks.append((start, max(end, last), [*group, edit]))
        else:
            blocks.append((first, last, [edit]))
    return blocks


def _edited(source: Source, first: int, last: int, edits: Sequence[Edit]) -> str:
    """The text of some lines after the edits, without the newline at its end."""
    position = source.offset(first, 0)
    end = source.offset(last, 0) + len(source.line_text(last))
    parts: list[str] = []
    for edit in edits:
        parts += source.text[position : edit.start], edit.text
        position = edit.end
    return "".join([*parts, source.text[position:end]])
