"""Properties: programs composed of the rules' own vocabulary, and any Python at all."""

from __future__ import annotations

import os
import sysconfig
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import pytest
from harness import ROOT, Project, codes_of, fixable, fixed, project, relint
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpulint.config import Settings
from gpulint.fix import MAX_ROUNDS
from gpulint.model import analyse
from gpulint.source import Source, compiles, from_text, replaced

IMPORTS = """\
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader
"""
DATASETS = ["dataset", "torch.utils.data.TensorDataset(xs, ys)"]
OPTIONS = ["batch_size=4", "num_workers=2", "pin_memory=True", "pin_memory=False", "num_workers=0", "**options"]
MOVES = [
    "",
    ".cuda()",
    ".to(device)",
    ".float().cuda()",
    ".cuda(non_blocking=True)",
    '.to("cuda", non_blocking=True)',
    '.to("cpu")',
]
FORWARD = ["out = model(x)", "out = self_helper(model, x)", "out = model(x)['logits']", "out, _ = model(x)"]
LOSSES = [
    "loss = F.cross_entropy(out, y)",
    "loss = criterion(out, y)",
    "loss = (out - y).pow(2).mean()",
    "loss = sum(F.l1_loss(out, y) for _ in range(2))",
]
STEPS = [
    "optimizer.zero_grad(); loss.backward(); optimizer.step()",
    "loss.backward()\nif step % 4 == 0:\n    optimizer.step()",
    "scaler.scale(loss).backward()\nscaler.step(optimizer)",
    "pass",
]
LINES = [
    "total += loss.item()",
    "total += loss",
    "total = total + loss.detach()",
    "losses.append(loss)",
    "losses.append(loss.detach().cpu())",
    "kept.append(out)",
    "table[step] = out.mean()",
    "print(step, loss)",
    "print(f'{loss:.3f} {step}')",
    "print(float(loss))",
    "noise = torch.randn(4, 4).to(device)",
    "ones = torch.ones(len(x), 1).cuda()",
    "array = torch.from_numpy(options['a']).cuda(non_blocking=True)",
    "assert torch.isfinite(loss)",
    "accuracy = (out.argmax(1) == y).float().mean().item()",
    "meter.update(loss, n=len(x))",
    "rows = [o.item() for o in out]",
    "out = out.detach(); del x",
    "best = max(best, loss)",
    "with torch.cuda.amp.autocast():\n    again = model(x)",
    "try:\n    x = x / 0\nexcept ZeroDivisionError:\n    print(loss.item())",
    "note(loss)",
    "for row in out:\n    print(row.cpu())",
]
CONDITIONS = [
    "step % 10 == 0",
    "step == 0",
    "rank == 0",
    "loss > 3",
    "not step % every",
    "rank == 0 and loss.isnan().any()",
    "x is None",
]
SHELLS = ["", "with torch.no_grad():", "if rank == 0:", "for epoch in range(3):", "while rank:", "try:"]
RESULTS = [
    "return total",
    "return total / len(loader)",
    "return torch.cat(kept).cpu()",
    "return losses",
    "print(total)",
    "return float(total), table",
]
HELPERS = """

def self_helper(model, x):
    return model(x)


def note(value):
    print(value.item())


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, n=1):
        self.total += value * n
        self.count += n
"""


@dataclass(frozen=True)
class Program:
    """A function that loops over a loader, and the helpers that it may call."""

    name: str
    body: tuple[str, ...]  # statements, unindented
    tabs: bool
    method: bool

    @property
    def function(self) -> str:
        parameters = "model, dataset, optimizer, meter, rank, criterion, scaler, options, xs, ys, every"
        text = f"def {self.name}({'self, ' if self.method else ''}{parameters}):\n"
        text += indent("\n".join(self.body), "    ") + "\n"
        return "class Runner:\n" + indent(text, "    ") if self.method else text

    @property
    def text(self) -> str:
        return self.unified(self.function)

    def unified(self, function: str) -> str:
        text = IMPORTS + HELPERS + "\n\n" + function
        return text.replace("    ", "\t") if self.tabs else text


@st.composite
def statements(draw: st.DrawFn) -> str:
    line = draw(st.sampled_from(LINES))
    if draw(st.integers(0, 3)) == 0:
        condition = draw(st.sampled_from(CONDITIONS))
        return f"if {condition}:\n{indent(line, '    ')}"
    return line


@st.composite
def programs(draw: st.DrawFn) -> Program:
    options = draw(st.lists(st.sampled_from(OPTIONS), max_size=3, unique_by=lambda o: o.partition("=")[0]))
    options.sort(key=lambda option: option.startswith("**"))
    step = [
        f"x, y = x{draw(st.sampled_from(MOVES))}, y{draw(st.sampled_from(MOVES))}",
        draw(st.sampled_from(FORWARD)),
        draw(st.sampled_from(LOSSES)),
        draw(st.sampled_from(STEPS)),
        *draw(st.lists(statements(), min_size=1, max_size=5)),
    ]
    loop = "for step, (x, y) in enumerate(loader):\n" + indent("\n".join(step), "    ")
    shell = draw(st.sampled_from(SHELLS))
    if shell:
        loop = f"{shell}\n{indent(loop, '    ')}" + ("\nfinally:\n    print(total)" if shell == "try:" else "")
    body = (
        'device = torch.device("cuda")',
        draw(st.sampled_from(["model.to(device)", "model = model.cuda().train()", "model.cuda().eval()"])),
        f"loader = DataLoader({', '.join([draw(st.sampled_from(DATASETS)), *options])})",
        "total, best, losses, kept, table = 0.0, 0.0, [], [], {}",
        loop,
        draw(st.sampled_from(RESULTS)),
    )
    name = draw(st.sampled_from(["train", "evaluate", "run"]))
    return Program(name, body, draw(st.booleans()), draw(st.booleans()))


SEEN: Counter[str] = Counter()
# The same programs on every run; GPULINT_FUZZ=2000 draws that many others.
FUZZ = int(os.environ.get("GPULINT_FUZZ", "0"))
quick = settings(
    max_examples=FUZZ or 50,
    derandomize=not FUZZ,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
MAIN = ROOT / "main.py"


def places(source: Source) -> list[tuple[int, str]]:
    return [(source.position(f.span.start)[0], f.code) for f in relint(source)]


@quick
@given(programs())
def test_findings_lie_in_the_text_and_fixes_settle(program: Program) -> None:
    source = from_text(MAIN, program.text)
    findings = relint(source)
    SEEN["programs"] += 1
    SEEN["with findings"] += bool(findings)
    SEEN["with fixes"] += any(fixable(f) for f in findings)
    SEEN.update({f.code for f in findings})
    for finding in findings:
        assert 0 <= finding.span.start < finding.span.end <= len(source.text)
        assert source.text[finding.span.start : finding.span.end].strip()
        assert all(1 <= e.line <= source.line_count for e in finding.evidence)
    before = set(codes_of(findings))
    source, _, rounds = fixed(source)
    assert rounds < MAX_ROUNDS
    assert compiles(source.text, source.path)
    assert not [f for f in relint(source) if fixable(f)]
    # once its loader is pinned, a copy blocks for nothing; once detached, outputs still pile up
    assert set(codes_of(relint(source))) <= before | {"GPU203", "GPU303"}


def test_the_programs_are_worth_drawing() -> None:
    if SEEN["programs"] < 30:
        pytest.skip("the property did not run before this test")
    assert SEEN["with findings"] > 0.5 * SEEN["programs"]
    assert SEEN["with fixes"] > 0.3 * SEEN["programs"]
    assert len([code for code in SEEN if code.startswith("GPU")]) >= 9


@quick
@given(programs(), st.data())
def test_comments_and_blank_lines_change_nothing(program: Program, data: st.DataObject) -> None:
    source = from_text(MAIN, program.text)
    lines = source.text.split("\n")
    at = data.draw(st.integers(0, len(lines) - 1))
    inserted = data.draw(st.lists(st.sampled_from(["# a comment", "", "\t  # loss.item()"]), min_size=1, max_size=3))
    other = replaced(source, "\n".join([*lines[:at], *inserted, *lines[at:]]))
    moved = [(line + len(inserted) * (line > at), code) for line, code in places(source)]
    assert places(other) == moved


@quick
@given(programs(), st.sampled_from(LINES), st.sampled_from(["return", "raise ValueError(rank)"]))
def test_dead_code_changes_nothing(program: Program, line: str, end: str) -> None:
    dead = indent(line, "    " * (2 if program.method else 1))
    stop = "    " * (2 if program.method else 1) + end
    alive = from_text(MAIN, program.unified(f"{program.function}{stop}\n"))
    other = from_text(MAIN, program.unified(f"{program.function}{stop}\n{dead}\n"))
    assert compiles(other.text, MAIN)
    assert places(other) == places(alive)


@quick
@given(programs())
def test_names_of_what_is_kept_do_not_matter(program: Program) -> None:
    source = from_text(MAIN, program.text)
    renamed = source.text
    for name in ("total", "losses", "kept", "table", "noise", "accuracy"):
        assume(f"x{name}" not in renamed)
        renamed = renamed.replace(name, f"x{name}")
    assert places(replaced(source, renamed)) == places(source)


@quick
@given(programs())
def test_a_file_of_its_own_for_the_helpers_changes_nothing(program: Program) -> None:
    """The same program in one file and in two: the same codes at the same statements."""
    one = project({"main.py": program.text})
    helpers = from_text(ROOT / "helpers.py", program.unified("").replace(program.function, ""))
    main = program.unified(program.function).replace(
        program.unified("")[len(IMPORTS) :].rstrip(), "\nfrom helpers import Meter, note, self_helper\n"
    )
    assert "class Meter" not in main
    two = project({"main.py": main, "helpers.py": helpers.text})

    def reported(analysed: Project) -> Counter[tuple[str, str]]:
        return Counter(
            (f.code, source.line_text(source.position(f.span.start)[0]).strip())
            for name, source in analysed.sources.items()
            for f in analysed.of(name)
        )

    assert reported(two) == reported(one)


def library() -> list[Path]:
    """About 150 modules of the standard library: Python that nobody wrote for us."""
    folder = Path(sysconfig.get_path("stdlib"))
    files = [*folder.glob("*.py"), *folder.glob("[a-e]*/*.py"), *folder.glob("json/*.py")]
    return sorted(path for path in files if 0 < path.stat().st_size < 40_000 and "site-packages" not in path.parts)[::2]


@pytest.mark.parametrize("path", library()[:150], ids=lambda path: path.name)
def test_no_python_makes_it_crash(path: Path) -> None:
    text = "import torch\nmodel.cuda()\n" + path.read_text(encoding="utf-8", errors="replace")
    if not compiles(text, path):
        pytest.skip("not for this Python")
    source = from_text(ROOT / path.name, text)
    assert not analyse([source], Settings(root=ROOT)).crashes
    relint(source)
