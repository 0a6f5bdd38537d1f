"""Comments that silence findings: `# gpulint: ignore[GPU101] why`, `# noqa: GPU101`, file-level ones.

A comment applies to any line from a finding's first to its last; on a line of its own it applies to
the next line of code. A `gpulint: ignore` that silences nothing is itself a finding, GPU001.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpulint.config import UNUSED_SUPPRESSION, did_you_mean
from gpulint.finding import Applicability, Confidence, Edit, Finding, Fix, Severity, Span
from gpulint.rule import Example, Rule, all_rules, matches
from gpulint.source import Source

_OURS = re.compile(r"#\s*gpulint:\s*ignore(?P<file>-file)?(?:\[(?P<codes>[^\]]*)\])?", re.I)
_NOQA = re.compile(r"#\s*noqa(?P<list>\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*))?", re.I)


def _nothing(_: object) -> Iterator[Finding]:
    """A suppression that silences nothing.

    A `# gpulint: ignore` comment under which no selected rule has a finding, or that names a rule that does
    not exist, hides the next fault that somebody writes on that line.

    ## When it stays silent

    For `# noqa`, which other linters read too, and when a rule that the comment names was not run.

    ## Fix safety

    Safe: only the comment is removed.
    """
    return iter(())


UNUSED = Rule(
    code=UNUSED_SUPPRESSION[0],
    name=UNUSED_SUPPRESSION[1],
    group="suppression",
    since="0.1",
    severity=Severity.SLOW,
    check=_nothing,
    example=Example("x = 1  # gpulint: ignore[GPU101]\n", "x = 1\n"),
    fixable="always",
)


@dataclass(slots=True)
class Suppression:
    """One comment. ``codes`` is empty where it silences everything."""

    span: Span
    lines: tuple[int, ...]  # that it applies to; empty for the whole file
    codes: tuple[str, ...]
    ours: bool
    used: set[str] = field(default_factory=set)

    def covers(self, rule: Rule, first: int, last: int) -> bool:
        if self.lines and not any(first <= line <= last for line in self.lines):
            return False
        found = next((c for c in self.codes if matches(rule, c.upper() if c[:3].upper() == "GPU" else c)), None)
        if self.codes and found is None:
            return False
        self.used.add(found or "*")
        return True


def suppressions(source: Source) -> list[Suppression]:
    """The comments of a file that silence findings; strings that look like them are none."""
    text = source.text
    if "gpulint" not in text and "noqa" not in text.lower():
        return []
    found: list[Suppression] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline):
            if token.type == tokenize.COMMENT:
                found.extend(_read(source, token))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        pass  # what was read before the trouble counts
    return found


def _read(source: Source, token: tokenize.TokenInfo) -> Iterator[Suppression]:
    line, column = token.start
    start = source.offset(line, 0) + column
    ours = _OURS.search(token.string)
    if ours is not None:
        codes = tuple(c.strip() for c in (ours["codes"] or "").split(",") if c.strip())
        lines: tuple[int, ...] = () if ours["file"] else _applies_to(source, line, column)
        yield Suppression(Span(start + ours.start(), start + len(token.string)), lines, codes, True)
        return
    noqa = _NOQA.search(token.string)
    if noqa is not None:
        codes = tuple(re.split(r"[\s,]+", noqa["codes"].strip())) if noqa["codes"] else ()
        yield Suppression(Span(start + noqa.start(), start + noqa.end()), (line,), codes, False)


def _applies_to(source: Source, line: int, column: int) -> tuple[int, ...]:
    if source.line_text(line)[:column].strip():
        return (line,)
    for later in range(line + 1, source.line_count + 1):
        text = source.line_text(later).strip()
        if text and not text.startswith("#"):
            return (later,)
    return (line,)


def filtered(source: Source, findings: Iterable[Finding], rules: dict[str, Rule], report_unused: bool) -> list[Finding]:
    """The findings that no comment silences, and one for each comment that silences none."""
    comments = suppressions(source)
    if not comments:
        return list(findings)
    kept: list[Finding] = []
    for finding in findings:
        first = source.position(finding.span.start)[0]
        last = source.position(max(finding.span.end - 1, finding.span.start))[0]
        covering = [c for c in comments if c.covers(rules[finding.code], first, last)]
        if not covering:
            kept.append(finding)
    if report_unused:
        kept.extend(_unused(source, comments, tuple(rules.values())))
    return kept


def _unused(source: Source, comments: list[Suppression], ran: tuple[Rule, ...]) -> Iterator[Finding]:
    for comment in comments:
        if not comment.ours:
            continue
        known = {c for c in comment.codes if any(matches(r, c) for r in (*all_rules(), UNUSED))}
        unknown = [c for c in comment.codes if c not in known]
        idle = [c for c in comment.codes if c in known and c not in comment.used and any(matches(r, c) for r in ran)]
        if comment.codes:
            if not unknown and not idle:
                continue
            names = [key for r in all_rules() for key in (r.code, r.name)]
            message = (
                f"there is no rule `{unknown[0]}`{did_you_mean(unknown[0], names)}".rstrip(".?")
                if unknown
                else f"nothing here for {', '.join(f'`{c}`' for c in idle)} to silence"
            )
            left = [c for c in comment.codes if c not in unknown and c not in idle]
        else:
            if comment.used:
                continue
            message, left = "nothing here for this comment to silence", []
        yield Finding(
            comment.span,
            message,
            Confidence.CERTAIN,
            fix=_removal(source, comment, left),
            code=UNUSED.code,
            path=source.path,
        )


def _removal(source: Source, comment: Suppression, left: list[str]) -> Fix:
    text = source.text[comment.span.start : comment.span.end]
    if left:
        new = re.sub(r"\[[^\]]*\]", f"[{', '.join(left)}]", text, count=1)
        return Fix("Remove the unused codes", Applicability.SAFE, (Edit(comment.span.start, comment.span.end, new),))
    start = comment.span.start
    while start > 0 and source.text[start - 1] in " \t":
        start -= 1
    line, column = source.position(start)
    end = comment.span.end
    if column == 1:  # a line of its own goes with its newline
        following = source.text[end : end + 2]
        end += 2 if following == "\r\n" else 1 if following[:1] in ("\n", "\r") else 0
    del line
    return Fix("Remove the comment", Applicability.SAFE, (Edit(start, end, ""),))
