"""Text edits for one expression or statement, small and exact.

Analysis finds places with `ast`; here libcst's lossless tree of that one expression tells where its
arguments, commas, comments and parentheses stand, so that an edit touches nothing else. Every builder
returns None when the edit cannot be made safely.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from gpulint.finding import Edit, Span

Edits = tuple[Edit, ...]


def insert(offset: int, text: str) -> Edit:
    return Edit(offset, offset, text)


def replace(span: Span, text: str) -> Edit:
    return Edit(span.start, span.end, text)


# ---- calls -----------------------------------------------------------------------------------------


class _Call:
    """The layout of a call: offsets of its arguments and of its closing parenthesis."""

    def __init__(self, text: str, span: Span) -> None:
        import libcst as cst
        from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

        segment = text[span.start : span.end]
        wrapper = MetadataWrapper(cst.parse_module(f"({segment}\n)"), unsafe_skip_copy=True)
        spans = wrapper.resolve(ByteSpanPositionProvider)
        statement = wrapper.module.body[0]
        call = statement.body[0].value  # type: ignore[union-attr, index]
        if not isinstance(call, cst.Call):
            raise ValueError("not a call")
        data = f"({segment}\n)".encode()

        def at(node: cst.CSTNode) -> Span:
            found = spans[node]
            start = len(data[: found.start].decode()) - 1 + span.start
            return Span(start, start + len(data[found.start : found.start + found.length].decode()))

        self.close = span.end - 1
        self.args = [(arg.keyword.value if arg.keyword else None, arg.star, at(arg.value)) for arg in call.args]
        self.spans = [at(arg) for arg in call.args]
        self.trailing_comma = bool(call.args) and isinstance(call.args[-1].comma, cst.Comma)
        self.generator = len(call.args) == 1 and isinstance(call.args[0].value, cst.GeneratorExp)
        self.bare_generator = self.generator and not call.args[0].value.lpar


def _layout(text: str, call: Span) -> _Call | None:
    try:
        found = _Call(text, call)
    except Exception:  # libcst raises its own errors and, for odd nesting, others
        return None
    return found if text[found.close : found.close + 1] == ")" else None


def set_keyword(text: str, call: Span, name: str, value: str) -> Edits | None:
    """Give a call the keyword argument, or change the one it has."""
    layout = _layout(text, call)
    if layout is None:
        return None
    for keyword, _, at in layout.args:
        if keyword == name:
            return (replace(at, value),)
    addition = f"{name}={value}"
    if not layout.args:
        inner = text[text.rfind("(", call.start, layout.close) + 1 : layout.close]
        return (insert(layout.close, addition),) if not inner.strip() else None
    if layout.bare_generator:
        at = layout.args[0][2]
        return (insert(at.start, "("), insert(at.end, f"), {addition}"))
    last = layout.spans[-1].end
    separator = ", "
    if len(layout.spans) > 1 and _own_line(text, layout.spans[-1].start) and _own_line(text, layout.spans[-2].start):
        separator = "," + _newline(text) + _indent(text, layout.spans[-1].start)
    if layout.trailing_comma:
        return _after_comma(text, layout, last, separator, addition)
    return (insert(last, separator + addition),)


def _after_comma(text: str, layout: _Call, last: int, separator: str, addition: str) -> Edits | None:
    """Behind a trailing comma, and behind the comment that belongs to the last argument."""
    comma = text.find(",", last, layout.close)
    if "#" in text[last:comma]:
        return None
    if separator == ", ":
        return (insert(comma + 1, f" {addition}"),)
    end = _line_end(text, comma)
    if end > layout.close:
        return (insert(comma + 1, f"{separator[1:]}{addition},"),)
    return (insert(end, f"{_indent(text, layout.spans[-1].start)}{addition},{_newline(text)}"),)


def insert_positional(text: str, call: Span, value: str) -> Edits | None:
    """Put a positional argument first."""
    layout = _layout(text, call)
    if layout is None:
        return None
    if not layout.args:
        inner = text[text.rfind("(", call.start, layout.close) + 1 : layout.close]
        return (insert(layout.close, value),) if not inner.strip() else None
    if layout.bare_generator:
        return None
    return (insert(layout.spans[0].start, f"{value}, "),)


def remove_keyword(text: str, call: Span, name: str) -> Edits | None:
    layout = _layout(text, call)
    if layout is None:
        return None
    for position, (keyword, _, _) in enumerate(layout.args):
        if keyword != name:
            continue
        span = layout.spans[position]
        if position + 1 < len(layout.spans):
            end = layout.spans[position + 1].start
            return (Edit(span.start, end, ""),) if "#" not in text[span.end : end] else None
        start = layout.spans[position - 1].end if position else span.start
        return (Edit(start, span.end, ""),) if "#" not in text[start : span.start] else None
    return None


def _own_line(text: str, offset: int) -> bool:
    return not text[_line_start(text, offset) : offset].strip()


# ---- statements ------------------------------------------------------------------------------------


def _newline(text: str) -> str:
    match = re.search(r"\r\n|\r|\n", text)
    return match.group() if match else "\n"


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _line_end(text: str, offset: int) -> int:
    """The offset just behind the newline of the line that holds ``offset``."""
    match = re.compile(r"\r\n|\r|\n").search(text, offset)
    return match.end() if match else len(text)


def _indent(text: str, offset: int) -> str:
    start = _line_start(text, offset)
    return text[start:offset] if not text[start:offset].strip() else ""


def _alone(text: str, stmt: Span) -> bool:
    """Whether the statement has its lines to itself: no `if x: stmt`, no semicolons."""
    before = text[_line_start(text, stmt.start) : stmt.start]
    after = text[stmt.end : _line_end(text, stmt.end)].strip()
    return not before.strip() and (not after or after.startswith("#"))


def insert_before(text: str, stmt: Span, lines: Sequence[str]) -> Edits | None:
    """Write lines before a statement, indented as it is."""
    if not _alone(text, stmt):
        return None
    start = _line_start(text, stmt.start)
    indent, newline = text[start : stmt.start], _newline(text)
    return (insert(start, "".join(f"{indent}{line}{newline}" for line in lines)),)


def insert_after(text: str, stmt: Span, lines: Sequence[str]) -> Edits | None:
    """Write lines after a statement (after the last line of a compound one), indented as it is."""
    before = text[_line_start(text, stmt.start) : stmt.start]
    rest = text[stmt.end : _line_end(text, stmt.end)]
    if before.strip() or (rest.strip() and not rest.strip().startswith("#")):
        return None
    end, newline = _line_end(text, stmt.end), _newline(text)
    block = "".join(f"{before}{line}{newline}" for line in lines)
    if end == len(text) and not text.endswith(("\n", "\r")):
        return (insert(end, newline + block[: -len(newline)]),)
    return (insert(end, block),)


def remove_statement(text: str, stmt: Span) -> Edits | None:
    """Delete a statement with its line; a block's only statement becomes ``pass``."""
    if not _alone(text, stmt):
        return None
    start, end = _line_start(text, stmt.start), _line_end(text, stmt.end)
    removed = text[:start] + text[end:]
    if _parses(removed):
        return (Edit(start, end, ""),)
    return (replace(stmt, "pass"),)


def move_statement(text: str, stmt: Span, target: Span) -> Edits | None:
    """Take a statement out and write it before another, with that one's indentation."""
    if not (_alone(text, stmt) and _alone(text, target)) or "\n" in text[stmt.start : stmt.end]:
        return None
    taken = remove_statement(text, stmt)
    put = insert_before(text, target, [text[stmt.start : stmt.end]])
    return (*taken, *put) if taken is not None and put is not None else None


def decorate(text: str, function: Span, decorator: str) -> Edits | None:
    """Put a decorator nearest to the ``def`` at which the span starts."""
    return (
        insert_before(text, Span(function.start, function.start), [decorator])
        if _own_line(text, function.start)
        else None
    )


def wrap_in_with(text: str, stmts: Span, header: str) -> Edits | None:
    """Indent whole statements under ``with header:``; None where that would change a string's value."""
    start, end = _line_start(text, stmts.start), _line_end(text, stmts.end)
    indent = text[start : stmts.start]
    if indent.strip() or not _alone(text, stmts):
        return None
    block = text[start:end]
    if '"""' in block or "'''" in block or "\\\n" in block or "\\\r" in block:
        return None
    step = "\t" if "\t" in indent else "    "
    newline = _newline(text)
    edits = [insert(start, f"{indent}with {header}:{newline}")]
    offset = start
    for line in block.splitlines(keepends=True):
        if line.strip():
            edits.append(insert(offset, step))
        offset += len(line)
    first, second, *rest = edits
    return (Edit(first.start, first.end, first.text + second.text), *rest)


def add_import(text: str, line: str) -> Edits:
    """Write an import line before the first import that is not from ``__future__``, unless it is there."""
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    if any(existing.strip() == line for existing in lines):
        return ()
    body = tree.body
    position = 0
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        position = 1
    for statement in body[position:]:
        if not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
            break
        position += 1
    newline = _newline(text)
    if position < len(body):
        at = sum(len(part) for part in lines[: body[position].lineno - 1])
        return (insert(at, line + newline),)
    return (insert(len(text), line + newline),)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
