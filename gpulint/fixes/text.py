"""What every fix is made of: keywords, receivers of methods, the name under which torch is known."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from gpulint.edits import Edits, set_keyword
from gpulint.finding import Edit
from gpulint.model import Model

ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)


def keyword_edits(model: Model, call: ast.AST, name: str, value: str) -> Edits | None:
    """Give a call a keyword argument; not where a ``**`` may give it too."""
    if not isinstance(call, ast.Call) or any(k.arg is None for k in call.keywords):
        return None
    return set_keyword(model.source.text, model.span(call), name, value)


def atom(model: Model, node: ast.AST) -> str:
    """The text of an expression, such that a method can be called on it."""
    text = model.text(node)
    return text if isinstance(node, ATOMS) and "\n" not in text and "\r" not in text else f"({text})"


def dot_of(model: Model, attribute: ast.Attribute) -> int | None:
    """The offset of the dot before an attribute's name, past the parentheses around its owner."""
    start = model.span(attribute.value).end
    end = model.span(attribute).end - len(attribute.attr)
    if "#" in model.source.text[start:end]:
        return None
    dot = model.source.text.rfind(".", start, end)
    return dot if dot >= 0 else None


def torch_name(model: Model) -> str | None:
    """The name under which the file imports torch for all its code."""
    for node in model.tree.body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == "torch" or (alias.name.startswith("torch.") and alias.asname is None):
                    return alias.asname or "torch"
    return None


def together(parts: Iterable[Edits | None]) -> Edits | None:
    """All edits of a fix, or None where one part of it cannot be made."""
    found: list[Edit] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return tuple(found)


def merged(edits: Iterable[Edit]) -> Edits:
    """Insertions at one place become one, in the order given."""
    found: dict[tuple[int, int], Edit] = {}
    for edit in edits:
        place = (edit.start, edit.end)
        known = found.get(place)
        if known is None:
            found[place] = edit
        elif edit.text not in known.text:
            found[place] = Edit(edit.start, edit.end, known.text + edit.text)
    return tuple(found.values())
