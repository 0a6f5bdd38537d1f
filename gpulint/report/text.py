"""For people: the line with a caret, what is wasted, the fix as a diff, and with `--explain` why."""

from __future__ import annotations

import textwrap
import unicodedata
from collections import Counter

from gpulint.finding import Applicability, Confidence, Finding
from gpulint.fix import apply_edits
from gpulint.report import Report, Style, known_rules

_COLORS = {
    "bold": "1",
    "red": "1;31",
    "yellow": "1;33",
    "blue": "34",
    "cyan": "36",
    "green": "32",
    "minus": "31",
    "dim": "2",
}
CONTEXT = 1  # unchanged lines around a change


def render(report: Report, style: Style) -> str:
    parts = [_finding(report, finding, style) for finding in report.findings]
    for problem in report.problems:
        where = f"{report.shown(problem.path)}:{problem.line}:{problem.column}"
        parts.append(f"{_paint(where, 'bold', style)}: {_paint('error', 'red', style)}: {problem.message}\n")
        if style.verbose and problem.traceback:
            parts.append(textwrap.indent(problem.traceback, "    "))
    if not style.quiet:
        parts.append(_summary(report, style))
    if style.statistics:
        parts.append(_statistics(report))
    return "\n".join(part for part in parts if part)


def _paint(text: str, color: str, style: Style) -> str:
    return f"\x1b[{_COLORS[color]}m{text}\x1b[0m" if style.color and text else text


def _finding(report: Report, finding: Finding, style: Style) -> str:
    rule = known_rules()[finding.code]
    line, column = report.start(finding)
    place = f"{report.shown(finding.path)}:{line}:{column}"
    color = "red" if finding.confidence is Confidence.CERTAIN else "yellow"
    head = f"{_paint(place, 'bold', style)}: {_paint(finding.code, color, style)} {rule.name}"
    if finding.confidence is not Confidence.CERTAIN:
        head += f" ({finding.confidence.label})"
    gutter = len(str(report.end(finding)[0])) + 1
    out = [head, *_excerpt(report, finding, style, gutter)]
    out += _prose(finding.message, "= ", gutter, style)
    if style.explain:
        for link in finding.evidence:
            out += _prose(f"{report.shown(link.path)}:{link.line}: {link.message}", "because ", gutter, style)
    out += _fix(report, finding, style, gutter)
    return "\n".join(out) + "\n"


def _prose(text: str, lead: str, gutter: int, style: Style) -> list[str]:
    start = " " * gutter + " " + lead
    wrapped = textwrap.wrap(text, style.width - len(start), break_long_words=False, break_on_hyphens=False) or [""]
    first = " " * gutter + " " + _paint(lead.rstrip(), "blue", style) + " " + wrapped[0]
    return [first, *(" " * len(start) + rest for rest in wrapped[1:])]


# ---- the source line -----------------------------------------------------------------------------


def _cells(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _excerpt(report: Report, finding: Finding, style: Style, gutter: int) -> list[str]:
    source = report.sources[finding.path]
    line, column = report.start(finding)
    end_line, end_column = report.end(finding)
    raw = source.line_text(line)
    stop = end_column - 1 if end_line == line else len(raw.rstrip())
    before, marked, after = raw[: column - 1], raw[column - 1 : stop], raw[stop:]
    before, marked, after = (part.expandtabs(4) for part in (before, marked, after))
    before, marked, after = _clipped(before, marked, after, style.width - gutter - 3)
    number = _paint(f"{line:>{gutter - 1}}", "blue", style)
    bar = _paint("|", "blue", style)
    carets = _paint("^" * max(_cells(marked), 1), "red", style)
    return [
        f" {number} {bar} {before}{marked}{after}".rstrip(),
        f" {' ' * (gutter - 1)} {bar} {' ' * _cells(before)}{carets}",
    ]


def _clipped(before: str, marked: str, after: str, width: int) -> tuple[str, str, str]:
    """Cut a long line around its marked part, so that it fits."""
    indent = len(before) - len(before.lstrip())
    if _cells(before + marked + after) > width and indent > 8:
        before = before[indent - 4 :]
    if _cells(marked) > width - 12:
        marked = marked[: width - 12] + "…"
        after = ""
    room = width - _cells(marked)
    if _cells(before) > room - 6:
        keep = max(room - 8, 4)
        before = "…" + before[-keep:]
    room -= _cells(before)
    if _cells(after) > room:
        after = after[: max(room - 1, 0)] + "…"
    return before, marked, after


# ---- the fix -------------------------------------------------------------------------------------


def _fix(report: Report, finding: Finding, style: Style, gutter: int) -> list[str]:
    fix = finding.fix
    if fix is None:
        return []
    note = {Applicability.SAFE: "fix", Applicability.UNSAFE: "unsafe fix", Applicability.MANUAL: "help"}[
        fix.applicability
    ]
    out = _prose(fix.title, f"{note}: ", gutter, style)
    if fix.edits:
        text = report.sources[finding.path].text
        out += _diff(text, apply_edits(text, fix.edits), style, gutter)
    elif fix.sketch:
        out += [_cut(" " * (gutter + 3) + line, style) for line in fix.sketch.rstrip("\n").splitlines()]
    return out


def _diff(before: str, after: str, style: Style, gutter: int) -> list[str]:
    from difflib import SequenceMatcher

    old, new = before.splitlines(), after.splitlines()
    pad = " " * (gutter + 1)
    out: list[str] = []
    blocks = SequenceMatcher(None, old, new, autojunk=False) if len(old) < 3000 else None
    groups = blocks.get_grouped_opcodes(CONTEXT) if blocks is not None else _changed(old, new)
    for position, group in enumerate(groups):
        if position:
            out.append(pad + "…")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                out += [_cut(f"{pad}  {line}", style) for line in old[i1:i2]]
                continue
            out += [_paint(_cut(f"{pad}- {line}", style), "minus", style) for line in old[i1:i2]]
            out += [_paint(_cut(f"{pad}+ {line}", style), "green", style) for line in new[j1:j2]]
    return out


def _changed(old: list[str], new: list[str]) -> list[list[tuple[str, int, int, int, int]]]:
    """One block from the first to the last changed line: enough for a file too long to compare."""
    start = next((i for i, (a, b) in enumerate(zip(old, new)) if a != b), min(len(old), len(new)))
    tail = next((i for i, (a, b) in enumerate(zip(reversed(old), reversed(new))) if a != b), 0)
    return [[("replace", start, max(len(old) - tail, start), start, max(len(new) - tail, start))]]


def _cut(line: str, style: Style) -> str:
    line = line.expandtabs(4)
    return line if _cells(line) <= style.width else line[: style.width - 1] + "…"


# ---- the end -------------------------------------------------------------------------------------


def _summary(report: Report, style: Style) -> str:
    findings, problems = report.findings, report.problems
    lines = []
    if report.fixed:
        lines.append(f"Fixed {_count(report.fixed, 'finding')}.")
    if findings:
        files = len({finding.path for finding in findings})
        sure = Counter(f.confidence.label for f in findings)
        split = ", ".join(f"{sure[c.label]} {c.label}" for c in reversed(Confidence) if sure[c.label])
        lines.append(
            _paint(
                f"Found {_count(len(findings), 'finding')} in {_count(files, 'file')} ({split}).",
                "bold",
                style,
            )
        )
        safe, unsafe = (
            sum(f.fix is not None and bool(f.fix.edits) and f.fix.applicability is kind for f in findings)
            for kind in (Applicability.SAFE, Applicability.UNSAFE)
        )
        if safe or unsafe:
            more = f"{unsafe} {'more ' if safe else ''}with --fix --unsafe-fixes"
            lines.append("; ".join([f"{safe} fixable with --fix"] * bool(safe) + [more] * bool(unsafe)) + ".")
    elif not problems:
        lines.append(_paint("No findings.", "green", style))
    if problems:
        lines.append(f"{_count(len(problems), 'file')} could not be linted.")
    return "\n".join(lines) + "\n"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _statistics(report: Report) -> str:
    rules = known_rules()
    counts = Counter(f.code for f in report.findings)
    lines = [f"{number:>7}  {code}  {rules[code].name}" for code, number in counts.most_common()]
    lines += [f"{value:>7}  {key}" for key, value in sorted(report.statistics.items())]
    return "\n".join(lines) + "\n"
