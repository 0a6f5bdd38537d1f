"""For people: the line, what is wrong with it, why, and the fix as a diff; made for 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpulint.finding import Applicability, Confidence, Evidence, Finding, Severity
from gpulint.report import Problem, Report, Style
from gpulint.report.diff import Row, rows
from gpulint.report.display import Paint, cells, clean, clip, measure, pieces, shift_for, wrap
from gpulint.report.snippet import last_line, snippet
from gpulint.report.summary import Summary, count, sentences, summarise

MIN_WIDTH = 40
MIN_FACTS = 28  # cells for the facts of the evidence, beside their places
MAX_DIFF = 40  # rows of a fix; `--diff` shows the rest
_HUES = {Severity.WRONG: "red", Severity.MEMORY: "magenta", Severity.SLOW: "yellow"}
_LABELS = {
    Applicability.SAFE: "safe fix",
    Applicability.UNSAFE: "unsafe fix",
    Applicability.MANUAL: "help",
}


def render(report: Report, style: Style) -> str:
    page = _Page(report, style)
    lines: list[str] = []
    for finding in report.findings:
        lines += [*page.finding(finding), ""]
    for problem in report.problems:
        lines += page.problem(problem)
    if report.problems and not style.quiet:
        lines.append("")
    summary = summarise(report)
    if style.statistics:
        lines += page.statistics(summary)
    if not style.quiet:
        lines += page.summary(summary)
    while lines and not lines[-1]:
        lines.pop()
    return "".join(f"{line.rstrip()}\n" for line in lines)


class _Page:
    """The report and the style in hand, so that the parts below need not pass them on."""

    def __init__(self, report: Report, style: Style) -> None:
        self.report, self.style = report, style
        self.paint = Paint(style.color)
        self.width = max(style.width, MIN_WIDTH)

    # ---- a finding ----------------------------------------------------------------------------------

    def finding(self, finding: Finding) -> Iterator[str]:
        source = self.report.sources.get(finding.path)
        hue = _HUES[self.report.severity(finding)]
        changes = [] if source is None or finding.fix is None else rows(source, finding.fix.edits)
        numbers = [row.number for row in changes if row.number]
        if source is not None:
            numbers.append(last_line(source, finding.span))
        gutter = len(str(max(numbers, default=1)))
        yield from self._header(finding, hue)
        yield from self._prose(finding.message, "bold")
        if source is not None:
            yield self._edge(gutter)
            yield from snippet(source, finding.span, gutter, self.width, self.paint, hue)
        notes = [*self._evidence(finding.evidence, gutter), *self._fix(finding, changes, gutter)]
        if notes:
            yield self._edge(gutter)
            yield from notes

    def _header(self, finding: Finding, hue: str) -> list[str]:
        place = self.report.place(finding)
        where = clean(f"{self.report.shown(finding.path)}:{place.line}:{place.column}:")
        name = self.report.name(finding.code)
        doubt = "" if finding.confidence is Confidence.CERTAIN else f"({finding.confidence.label})"
        what = " ".join(part for part in (finding.code, name, doubt) if part)
        code = self.paint(finding.code, "bold", hue)
        painted = " ".join(p for p in (code, self.paint(name, hue), self.paint(doubt, "dim")) if p)
        if measure(where) + 1 + len(what) <= self.width:
            return [f"{self.paint(where, 'bold')} {painted}"]
        return [self.paint(where, "bold"), f"  {painted}"]  # the path stays whole, so that it can be clicked

    def _prose(self, text: str, *looks: str) -> list[str]:
        return [self.paint(line, *looks) for line in wrap(text, self.width)]

    def _evidence(self, chain: Sequence[Evidence], gutter: int) -> Iterator[str]:
        """The facts in order, beside the places where they can be checked."""
        if not self.style.explain:
            return
        places = [clean(f"{self.report.shown(link.path)}:{link.line}") for link in chain]
        column = max((measure(place) for place in places), default=0)
        first = f"{'':>{gutter}} = because: "
        indent = " " * len(first)
        if self.width - len(first) - column < MIN_FACTS:
            column = 0  # the facts have no column of their own
        hang = indent + " " * (column + 2)
        for number, (place, link) in enumerate(zip(places, chain, strict=True)):
            lead = self._lead("because", gutter) if number == 0 else indent
            start = f"{indent}{place}{' ' * (column - measure(place))}  "
            if measure(start) > self.width - 8:  # room for a word or so
                yield lead + self.paint(place, "cyan")
                yield from wrap(link.message, self.width, hang)
                continue
            lines = wrap(link.message, self.width, start, hang)
            yield f"{lead}{self.paint(place, 'cyan')}{lines[0][len(indent) + len(place) :]}"
            yield from lines[1:]

    def _lead(self, word: str, gutter: int) -> str:
        return f"{'':>{gutter}} {self.paint('=', 'cyan')} {self.paint(f'{word}:', 'bold', 'cyan')} "

    # ---- a fix --------------------------------------------------------------------------------------

    def _fix(self, finding: Finding, changes: Sequence[Row], gutter: int) -> Iterator[str]:
        fix = finding.fix
        if fix is None:
            return
        label = _LABELS[fix.applicability]
        first = f"{'':>{gutter}} = {label}: "
        title, *rest = wrap(fix.title, self.width, first, " " * len(first))
        yield self._lead(label, gutter) + title[len(first) :]
        yield from rest
        if changes:
            yield self._edge(gutter)
            yield from self._diff(changes, gutter)
        elif fix.sketch:
            yield self._edge(gutter)
            yield from self._sketch(fix.sketch, gutter)

    def _edge(self, gutter: int, mark: str = "|", number: int | None = None) -> str:
        return self.paint(f"{'' if number is None else number:>{gutter}} {mark}", "cyan")

    def _diff(self, changes: Sequence[Row], gutter: int) -> Iterator[str]:
        width = self.width - gutter - 3
        drawn = [(row, cells(row.text)[0]) for row in changes[:MAX_DIFF]]
        shift = _shift([(row.mark, line) for row, line in drawn], width)
        for row, line in drawn:
            number = "" if row.number is None else row.number
            code = clip(line, shift, width)
            if row.mark in "+-":
                color = "green" if row.mark == "+" else "red"
                yield self.paint(f"{number:>{gutter}} {row.mark} {code}".rstrip(), color)
            else:
                edge = self._edge(gutter, "|" if row.mark == " " else row.mark, row.number)
                yield f"{edge} {code}" if code else edge
        if len(changes) > MAX_DIFF:
            more = f"{len(changes) - MAX_DIFF} more lines: see --diff"
            yield f"{self._edge(gutter, ':')} {self.paint(more, 'dim')}"

    def _sketch(self, code: str, gutter: int) -> Iterator[str]:
        """Code to write by hand. It is shown nowhere else, so long lines are continued, not cut."""
        for text in code.strip("\n").splitlines():
            for number, part in enumerate(pieces(cells(text)[0], self.width - gutter - 3)):
                edge = self._edge(gutter, "|" if number == 0 else ":")
                yield f"{edge} {part.rstrip()}" if part.rstrip() else edge

    # ---- the rest -----------------------------------------------------------------------------------

    def problem(self, problem: Problem) -> Iterator[str]:
        where = clean(f"{self.report.shown(problem.path)}:{problem.line}:{problem.column}:")
        lead = f"{where} error: "
        lines = wrap(problem.message, self.width, lead, "  ") if measure(lead) <= self.width // 2 else []
        label = self.paint("error:", "bold", "red")
        if lines:
            yield f"{self.paint(where, 'bold')} {label} {lines[0][len(lead) :]}"
            yield from lines[1:]
        else:
            yield f"{self.paint(where, 'bold')} {label}"
            yield from wrap(problem.message, self.width, "  ")
        if problem.traceback and self.style.verbose:
            for line in problem.traceback.rstrip().splitlines():
                yield from (f"  {part}".rstrip() for part in pieces(cells(line)[0], self.width - 2))
        elif problem.traceback:
            yield from wrap("this is a defect of gpulint; --verbose shows where", self.width, "  ")

    def statistics(self, summary: Summary) -> list[str]:
        counts = sorted(summary.by_rule.items(), key=lambda item: (-item[1], item[0]))
        facts = [(f"{value:g}", name) for name, value in sorted(self.report.statistics.items())]
        table = [(str(n), f"{code}  {self.report.name(code)}".rstrip()) for code, n in counts]
        column = max((len(number) for number, _ in [*table, *facts]), default=0)
        parts = [[f"{n:>{column}}  {name}" for n, name in part] for part in (table, facts) if part]
        return [line for part in parts for line in [*part, ""]]

    def summary(self, summary: Summary) -> list[str]:
        lines = [line for part in sentences(summary, self.width) for line in self._prose(part, "bold")]
        if self.style.verbose:
            lines.append(f"Checked {count(summary.files, 'file')} in {self.report.elapsed:.2f} s.")
        return lines


def _shift(lines: Sequence[tuple[str, Sequence[str]]], width: int) -> int:
    """One shift for the whole diff, such that the first place where two lines differ can be seen."""
    total = max((len(line) for _, line in lines), default=0)
    removed = [line for mark, line in lines if mark == "-"]
    added = [line for mark, line in lines if mark == "+"]
    at, end = 0, 0
    for old, new in zip(removed, added, strict=False):
        shorter = min(len(old), len(new))
        same = next((n for n in range(shorter) if old[n] != new[n]), shorter)
        if same > end:
            at, end = same, same + 1
    return shift_for(total, at, end, width)
