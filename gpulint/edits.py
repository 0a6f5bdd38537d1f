"""Text edits for one expression or statement, small and exact.

Analysis finds places with `ast`; here libcst's lossless tree of that one expression tells where its
arguments, commas, comments and parentheses stand, so that an edit touches nothing else. Every builder
returns None when the edit cannot be made safely.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from pathlib import Path

from gpulint.finding import Edit, Span
from gpulint.source import NEWLINE, Source

Edits = tuple[Edit, ...]
_ELIF = re.compile(r"elif\b")


def insert(offset: int, text: str) -> Edit:
    return Edit(offset, offset, text)


def replace(span: Span, text: str) -> Edit:
    return Edit(span.start, span.end, text)


# ---- calls -----------------------------------------------------------------------------------------


class _Call:
    """The layout of a call: offsets of its arguments, its trailing comma and its closing parenthesis."""

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
        self.args = [(arg.keyword.value if arg.keyword else None, at(arg.value)) for arg in call.args]
        self.spans = [at(arg) for arg in call.args]
        comma = call.args[-1].comma if call.args else None
        self.after_comma = at(comma).end if isinstance(comma, cst.Comma) else None  # the trailing one
        generator = len(call.args) == 1 and isinstance(call.args[0].value, cst.GeneratorExp)
        self.bare_generator = generator and not call.args[0].value.lpar


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
    for keyword, at in layout.args:
        if keyword == name:
            old = text[at.start : at.end]
            commented = "#" in old and NEWLINE.search(old) is not None
            return None if commented else (replace(at, value),)
    addition = f"{name}={value}"
    if not layout.args:
        return _sole(text, layout, addition)
    if layout.bare_generator:
        at = layout.args[0][1]
        return (insert(at.start, "("), insert(at.end, f"), {addition}"))
    return _last(text, layout, addition)


def _sole(text: str, layout: _Call, argument: str) -> Edits | None:
    """The only argument of a call: on a line of its own where the parenthesis closes on one.

    None where a comment takes the place of arguments: it may say why there are none.
    """
    if not text[: layout.close].rstrip().endswith("("):
        return None
    if not _own_line(text, layout.close):
        return (insert(layout.close, argument),)
    start = _line_start(text, layout.close)
    indent = text[start : layout.close]
    step = "\t" if "\t" in indent else "    "
    return (insert(start, f"{indent}{step}{argument},{_newline(text)}"),)


def _last(text: str, layout: _Call, argument: str) -> Edits:
    """One more argument at the end, on a line of its own where the others have theirs.

    A comment behind what was the last argument stays with that one.
    """
    last, comma, close = layout.spans[-1], layout.after_comma, layout.close
    alone = len(layout.spans) == 1
    stacked = comma is not None if alone else _own_line(text, layout.spans[-2].start)
    if not stacked or not _own_line(text, last.start):
        if comma is None:
            return (insert(last.end, f", {argument}"),)
        return (insert(comma, f" {argument}{',' if _own_line(text, close) else ''}"),)
    newline, indent = _newline(text), _indent(text, last.start)
    end = _line_end(text, last.end if comma is None else comma)
    if end > close:  # the parenthesis closes on the same line
        addition = f"{newline}{indent}{argument}"
        return (insert(last.end, f",{addition}") if comma is None else insert(comma, f"{addition},"),)
    if comma is not None:
        return (insert(end, f"{indent}{argument},{newline}"),)
    if "#" in text[last.end : end]:
        return insert(last.end, ","), insert(end, f"{indent}{argument}{newline}")
    return (insert(last.end, f",{newline}{indent}{argument}"),)


def insert_positional(text: str, call: Span, value: str) -> Edits | None:
    """Put a positional argument first."""
    layout = _layout(text, call)
    if layout is None:
        return None
    if not layout.args:
        return _sole(text, layout, value)
    if layout.bare_generator:
        return None
    return (insert(layout.spans[0].start, f"{value}, "),)


def remove_keyword(text: str, call: Span, name: str) -> Edits | None:
    """Take a keyword argument out of a call, with its comma; None where a comment would lose its place."""
    layout = _layout(text, call)
    if layout is None:
        return None
    position = next((n for n, (keyword, _) in enumerate(layout.args) if keyword == name), None)
    if position is None:
        return None
    span, spans = layout.spans[position], layout.spans
    following = spans[position + 1].start if position + 1 < len(spans) else None
    comma = text.find(",", span.end, following) + 1 if following is not None else layout.after_comma
    last = comma or span.end
    if "#" in text[span.start : last]:
        return None
    start, end = _line_start(text, span.start), _line_end(text, last)
    if not text[start : span.start].strip():  # on a line of its own
        rest = text[last:end].strip()
        if not rest:
            return (Edit(start, end, ""),)
        if rest.startswith("#"):
            return None
    if following is not None:
        return (Edit(span.start, following, ""),) if "#" not in text[last:following] else None
    if position == 0:
        return (Edit(span.start, last, ""),)
    start = spans[position - 1].end
    return (Edit(start, span.end, ""),) if "#" not in text[start : span.start] else None


def _own_line(text: str, offset: int) -> bool:
    return not text[_line_start(text, offset) : offset].strip()


# ---- statements ------------------------------------------------------------------------------------


def _newline(text: str) -> str:
    match = NEWLINE.search(text)
    return match.group() if match else "\n"


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _line_end(text: str, offset: int) -> int:
    """The offset just behind the newline of the line that holds ``offset``."""
    match = NEWLINE.search(text, offset)
    return match.end() if match else len(text)


def _indent(text: str, offset: int) -> str:
    start = _line_start(text, offset)
    return text[start:offset] if not text[start:offset].strip() else ""


def _alone(text: str, stmt: Span) -> bool:
    """Whether the statement has its lines to itself: no `if x: stmt`, no semicolons."""
    after = text[stmt.end : _line_end(text, stmt.end)].strip()
    return _starts_line(text, stmt.start) and (not after or after.startswith("#"))


def _starts_line(text: str, offset: int) -> bool:
    """Whether a logical line starts here: not where a backslash ended the line above."""
    start = _line_start(text, offset)
    return not text[start:offset].strip() and not text[:start].rstrip("\r\n").endswith("\\")


def _is_part(text: str, stmt: Span) -> bool:
    """Whether the text of the statement belongs to what stands above: an `elif`, or below a decorator."""
    if _ELIF.match(text, stmt.start):
        return True
    if not re.compile(r"(?:async\s+def|def|class)\b").match(text, stmt.start):
        return False
    above = _line_start(text, stmt.start)
    while above:
        start = _line_start(text, above - (2 if text[:above].endswith("\r\n") else 1))
        line = text[start:above].strip()
        if line and not line.startswith("#"):
            return line[0] in "@)]}"  # a bracket may end a decorator of several lines
        above = start
    return False


def insert_before(text: str, stmt: Span, lines: Sequence[str]) -> Edits | None:
    """Write lines before a statement, indented as it is; of a decorated one, only decorators."""
    if not _alone(text, stmt):
        return None
    if _is_part(text, stmt) and not all(line.startswith("@") for line in lines):
        return None
    start = _line_start(text, stmt.start)
    indent, newline = text[start : stmt.start], _newline(text)
    return (insert(start, "".join(f"{indent}{line}{newline}" for line in lines)),)


def insert_after(text: str, stmt: Span, lines: Sequence[str]) -> Edits | None:
    """Write lines after a statement (after the last line of a compound one), indented as it is."""
    if not _alone(text, stmt) or _ELIF.match(text, stmt.start):
        return None
    indent = text[_line_start(text, stmt.start) : stmt.start]
    end, newline = _line_end(text, stmt.end), _newline(text)
    block = "".join(f"{indent}{line}{newline}" for line in lines)
    if end == len(text) and not text.endswith(("\n", "\r")):
        return (insert(end, newline + block[: -len(newline)]),)
    return (insert(end, block),)


def remove_statement(text: str, stmt: Span) -> Edits | None:
    """Delete a statement, with its line where it has one; a block's only statement becomes ``pass``."""
    start = _line_start(text, stmt.start)
    before = text[start : stmt.start]
    if _is_part(text, stmt) or (not before.strip() and not _starts_line(text, stmt.start)):
        return None
    semicolon = re.compile(r"[ \t\f]*;[ \t\f]*").match(text, stmt.end)
    end = semicolon.end() if semicolon else stmt.end
    rest = text[end : _line_end(text, end)].strip()
    if rest and not rest.startswith("#"):  # another statement on the line
        return (Edit(stmt.start, end, ""),) if semicolon and not rest.startswith("\\") else None
    before = before.rstrip()
    if before.endswith(";"):
        return (Edit(start + len(before[:-1].rstrip()), stmt.end, ""),)
    if before:
        return (replace(stmt, "pass"),) if before.endswith(":") else None
    end = _line_end(text, stmt.end)
    return (Edit(start, end, ""),) if _parses(text[:start] + text[end:]) else (replace(stmt, "pass"),)


def decorate(text: str, function: Span, decorator: str) -> Edits | None:
    """Put a decorator nearest to the ``def`` at which the span starts."""
    if not _starts_line(text, function.start):
        return None
    start = _line_start(text, function.start)
    return (insert(start, f"{text[start : function.start]}{decorator}{_newline(text)}"),)


def wrap_in_with(text: str, stmts: Span, header: str) -> Edits | None:
    """Indent whole statements under ``with header:``; None where that would change a string's value."""
    start, end = _line_start(text, stmts.start), _line_end(text, stmts.end)
    if not _alone(text, stmts) or _is_part(text, stmts):
        return None
    block = text[start:end]
    if '"""' in block or "'''" in block or "\\\n" in block or "\\\r" in block:
        return None
    indent = text[start : stmts.start]
    step = "\t" if "\t" in indent else "    "
    edits = [insert(start, f"{indent}with {header}:{_newline(text)}{step}")]
    for newline in NEWLINE.finditer(block[: stmts.end - start]):
        line = start + newline.end()
        if text[line : _line_end(text, line)].strip():
            edits.append(insert(line, step))
    return tuple(edits)


def add_import(text: str, line: str) -> Edits:
    """Write an import line before all code but docstring and ``__future__``; nothing if it is there."""
    tree = ast.parse(text)
    if _imported(tree, ast.parse(line).body[0]):
        return ()
    body = tree.body
    position = 0 if ast.get_docstring(tree, clean=False) is None else 1
    while position < len(body) and getattr(body[position], "module", None) == "__future__":
        position += 1
    newline = _newline(text)
    if position == len(body):
        before = newline if text and not text.endswith(("\n", "\r")) else ""
        return (insert(len(text), before + line + newline),)
    first = min([body[position], *getattr(body[position], "decorator_list", [])], key=lambda n: n.lineno)
    source = Source(Path(), text)
    start = source.offset(first.lineno, 0)
    offset = source.offset(first.lineno, first.col_offset)
    if isinstance(first, ast.stmt) and not _starts_line(text, offset):
        return (insert(offset, f"{line}; "),)  # behind the semicolon of a docstring or a `__future__` import
    return (insert(start, line + newline),)


def _imported(tree: ast.Module, wanted: ast.stmt) -> bool:
    """Whether a statement at the top of the module binds the same: `import torch.nn` also binds ``torch``."""
    if isinstance(wanted, ast.Import):
        name = wanted.names[0].name
        aliases = (a for s in tree.body if isinstance(s, ast.Import) for a in s.names if a.asname is None)
        if wanted.names[0].asname is None and any(f"{a.name}.".startswith(f"{name}.") for a in aliases):
            return True
    return any(ast.dump(statement) == ast.dump(wanted) for statement in tree.body)


def _parses(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
