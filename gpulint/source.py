"""One file: its bytes as text, where lines start, and how to write changed text back."""

from __future__ import annotations

import ast
import bisect
import codecs
import io
import re
import tokenize
from functools import cached_property
from pathlib import Path

MAX_BYTES = 10_000_000
NEWLINE = re.compile(r"\r\n|\r|\n")  # what Python's parser takes as the end of a line, and nothing else


class SourceError(Exception):
    """A file that cannot be read as Python source; ``message`` is one sentence."""

    def __init__(self, path: Path, message: str, line: int = 1, column: int = 1) -> None:
        self.path, self.message, self.line, self.column = path, message, line, column
        super().__init__(f"{path}: {message}")


class Source:
    """The decoded text of one file. Offsets count characters; lines and columns count from 1."""

    def __init__(
        self, path: Path, text: str, encoding: str = "utf-8", bom: bool = False, raw: bytes | None = None
    ) -> None:
        self.path = path
        self.text = text
        self.encoding = encoding
        self.bom = bom
        self.raw = raw  # the bytes as read, to notice that the file changed meanwhile

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in NEWLINE.finditer(self.text))]

    @property
    def line_count(self) -> int:
        return len(self._starts)

    @cached_property
    def _ascii(self) -> bool:
        return self.text.isascii()

    def offset(self, line: int, column: int) -> int:
        """The character offset of a position as ``ast`` gives it: line from 1, column in UTF-8 bytes from 0."""
        start = self._starts[min(line, len(self._starts)) - 1]
        if self._ascii or column == 0:
            return start + column
        before = self.text[start : start + column]  # no character is less than a byte
        if before.isascii():
            return start + len(before)
        return start + len(before.encode(errors="surrogatepass")[:column].decode(errors="ignore"))

    def position(self, offset: int) -> tuple[int, int]:
        """``(line, column)`` of a character offset, both from 1."""
        line = bisect.bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """A line without its end; an empty string past the last."""
        if not 1 <= line <= len(self._starts):
            return ""
        end = self._starts[line] if line < len(self._starts) else len(self.text)
        return self.text[self._starts[line - 1] : end].rstrip("\r\n")

    def replaced(self, text: str) -> Source:
        """The same file with other text."""
        return Source(self.path, text, self.encoding, self.bom, self.raw)

    def encoded(self, text: str) -> bytes:
        """The bytes of changed text, as the file was encoded. Raises UnicodeEncodeError where it cannot be."""
        return (codecs.BOM_UTF8 if self.bom else b"") + text.encode(self.encoding)

    @property
    def newline(self) -> str:
        """The newline that the file uses first."""
        match = NEWLINE.search(self.text)
        return match.group() if match else "\n"


def read(path: Path) -> Source:
    """Read a file. Raises `SourceError` with one sentence for what cannot be read as Python source."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SourceError(path, f"is larger than {MAX_BYTES // 1_000_000} MB: not read")
        raw = path.read_bytes()
    except OSError as error:
        raise SourceError(path, f"cannot be read: {error.strerror or error}") from None
    if path.suffix == ".ipynb":
        from gpulint.notebook import read_notebook

        return read_notebook(path, raw)
    return decode(path, raw)


def decode(path: Path, raw: bytes) -> Source:
    """Decode by BOM or coding comment (PEP 263), newlines kept as they are."""
    if b"\0" in raw:
        raise SourceError(path, "is a binary file, not Python source")
    bom = raw.startswith(codecs.BOM_UTF8)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
        name = "utf-8" if encoding == "utf-8-sig" else encoding
        text = raw[len(codecs.BOM_UTF8) if bom else 0 :].decode(name)
    except UnicodeDecodeError as error:
        line = len(NEWLINE.findall(raw[: error.start].decode("latin-1"))) + 1
        reason = f"byte {error.start} is not {error.encoding}"
        raise SourceError(path, f"cannot be decoded: {reason}", line) from None
    except (SyntaxError, LookupError, UnicodeError) as error:
        reason = getattr(error, "msg", None) or str(error)
        raise SourceError(path, f"cannot be decoded: {reason}") from None
    return Source(path, text, name, bom, raw)


def from_text(path: Path, text: str) -> Source:
    """A source that is not read from disk, such as standard input."""
    bom = text.startswith("\ufeff")
    return Source(path, text[1:] if bom else text, "utf-8", bom)


def replaced(source: Source, text: str) -> Source:
    """The same file with other text, in the same encoding."""
    return source.replaced(text)


def encode(source: Source, text: str) -> bytes:
    """The bytes of changed text, as the file was encoded. Raises UnicodeEncodeError where it cannot be."""
    return source.encoded(text)


def compiles(text: str, path: Path) -> bool:
    """Whether the text is valid Python: `compile` also rejects what only the parser lets through."""
    try:
        compile(text, str(path), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
