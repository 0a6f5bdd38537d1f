"""Time gpulint beside ruff and two other linters for GPU code, on timm from PyPI.

Each tool lives in an environment of its own and runs as its users run it, cold: no caches of
its own, on a copy of the source outside any repository. The tools take turns for several
rounds; the medians are compared. Memory is measured in one more run, since watching costs
time; a tool that takes half a minute gets that one run only. Then gpulint alone runs on 1, 2
and 4 copies of the same code, to see its cost per line.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from measure import Run, measure
from tools import TOOLS, BenchError, copies, count, gpulint, say, source_tree, table, tool

LINTED = ("timm", "1.0.31")
MEMORY_LIMIT_MIB = 300
RATIO_LIMIT = 4.0
ALL = ("gpulint", *TOOLS)  # the last, torchfix, only when asked for: it takes minutes
SLOW = 30.0  # seconds


@dataclass
class Contender:
    name: str
    command: Callable[[Path], list[str]]
    right_exits: tuple[int, ...] = (0, 1)
    runs: list[Run] = field(default_factory=list)
    watched: Run | None = None

    @property
    def seconds(self) -> float:
        return median(run.seconds for run in self.runs)

    def go(self, folder: Path, *, watch: bool = False) -> Run:
        run = measure(self.command(folder), watch=watch, keep=False)
        if run.returncode not in self.right_exits:
            raise BenchError(f"`{shlex.join(run.command)}` ended with {run.returncode}")
        return run


def contenders(ours: list[str], names: Iterable[str]) -> list[Contender]:
    def script(name: str, program: str, *words: str) -> Contender:
        path = tool(name) / program
        return Contender(name, lambda folder: [str(path), *words, str(folder)])

    known: dict[str, Callable[[], Contender]] = {
        "gpulint": lambda: Contender("gpulint", lambda folder: [*ours, "check", str(folder)]),
        "ruff": lambda: script("ruff", "ruff", "check", "--select", "ALL", "--no-cache"),
        "torch-preflight": lambda: script("torch-preflight", "torch-preflight", "check"),
        "hotpath-ai": lambda: script("hotpath-ai", "hotpath", "analyze"),
        "torchfix": lambda: script("torchfix", "torchfix", "--select", "ALL"),
    }
    return [known[name]() for name in names]


def side_by_side(group: list[Contender], tree: Path, rounds: int) -> None:
    """Round after round, so that whatever else the machine does hits all of them alike."""
    with copies(tree) as folder:
        for contender in group:  # also warms the file cache and each tool's byte code
            contender.watched = contender.go(folder, watch=True)
            if contender.watched.seconds > SLOW:
                contender.runs.append(contender.watched)
        quick = [contender for contender in group if not contender.runs]
        for number in range(rounds):
            first = number % len(quick)
            for contender in quick[first:] + quick[:first]:
                contender.runs.append(contender.go(folder))


def comparison(group: list[Contender]) -> str:
    base = next((contender.seconds for contender in group if contender.name == "ruff"), None)
    heading = [
        "tool",
        "runs",
        "median s",
        "fastest",
        "slowest",
        "CPU s",
        "x ruff",
        "processes",
        "peak MiB",
    ]
    rows = [heading]
    for contender in group:
        times = [run.seconds for run in contender.runs]
        assert contender.watched is not None  # noqa: S101 - side_by_side has set it
        rows.append([
            contender.name,
            str(len(contender.runs)),
            *(f"{value:.2f}" for value in (contender.seconds, min(times), max(times))),
            f"{median(run.cpu_seconds for run in contender.runs):.2f}",
            f"{contender.seconds / base:.1f}" if base else "",
            str(len(contender.watched.peaks)),
            f"{contender.watched.peak_mib:.0f}",
        ])  # fmt: skip
    return table(rows)


def linearity(ours: Contender, tree: Path, rounds: int) -> str:
    rows = [["copies", "files", "lines", "median s", "us per line", "peak MiB"]]
    for times in (1, 2, 4):
        with copies(tree, times) as folder:
            files, lines = count(folder.rglob("*.py"))
            watched = ours.go(folder, watch=True)
            seconds = median(ours.go(folder).seconds for _ in range(rounds))
        rows.append([
            f"{times}x", str(files), f"{lines:,}", f"{seconds:.2f}",
            f"{seconds / lines * 1e6:.1f}", f"{watched.peak_mib:.0f}",
        ])  # fmt: skip
    return table(rows)


def verdicts(group: list[Contender]) -> list[str]:
    """What gpulint promises about itself, and whether it held in this run."""
    by_name = {contender.name: contender for contender in group}
    lines = []
    if (ours := by_name.get("gpulint")) and ours.watched:
        held = "held" if ours.watched.peak_mib < MEMORY_LIMIT_MIB else "MISSED"
        lines.append(f"peak memory of each process under {MEMORY_LIMIT_MIB} MiB: {held}")
        if ruff := by_name.get("ruff"):
            ratio = ours.seconds / ruff.seconds
            held = "held" if ratio <= RATIO_LIMIT else "MISSED"
            lines.append(f"at most {RATIO_LIMIT:g}x ruff: {held} ({ratio:.1f}x)")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--gpulint", metavar="COMMAND", help="time this one (default: this tree, installed)")
    parser.add_argument("--only", nargs="+", choices=ALL, default=ALL[:-1], metavar="TOOL", help=f"of {ALL}")
    parser.add_argument("--no-linearity", action="store_true", help="skip the runs on 2x and 4x the code")
    options = parser.parse_args()
    try:
        ours = shlex.split(options.gpulint) if options.gpulint else [str(gpulint())]
        group = contenders(ours, options.only)
        tree = source_tree(*LINTED)
        files, lines = count(tree.rglob("*.py"))
        python = platform.python_version()
        say(f"{' '.join(LINTED)}: {files} files, {lines:,} lines; {os.cpu_count()} cores, Python {python}")
        side_by_side(group, tree, options.rounds)
        say(comparison(group))
        for line in verdicts(group):
            say(line)
        if "gpulint" in options.only and not options.no_linearity:
            say("\ngpulint on more of the same code:")
            say(linearity(group[options.only.index("gpulint")], tree, max(1, options.rounds // 2)))
    except BenchError as error:
        sys.stderr.write(f"bench: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
