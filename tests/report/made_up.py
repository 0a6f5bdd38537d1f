"""Two tiny files, findings of every sort in them, and the rules that these findings could come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.finding import (
    Applicability,
    Checked,
    Confidence,
    Edit,
    Evidence,
    Finding,
    Fix,
    ParseFailed,
    RuleCrashed,
    Severity,
    Span,
)
from gpulint.report import Report
from gpulint.rule import Example, Rule
from gpulint.source import Source, from_text

if TYPE_CHECKING:
    from gpulint.model import Model

ROOT = Path("/project")
TRAIN = ROOT / "train.py"
DATA = ROOT / "src" / "data set.py"

TRAIN_TEXT = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def timed(model, x):
\tstart = time.time(); model(x)
\tprint("Größe 大きさ", time.time() - start, {"shape": tuple(x.shape), "device": str(x.device)})
"""
DATA_TEXT = """\
from torch.utils.data import DataLoader


def loaders(dataset, args):
    return DataLoader(
        dataset,
        batch_size=args.batch_size,
        shuffle=True,
    )
"""


def waits(model: Model) -> Iterator[Finding]:
    """The host waits for the GPU on every step.

    `.item()` waits until the device has finished
    all queued work.

    See <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>.

    ## Fix safety

    Unsafe: logging moves.
    """
    yield from ()


def pageable(model: Model) -> Iterator[Finding]:
    """A loader without pinned memory."""
    yield from ()


def clock(model: Model) -> Iterator[Finding]:
    """A time that is read before the GPU is done."""
    yield from ()


_EXAMPLE = Example("slow = 1\n", "fast = 1\n")
RULES = (
    Rule("GPU201", "loader-pin-memory", "transfer", "0.1", Severity.SLOW, pageable, _EXAMPLE),
    Rule("GPU101", "item-in-step-loop", "sync", "0.1", Severity.SLOW, waits, _EXAMPLE),
    Rule("GPU108", "timing-without-sync", "sync", "0.1", Severity.WRONG, clock, _EXAMPLE),
)


def span(text: str, part: str) -> Span:
    start = text.index(part)
    return Span(start, start + len(part))


def edit(text: str, part: str, new: str) -> Edit:
    where = span(text, part)
    return Edit(where.start, where.end, new)


ITEM = Finding(
    span(TRAIN_TEXT, "loss.item()"),
    "`loss.item()` makes the host wait for the GPU on every training step",
    Confidence.CERTAIN,
    (
        Evidence(TRAIN, 7, 5, "this loop is a training step loop: `loss.backward()` at 9 and its step at 10"),
        Evidence(TRAIN, 8, 16, "`loss` is `criterion(...)`: on the GPU, attached to the graph"),
        Evidence(DATA, 5, 12, "its batches come from here"),
    ),
    Fix(
        "Accumulate on the device and read once after the loop",
        Applicability.UNSAFE,
        (
            edit(TRAIN_TEXT, "loss.item()", "loss.detach()"),
            edit(
                TRAIN_TEXT,
                "return total / len(loader)",
                "total = float(total)\n    return total / len(loader)",
            ),
        ),
    ),
    "GPU101",
    TRAIN,
)
CLOCK = Finding(
    span(TRAIN_TEXT, '{"shape": tuple(x.shape), "device": str(x.device)}'),
    "the clock is read while the GPU still works: 100% of {the time}, perhaps",
    Confidence.POSSIBLE,
    (),
    Fix(
        "Wait for the device before reading the clock",
        Applicability.MANUAL,
        sketch="torch.cuda.synchronize()\nelapsed = time.time() - start\n",
    ),
    "GPU108",
    TRAIN,
)
PINNED = Finding(
    span(DATA_TEXT, DATA_TEXT[DATA_TEXT.index("DataLoader(\n") : -1]),
    "the batches of this loader are copied to the GPU from pageable memory: no `pin_memory=True`",
    Confidence.LIKELY,
    (Evidence(TRAIN, 8, 32, "a batch is copied to the GPU here"),),
    Fix(
        "Pin the loader's batches",
        Applicability.SAFE,
        (edit(DATA_TEXT, "shuffle=True,\n", "shuffle=True,\n        pin_memory=True,\n"),),
    ),
    "GPU201",
    DATA,
)
UNKNOWN = Finding(Span(0, 12), "of a rule that did not run", Confidence.CERTAIN, code="GPU999", path=TRAIN)

SOURCES: dict[Path, Source] = {TRAIN: from_text(TRAIN, TRAIN_TEXT), DATA: from_text(DATA, DATA_TEXT)}
REPORT = Report(
    results=(
        Checked(TRAIN, (ITEM, CLOCK, UNKNOWN)),
        RuleCrashed(
            DATA,
            "GPU101",
            "KeyError: 'x'",
            "Traceback (most recent call last):\n  …\nKeyError: 'x'\n",
            (PINNED,),
        ),
        ParseFailed(ROOT / "broken.py", 3, 7, "'(' was never closed"),
        Checked(ROOT / "clean.py", ()),
    ),
    sources=SOURCES,
    rules=RULES,
    statistics={"loop rounds": 18, "seconds: analysis": 0.038},
    elapsed=0.4249,
    root=ROOT,
)
CLEAN = Report((Checked(TRAIN, ()),), SOURCES, RULES, root=ROOT)


def alone(finding: Finding, text: str) -> Report:
    """A report of one finding in one file, ``x.py``."""
    path = Path("x.py")
    result = Checked(path, (replace(finding, path=path),))
    return Report((result,), {path: from_text(path, text)}, RULES)
