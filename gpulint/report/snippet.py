"""The source lines of a finding, with carets under what is meant."""

from __future__ import annotations

from gpulint.finding import Span
from gpulint.report.display import Paint, cells, clip, shift_for
from gpulint.source import Source

MAX_LINES = 8  # of a span of several lines; longer ones lose their middle


def last_line(source: Source, span: Span) -> int:
    """The last line with a character of the span."""
    return source.position(max(span.start, span.end - 1))[0]


def snippet(source: Source, span: Span, gutter: int, width: int, paint: Paint, hue: str) -> list[str]:
    """The lines of the span behind a gutter of ``gutter`` digits."""
    line, column = source.position(span.start)
    last = last_line(source, span)
    _, end = source.position(max(span.start, span.end - 1))
    frame = _Frame(gutter, width, paint, hue)
    if line == last:
        return _one_line(frame, source.line_text(line), line, column, end)
    return _many_lines(frame, source, (line, column), (last, end))


class _Frame:
    """The gutter and what is drawn beside it."""

    def __init__(self, gutter: int, width: int, paint: Paint, hue: str) -> None:
        self.gutter, self.paint, self.hue = gutter, paint, hue
        self.width = width - gutter - 3

    def row(self, number: int | str = "", code: str = "", marks: str = "") -> str:
        edge = self.paint(f"{number:>{self.gutter}} |", "cyan")
        painted = self.paint(marks, "bold", self.hue)
        return f"{edge} {painted}{code}" if painted or code else edge


def _one_line(frame: _Frame, text: str, number: int, column: int, end: int) -> list[str]:
    row, starts = cells(text[: end + frame.width])  # what lies further right is cut off anyway
    first, last = starts[min(column - 1, len(starts) - 1)], starts[min(end, len(starts) - 1)]
    shift = shift_for(len(row), first, last, frame.width)
    carets = max(1, min(last - shift, frame.width) - (first - shift))
    return [
        frame.row(number, clip(row, shift, frame.width)),
        frame.row(marks=" " * (first - shift) + "^" * carets),
    ]


def _many_lines(frame: _Frame, source: Source, start: tuple[int, int], end: tuple[int, int]) -> list[str]:
    """As compilers draw it: a line along the left edge, from the first character to the last."""
    (first, column), (last, end_column) = start, end
    width = frame.width - 2
    opening, begins = cells(source.line_text(first)[: column + width])
    closing, ends = cells(source.line_text(last)[: end_column + width])
    at = begins[min(column - 1, len(begins) - 1)]
    to = ends[min(end_column, len(ends) - 1)]
    shift = shift_for(len(opening), at, at + 1, width)
    rows: list[str] = []
    if "".join(opening[:at]).strip():
        rows.append(frame.row(first, f"  {clip(opening, shift, width)}"))
        rows.append(frame.row(marks=f" {'_' * (at - shift + 1)}^"))
    else:
        rows.append(frame.row(first, f" {clip(opening, shift, width)}", "/"))
    hidden = range(0)
    if last - first + 1 > MAX_LINES:
        hidden = range(first + MAX_LINES - 3, last - 1)
    for number in range(first + 1, last):
        if number not in hidden:
            row, _ = cells(source.line_text(number)[: shift + width + 1])
            rows.append(frame.row(number, f" {clip(row, shift, width)}".rstrip(), "|"))
        elif number == hidden.start:
            rows.append(frame.row(code=" ...", marks="|"))
    rows.append(frame.row(last, f" {clip(closing, shift, width)}".rstrip(), "|"))
    rows.append(frame.row(marks=f"|{'_' * max(1, min(to - shift, width))}^"))
    return rows
