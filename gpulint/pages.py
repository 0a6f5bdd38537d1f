"""What a rule's record says, as Markdown (the page in docs/rules), as terminal text, or as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import unified_diff
from typing import Any

from gpulint.rule import Rule


def page_name(rule: Rule) -> str:
    """The file name of a rule's page below docs/rules."""
    return f"{rule.name}.md"


def markdown(rule: Rule) -> str:
    """The documentation page: title, facts, the text of ``check``, the example and its fix."""
    _, _, body = rule.doc.partition("\n")
    parts = [
        f"# {rule.title} ({rule.code})",
        f"`{rule.name}`, group `{rule.group}`. {_facts(rule)}",
        body.strip(),
        f"## Example\n\n```python\n{rule.example.before.strip()}\n```",
        f"Use instead:\n\n```python\n{rule.example.after.strip()}\n```",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def text(rule: Rule) -> str:
    """The same for a terminal, with the example as a diff."""
    _, _, body = rule.doc.partition("\n")
    diff = unified_diff(rule.example.before.splitlines(), rule.example.after.splitlines(), lineterm="", n=100)
    change = "\n".join(f"    {line}".rstrip() for line in list(diff)[3:])
    heading = f"{rule.code} {rule.name}: {rule.title}"
    parts = [heading, f"Group {rule.group}. {_facts(rule)}", body.strip(), f"## Example\n\n{change}"]
    return "\n\n".join(part for part in parts if part).replace("\n## ", "\n") + "\n"


def table(rules: Iterable[Rule]) -> str:
    """One line per rule, for a terminal."""
    rows = [(rule.code, rule.name, "" if rule.on_by_default else "off ", rule.title) for rule in rules]
    width = max((len(name) for _, name, _, _ in rows), default=0)
    return "".join(f"{code}  {name:<{width}}  {off}{title}\n" for code, name, off, title in rows)


def markdown_table(rules: Iterable[Rule], folder: str) -> str:
    """One row per rule, for the README and the list of rules; the pages lie in ``folder``."""
    lines = ["| code | name | reports | fix |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {rule.code} | [{rule.name}]({folder}{page_name(rule)}) | {rule.title} | {rule.fixable} |" for rule in rules
    ]
    return "\n".join(lines) + "\n"


def record(rule: Rule) -> dict[str, Any]:
    """What JSON says of a rule."""
    return {
        "code": rule.code,
        "name": rule.name,
        "group": rule.group,
        "severity": rule.severity.label,
        "since": rule.since,
        "on_by_default": rule.on_by_default,
        "fixable": rule.fixable,
        "title": rule.title,
        "documentation": rule.doc,
        "example": {"before": rule.example.before, "after": rule.example.after},
    }


_FIXABLE = {
    "always": "Its fix is always at hand.",
    "sometimes": "A fix is at hand in some cases.",
    "never": "The fix is yours to write.",
}


def _facts(rule: Rule) -> str:
    state = "On by default" if rule.on_by_default else f"Off until selected (`--select {rule.code}`)"
    return f"Class: {rule.severity.label}. {state}, since {rule.since}. {_FIXABLE[rule.fixable]}"
