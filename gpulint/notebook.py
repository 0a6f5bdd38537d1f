"""Notebooks: the code cells as one text to lint, and edits of that text back into the JSON.

Each cell stands below a marker line, a comment. Lines of IPython (``%time x``, ``!ls``, ``x = %env Y``,
``thing?``) become comments of the same length, so that offsets hold and they can be put back.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from gpulint.source import Source, SourceError

# Cell magics whose body is still Python of this notebook; of all others nothing is.
_PYTHON_CELLS = re.compile(r"%%(?:time|timeit|capture|prun|debug|memit|mprun)\b")
_MAGIC = re.compile(
    r"""(?P<indent>[ \t]*)(?:
        [%!?]                                       # %time x, !ls, ?thing
      | (?P<target>[\w.,\ \t\[\]'"]+=[ \t]*)[%!]     # x = %env Y
      | [\w.]+\?{1,2}[ \t]*$                         # thing?
    )""",
    re.X,
)
_CODE_TOKEN = re.compile(r"""'{3}|"{3}|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\#.*|[()\[\]{}]""")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell: its index among all cells, its own text, and what of it is linted."""

    index: int
    text: str
    masked: str


class Notebook(Source):
    """A notebook's code. Lines and offsets are those of the joined text; `cell` says where in the notebook."""

    def __init__(self, path: Path, raw: bytes, cells: tuple[Cell, ...], text: str | None = None) -> None:
        self.cells = cells
        self.markers = _markers(cells)
        joined = "".join(f"{marker}\n{cell.masked}\n" for marker, cell in zip(self.markers, cells, strict=True))
        super().__init__(path, joined if text is None else text, "utf-8", False, raw)

    def cell(self, line: int) -> tuple[int, int] | None:
        """``(cell, line in the cell)`` of a line, both from 1; cells are counted as Jupyter lists them."""
        wanted = set(self.markers)
        starts = [n for n in range(1, self.line_count + 1) if self.line_text(n) in wanted]
        number = bisect_right(starts, line) - 1
        if number < 0 or number >= len(self.cells):
            return None
        return self.cells[number].index + 1, max(line - starts[number], 1)

    def replaced(self, text: str) -> Notebook:
        return Notebook(self.path, self.raw or b"", self.cells, text)

    def encoded(self, text: str) -> bytes:
        """The notebook with its code cells as in ``text``, everything else byte for byte as it was."""
        document = (self.raw or b"").decode("utf-8-sig")
        parts: list[str] = []
        end = 0
        spans = dict(_source_spans(document))
        for cell, masked in zip(self.cells, self._split(text), strict=True):
            if masked != cell.masked:
                start, stop = spans[cell.index]
                parts += document[end:start], _as_json(self._unmasked(cell, masked), document[start:stop])
                end = stop
        bom = b"\xef\xbb\xbf" if (self.raw or b"").startswith(b"\xef\xbb\xbf") else b""
        return bom + "".join([*parts, document[end:]]).encode()

    def _split(self, text: str) -> list[str]:
        """The cells of an edited text. What is inserted above the first marker belongs to the first cell."""
        pattern = "|".join(re.escape(marker) for marker in self.markers)
        pieces = re.split(rf"^(?:{pattern})\n", text, flags=re.M) if pattern else [text]
        found = re.findall(rf"^(?:{pattern})\n", text, re.M) if pattern else []
        if [marker.rstrip("\n") for marker in found] != list(self.markers):
            raise SourceError(self.path, "cannot be written: a fix reaches from one cell into another")
        cells = [piece.removesuffix("\n") for piece in pieces[1:]]
        if cells:
            cells[0] = pieces[0] + cells[0]
        return cells

    def _unmasked(self, cell: Cell, masked: str) -> str:
        """The cell's new text with its lines of IPython as they were."""
        before, original = cell.masked.split("\n"), cell.text.split("\n")
        after = masked.split("\n")
        kept: set[int] = set()
        for a, b, size in SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks():
            for i in range(size):
                after[b + i] = original[a + i]
                kept.add(a + i)
        if any(line != original[i] and i not in kept for i, line in enumerate(before)):
            raise SourceError(self.path, "cannot be written: a fix changes a line of IPython")
        return "\n".join(after)


def read_notebook(path: Path, raw: bytes) -> Notebook:
    """The code of a notebook; none where its language is not Python."""
    try:
        document = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise SourceError(path, f"is not a notebook: byte {error.start} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise SourceError(path, f"is not a notebook: {error.msg}", error.lineno, error.colno) from None
    except RecursionError:
        raise SourceError(path, "is not a notebook: the JSON is nested too deeply") from None
    if not isinstance(document, dict) or not isinstance(document.get("cells"), list):
        hint = " (version 3 or older)" if isinstance(document, dict) and "worksheets" in document else ""
        raise SourceError(path, f"is not a notebook that can be read: it has no list of cells{hint}")
    cells = tuple(_code_cells(document["cells"])) if _is_python(document) else ()
    return Notebook(path, raw, cells)


def _is_python(document: dict[str, Any]) -> bool:
    metadata = document.get("metadata")
    if not isinstance(metadata, dict):
        return True
    named = [
        info.get(key)
        for info, key in ((metadata.get("language_info"), "name"), (metadata.get("kernelspec"), "language"))
        if isinstance(info, dict)
    ]
    language = next((name for name in named if isinstance(name, str)), "python")
    return language.lower() in ("python", "ipython")


def _code_cells(cells: list[Any]) -> Iterator[Cell]:
    for index, cell in enumerate(cells):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        lines = cell.get("source")
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            lines = "".join(lines)
        if isinstance(lines, str):
            yield Cell(index, lines, mask(lines))


def _markers(cells: tuple[Cell, ...]) -> tuple[str, ...]:
    """A comment per cell that occurs in no cell."""
    prefix = "# %% cell"
    while any(prefix in cell.text for cell in cells):
        prefix += "_"
    return tuple(f"{prefix} {cell.index + 1}" for cell in cells)


# ---- IPython's own lines ---------------------------------------------------------------------------


def mask(text: str) -> str:
    """A cell with what only IPython understands turned into comments of the same length."""
    if not any(character in text for character in "%!?"):
        return text
    lines = text.split("\n")
    first = next((line for line in lines if line.strip()), "")
    if first.startswith("%%") and not _PYTHON_CELLS.match(first):
        return "\n".join(_comment(line) for line in lines)
    masked: list[str] = []
    inside, goes_on, comment = "", False, False  # open brackets or quotes; after a backslash; of a magic
    for line in lines:
        if comment:
            masked.append(_comment(line))
            comment = line.rstrip().endswith("\\")
            continue
        match = None if inside or goes_on else _MAGIC.match(line)
        if match is None:
            inside = _open_after(line, inside)
            goes_on = line.endswith("\\")
            masked.append(line)
            continue
        start = len(match["target"] or "") + len(match["indent"])
        masked.append(line[:start] + (_placeholder if start else _comment)(line[start:]))
        comment = line.rstrip().endswith("\\")
    return "\n".join(masked)


def _comment(text: str) -> str:
    return "#" + text[1:] if text else text


def _placeholder(text: str) -> str:
    """The same with a value in front, where a comment alone would leave an empty block or no right side.

    ``_`` is what IPython calls its last result: nothing is known about it.
    """
    return "_#" + text[2:] if len(text) > 1 else "_"


def _open_after(line: str, inside: str) -> str:
    """The brackets, or the triple quote, that are open after a line."""
    position = 0
    while position < len(line):
        if inside[-1:] in ("'", '"') and inside:
            quote = inside[-1] * 3
            found = re.compile(rf"(?:\\.|(?!{quote})[^\\])*{quote}").match(line, position)
            if found is None:
                return inside
            inside, position = inside[:-1], found.end()
            continue
        token = _CODE_TOKEN.search(line, position)
        if token is None:
            return inside
        text, position = token[0], token.end()
        if text in ("'''", '"""') or text in "([{":
            inside += text[0]
        elif text in ")]}":
            inside = inside[:-1]
    return inside


# ---- the JSON, without touching what is not changed ------------------------------------------------


def _source_spans(document: str) -> Iterator[tuple[int, tuple[int, int]]]:
    """Where the ``source`` of each cell stands in a document that is known to be valid JSON."""
    path: list[str | int] = []  # keys and indices down to the value that comes next
    kinds: list[str] = []
    started = key_next = False
    start = 0
    for token in _JSON_TOKEN.finditer(document):
        text = token[0]
        if text == ":":
            key_next = False
            continue
        if text == ",":
            last = path[-1]
            if isinstance(last, int):
                path[-1] = last + 1
            else:
                key_next = True
            continue
        if key_next and text.startswith('"'):
            path[-1] = json.loads(text)
            continue
        if text not in ("}", "]") and not started and _is_source(path):
            started, start = True, token.start()
        if text in ("{", "["):
            kinds.append(text)
            path.append("" if text == "{" else 0)
            key_next = text == "{"
            continue
        if text in ("}", "]"):
            kinds.pop()
            path.pop()
            key_next = False
        if started and _is_source(path):
            yield int(path[1]), (start, token.end())
            started = False


def _is_source(path: list[str | int]) -> bool:
    return len(path) == 3 and path[0] == "cells" and path[2] == "source"


def _as_json(text: str, before: str) -> str:
    """A cell's source written in the style of what stood there."""
    ascii_only = before.isascii() and "\\u" in before
    if not before.startswith("["):
        return json.dumps(text, ensure_ascii=ascii_only)
    inner = before[1:-1]
    opening = inner[: len(inner) - len(inner.lstrip())]
    closing = inner[len(inner.rstrip()) :]
    lines = [json.dumps(line, ensure_ascii=ascii_only) for line in text.splitlines(keepends=True)]
    between = "," + (opening or " ")
    return f"[{opening}{between.join(lines)}{closing}]"
