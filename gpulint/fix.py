"""From edits to new text: choose what fits together, check that it compiles, replace the file atomically."""

from __future__ import annotations

import difflib
import os
import tempfile
from collections.abc import Iterable
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
    chosen: list[Finding] = []
    taken: list[Edit] = []
    for finding in sorted((f for f in findings if wanted(f.fix, unsafe)), key=lambda f: (f.span, f.code)):
        new = [edit for edit in _edits([finding]) if edit not in taken]
        if not any(_clash(a, b) for a in new for b in taken):
            taken.extend(new)
            chosen.append(finding)
    text = apply_edits(source.text, taken)
    if not chosen or compiles(text, source.path) or not compiles(source.text, source.path):
        return text, chosen
    good: list[Finding] = []
    for finding in chosen:
        attempt = apply_edits(source.text, _edits([*good, finding]))
        if compiles(attempt, source.path):
            good.append(finding)
    return apply_edits(source.text, _edits(good)), good


def _edits(findings: list[Finding]) -> list[Edit]:
    return list(dict.fromkeys(edit for f in findings if f.fix is not None for edit in f.fix.edits))


def _clash(a: Edit, b: Edit) -> bool:
    if a.start == a.end and b.start == b.end:
        return a.start == b.start
    return a.start < b.end and b.start < a.end


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
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
        raise SourceError(source.path, f"the fixed text cannot be written as {source.encoding}: left alone") from None
    try:
        if source.raw is not None and path.read_bytes() != source.raw:
            raise SourceError(source.path, "changed while it was linted: left alone")
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
    """The change as ``patch`` reads it."""
    lines = difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), label, label)
    return "".join(line if line.endswith(("\n", "\r")) else f"{line}\n\\ No newline at end of file\n" for line in lines)
