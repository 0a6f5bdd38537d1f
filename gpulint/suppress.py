"""Comments that silence findings: `# gpulint: ignore[GPU101] why`, `# noqa: GPU101`, file-level ones.

A comment applies to the findings on its line, and on every line of a statement of which it ends the
first or the last; on a line of its own it applies to the next statement. A `gpulint: ignore` that
silences nothing is itself a finding, GPU001.
"""

from __future__ import annotations

import bisect
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from gpulint.config import UNUSED_SUPPRESSION, did_you_mean
from gpulint.finding import Applicability, Confidence, Edit, Finding, Fix, Severity, Span
from gpulint.rule import Example, Rule, all_rules, matches
from gpulint.source import Source

_LAYOUT = (tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.COMMENT)
_OURS = re.compile(
    r"""\#\s*gpulint:\s*ignore(?P<file>-file)?
        (?:\s*\[(?P<codes>[^\[\]]*)\]|(?![\w-]|\s*\[))
        (?:(?!\#\s*(?:noqa\b|[\w-]+:)).)*  # why, up to what is meant for another tool""",
    re.I | re.X,
)
_NOQA = re.compile(r"#\s*noqa\b(?:\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*))?", re.I)


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
    """One comment. ``codes`` is None where it silences everything."""

    span: Span
    lines: range | None  # that it applies to; None for the whole file
    codes: tuple[str, ...] | None
    ours: bool
    used: set[str | None] = field(default_factory=set)  # its codes that silenced something; None for all

    def covers(self, rule: Rule, first: int, last: int) -> bool:
        """Whether it silences a rule's finding on these lines; if so, it counts as used."""
        if self.lines is not None and (last < self.lines.start or first >= self.lines.stop):
            return False
        if self.codes is None:
            self.used.add(None)
            return True
        code = next((c for c in self.codes if matches(rule, c)), None)
        if code is not None:
            self.used.add(code)
        return code is not None


def suppressions(source: Source) -> list[Suppression]:
    """The comments of a file that silence findings; strings that look like them are none."""
    text = source.text
    folded = text.lower()
    if "gpulint" not in folded and "noqa" not in folded:
        return []
    comments, statements = _tokens(text)
    found = [
        suppression
        for line, column, comment in comments
        for suppression in _read(source, line, column, comment, statements)
    ]
    return sorted(found, key=lambda suppression: suppression.span)


def _tokens(text: str) -> tuple[list[tuple[int, int, str]], list[range]]:
    """The comments, ``(line, column, text)``, and the lines of each logical line, in order."""
    comments: list[tuple[int, int, str]] = []
    statements: list[range] = []
    first = 0
    try:
        # The tokenizer of Python 3.11 and older takes \r for a blank; columns are the same without it.
        for token in tokenize.generate_tokens(io.StringIO(re.sub(r"\r\n?", "\n", text)).readline):
            if token.type == tokenize.COMMENT:
                comments.append((*token.start, token.string))
            elif token.type == tokenize.NEWLINE:
                statements.append(range(first, token.start[0] + 1))
                first = 0
            elif not first and token.type not in _LAYOUT:
                first = token.start[0]
    except (tokenize.TokenError, SyntaxError):
        pass  # what was read before the trouble counts
    return comments, statements


def _read(source: Source, line: int, column: int, comment: str, statements: list[range]) -> Iterator[Suppression]:
    start = source.offset(line, 0) + column
    for match in _OURS.finditer(comment):
        lines = None if match["file"] else _applies_to(source, line, column, statements)
        codes = None if match["codes"] is None else _codes(match["codes"])
        span = Span(start + match.start(), start + match.start() + len(match[0].rstrip()))
        yield Suppression(span, lines, codes, True)
    for match in _NOQA.finditer(comment):
        codes = None if match["codes"] is None else _codes(match["codes"])
        span = Span(start + match.start(), start + match.end())
        yield Suppression(span, _applies_to(source, line, column, statements, below=False), codes, False)


def _codes(text: str) -> tuple[str, ...]:
    codes = (code for code in re.split(r"[\s,]+", text) if code)
    return tuple(code.upper() if code[:3].upper() == "GPU" else code for code in codes)


def _applies_to(source: Source, line: int, column: int, statements: list[range], below: bool = True) -> range:
    """The comment's own line; all lines of a statement of which it ends the first or the last line.

    On a line of its own: likewise for the next line of code, if it is to apply ``below``.
    """
    if below and not source.line_text(line)[:column].strip():
        later = range(line + 1, source.line_count + 1)
        code = (n for n in later if (text := source.line_text(n).strip()) and not text.startswith("#"))
        line = next(code, line)
    index = bisect.bisect_right(statements, line, key=lambda lines: lines.start) - 1
    if index >= 0 and line in (statements[index].start, statements[index].stop - 1):
        return statements[index]
    return range(line, line + 1)


def filtered(
    source: Source, findings: Iterable[Finding], ran: Iterable[Rule], report_unused: bool = True
) -> list[Finding]:
    """The findings that no comment silences, and one for each comment that silences none.

    ``ran`` are the rules that ran to their end: only of these it is known that they found nothing.
    """
    comments = suppressions(source)
    if not comments:
        return list(findings)
    rules = {rule.code: rule for rule in all_rules()}
    kept: list[Finding] = []
    for finding in findings:
        first = source.position(finding.span.start)[0]
        last = source.position(max(finding.span.end - 1, finding.span.start))[0]
        covering = [comment for comment in comments if comment.covers(rules[finding.code], first, last)]
        if not covering:
            kept.append(finding)
    if report_unused:
        kept.extend(_unused(source, comments, frozenset(rule.code for rule in ran)))
    return kept


def _unused(source: Source, comments: list[Suppression], ran: frozenset[str]) -> Iterator[Finding]:
    for comment in comments:
        if not comment.ours:
            continue
        unknown = [c for c in comment.codes or () if not any(matches(r, c) for r in (*all_rules(), UNUSED))]
        idle = [c for c in comment.codes or () if c not in unknown and _idle(comment, c, ran)]
        if unknown:
            message = _no_such_rule(unknown[0])
        elif idle:
            message = f"nothing here for {', '.join(f'`{code}`' for code in idle)} to silence"
        elif not comment.codes and _idle(comment, None, ran):
            message = "nothing here for this comment to silence"
        else:
            continue
        line = source.position(comment.span.start)[0]
        if not any(c.codes and c.covers(UNUSED, line, line) for c in comments):
            left = [c for c in comment.codes or () if c not in unknown and c not in idle]
            fix = _removal(source, comment, left)
            yield Finding(comment.span, message, Confidence.CERTAIN, fix=fix, code=UNUSED.code, path=source.path)


def _idle(comment: Suppression, code: str | None, ran: frozenset[str]) -> bool:
    """Whether a code silenced nothing, and would not if all rules ran that run by default."""
    if comment.codes == ():
        return True
    if code in comment.used:
        return False
    meant = {rule.code for rule in all_rules() if code is None or matches(rule, code)}
    missing = meant - ran
    off = {rule.code for rule in all_rules() if not rule.on_by_default}
    return bool(meant & ran) and missing <= off


def _no_such_rule(code: str) -> str:
    names = [key for rule in all_rules() for key in (rule.code, rule.name)]
    hint = did_you_mean(code, names).removeprefix("; did you mean ").removesuffix("?")
    return f"there is no rule `{code}`" + (f": the nearest is {hint}" if hint else "")


def _removal(source: Source, comment: Suppression, left: list[str]) -> Fix:
    """Take the comment away, or its unused codes, with what would be left over around it."""
    start, end = comment.span.start, comment.span.end
    if left:
        old = source.text[start:end]
        new = re.sub(r"\[[^\]]*\]", f"[{', '.join(left)}]", old, count=1)
        return Fix("Remove the unused codes", Applicability.SAFE, (Edit(start, end, new),))
    line, _ = source.position(start)
    line_start = source.offset(line, 0)
    text = source.line_text(line)
    before, after = text[: start - line_start], text[end - line_start :]
    if not before.strip() and not after.strip():  # a line of its own goes with its newline
        start, end = line_start, source.offset(line + 1, 0) if line < source.line_count else len(source.text)
    elif after.strip():  # another comment follows
        end += len(after) - len(after.lstrip())
    else:
        start -= len(before) - len(before.rstrip())
        end = line_start + len(text)
    return Fix("Remove the comment", Applicability.SAFE, (Edit(start, end, ""),))
