"""Text on a terminal: how wide it is, how to cut and wrap it, and colours."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache

TAB = 4
_CODES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "magenta": 35, "cyan": 36}
_WORD = re.compile(r"(?:[^\s`]|`[^`]*`|`)+")  # `code with spaces` is one word
_TURNS_TEXT = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


class Paint:
    """Wraps text in ANSI colours, or leaves it alone."""

    def __init__(self, on: bool) -> None:
        self.on = on

    def __call__(self, text: str, *looks: str) -> str:
        if not (self.on and text and looks):
            return text
        return f"\033[{';'.join(str(_CODES[look]) for look in looks)}m{text}\033[0m"


@cache
def glyph(character: str) -> tuple[str, int]:
    """What to print for a character, and how many cells it takes.

    Control characters would be obeyed by the terminal, and those that turn the direction of writing
    make code look like other code: both are replaced by visible signs.
    """
    code = ord(character)
    if code < 32:
        return chr(0x2400 + code), 1
    if code == 127:
        return "\u2421", 1
    category = unicodedata.category(character)
    if category in ("Cc", "Cs", "Zl", "Zp") or character in _TURNS_TEXT:
        return "\ufffd", 1
    if category in ("Mn", "Me", "Cf"):
        return character, 0
    return character, 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cells(text: str) -> tuple[list[str], list[int]]:
    """One string per cell of the terminal, and the cell at which each character starts.

    The second half of a wide character is an empty cell; tabs are expanded.
    """
    if text.isascii() and text.isprintable():
        return list(text), list(range(len(text) + 1))
    row: list[str] = []
    starts: list[int] = []
    for character in text:
        starts.append(len(row))
        if character == "\t":
            row.extend(" " * (TAB - len(row) % TAB))
            continue
        shown, width = glyph(character)
        if width:
            row.extend([shown, *[""] * (width - 1)])
        elif row:
            row[-1 if row[-1] else -2] += shown  # a combining mark belongs to the character before it
    return row, [*starts, len(row)]


def clean(text: str) -> str:
    """The text without anything that a terminal would obey; tabs become spaces."""
    return "".join(cells(text)[0])


def measure(text: str) -> int:
    return len(text) if text.isascii() else sum(glyph(character)[1] for character in text)


def clip(row: Sequence[str], shift: int, width: int) -> str:
    """The cells from ``shift`` on that fit; an ellipsis stands where something is cut off."""
    part = list(row[shift : shift + width])
    if part and shift:
        part[0] = "…"
        if part[1:2] == [""]:
            part[1] = " "  # the other half of a wide character
    if part and len(row) > shift + width:
        if not part[-1] and len(part) > 1:
            part[-2] = " "
        part[-1] = "…"
    return "".join(part).rstrip()


def shift_for(total: int, start: int, end: int, width: int) -> int:
    """How many cells to leave out at the left so that ``start`` to ``end`` can be seen."""
    margin = width // 8
    if total <= width or end <= width - margin:
        return 0
    return max(0, min(start - margin, end + margin - width, total - width))


def wrap(text: str, width: int, first: str = "", rest: str | None = None) -> list[str]:
    """The text in lines of at most ``width`` cells, behind the prefixes ``first`` and ``rest``."""
    rest = first if rest is None else rest
    prefixes, lines, line = [first], [], ""
    for word in _words(text, width - max(measure(first), measure(rest))):
        if not line:
            line = word
        elif measure(prefixes[-1]) + measure(line) + 1 + measure(word) <= width:
            line += f" {word}"
        else:
            lines.append(line)
            prefixes.append(rest)
            line = word
    return [f"{prefix}{part}".rstrip() for prefix, part in zip(prefixes, [*lines, line], strict=True)]


def _words(text: str, width: int) -> list[str]:
    """Words that fit in a line: code that is too long breaks at its spaces, other words where they must."""
    words: list[str] = []
    for match in _WORD.finditer(text):
        word = clean(" ".join(match.group().split()))
        for part in [word] if measure(word) <= width else word.split():
            words += pieces(cells(part)[0], width)
    return words


def pieces(row: Sequence[str], width: int) -> list[str]:
    """The cells in parts of at most ``width``; at least one, which may be empty."""
    width = max(width, 2)  # room for one wide character
    parts, start = [], 0
    while len(row) - start > width:
        end = start + width - (not row[start + width])
        parts.append("".join(row[start:end]))
        start = end
    return [*parts, "".join(row[start:])]
