"""From edits to new text: choose what fits together, check that it compiles, replace the file atomically."""

from __future__ import annotations

import ast
import difflib
import os
import re
import tempfile
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from gpulint.finding import Applicability, Edit, Finding, Fix
from gpulint.source import Source, SourceError, compiles, encode

MAX_ROUNDS = 10


def wanted(fix: Fix | None, unsafe: bool) -> bool:
    """Whether the flags ask for this fix."""
    if fix is None or not fix.edits:
        return False
    return fix.applicability is Applicability.SAFE or (unsafe and fix.applicability is Applicability.UNSAFE)


def apply_fixes(source: Source, findings: Iterable[Finding], unsafe: bool) -> tuple[str, list[Finding]]:
    """One pass: the text with all fixes that do not overlap, and the findings that they mend.

    A fix is applied whole or not at all; what overlaps an earlier one waits for the next round. Fixes
    after which the file no longer compiles are left out one by one.
    """
    taken: list[Edit] = []
    candidates = sorted((f for f in findings if wanted(f.fix, unsafe)), key=lambda f: (f.span, f.code))
    chosen = [finding for finding in candidates if _take(_edits([finding]), taken)]
    if not chosen:
        return source.text, []
    compiled = compiles(source.text, source.path)
    good = _sound(source, [], chosen, compiled)
    return apply_edits(source.text, _edits(good)), good


def _take(edits: Sequence[Edit], taken: list[Edit]) -> bool:
    """Put a fix's edits among those taken, which are kept in order, unless any overlaps.

    The same edit by another fix is no overlap: it is made once, for both.
    """
    if any(a.end > b.start for a, b in pairwise(sorted(edits))):
        return False
    new: list[Edit] = []
    for edit in edits:
        index = bisect_left(taken, edit)
        if taken[index : index + 1] != [edit]:
            beside = taken[max(index - 1, 0) : index + 1]  # what lies further off cannot overlap
            if any(_clash(edit, other) for other in beside):
                return False
            new.append(edit)
    for edit in new:
        insort(taken, edit)
    return True


def _sound(source: Source, good: list[Finding], more: list[Finding], compiled: bool) -> list[Finding]:
    """The good ones, and of the others all but those whose fixes break the file; found by halving."""
    every = [*good, *more]
    if _holds(source, apply_edits(source.text, _edits(every)), compiled):
        return every
    if len(more) == 1:
        return good
    middle = len(more) // 2
    first = _sound(source, good, more[:middle], compiled)
    return _sound(source, first, more[middle:], compiled)


def _holds(source: Source, text: str, compiled: bool) -> bool:
    """Whether the text is as valid as the file was, and can be written as the file was."""
    try:
        source.encoded(text)
        return compiles(text, source.path) or (not compiled and bool(ast.parse(text)))
    except (SourceError, SyntaxError, ValueError):
        return False


def _edits(findings: Iterable[Finding]) -> list[Edit]:
    return list(dict.fromkeys(edit for f in findings if f.fix is not None for edit in f.fix.edits))


def _clash(a: Edit, b: Edit) -> bool:
    if a.start == a.end and b.start == b.end:
        return a.start == b.start
    return a.start < b.end and b.start < a.end


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after edits that do not overlap; insertions at one place go by their text."""
    parts: list[str] = []
    position = 0
    for edit in sorted(edits):
        parts += text[position : edit.start], edit.text
        position = edit.end
    return "".join([*parts, text[position:]])


def write_atomic(source: Source, text: str) -> None:
    """Replace the file in one step, keeping its mode; never when it changed since it was read.

    Raises `SourceError` with one sentence where the file is left as it is.
    """
    path = source.path.resolve()  # a link keeps pointing where it points
    try:
        data = encode(source, text)
    except UnicodeEncodeError:
        message = f"the fixed text cannot be written as {source.encoding}: left alone"
        raise SourceError(source.path, message) from None
    if source.raw is not None and encode(source, source.text) != source.raw:
        raise SourceError(source.path, f"{source.encoding} does not give back all its bytes: left alone")
    try:
        if source.raw is not None and path.read_bytes() != source.raw:
            raise SourceError(source.path, "changed while it was linted: left alone")
        if data == source.raw:
            return
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).chmod(path.stat().st_mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink()
            raise
    except OSError as error:
        raise SourceError(source.path, f"cannot be written: {error.strerror or error}") from None


def unified_diff(before: str, after: str, label: str) -> str:
    """The change as ``patch`` reads it: for that, only a line feed ends a line."""
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    unended = "\n\\ No newline at end of file\n"
    lines = difflib.unified_diff(old, new, label, label)
    return "".join(line if line.endswith("\n") else line + unended for line in lines)
