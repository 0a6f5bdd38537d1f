"""Programs before and after their fixes, each through the real analysis."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import harness
from harness import relint

from gpulint.finding import Finding
from gpulint.fix import MAX_ROUNDS
from gpulint.source import from_text

HEAD = """\
import torch
import torch.nn.functional as F


"""

TRAIN = (
    HEAD
    + """\
def train(model, loader, optimizer, device="cuda"):
    model.cuda()
{before}
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        out = model(x)
        loss = F.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{inside}
{after}
"""
)


def train(before: str = "", inside: str = "", after: str = "") -> str:
    """A training loop with lines before it, at the end of its body, and after it."""
    parts = {
        "before": indent(dedent(before).strip("\n"), "    "),
        "inside": indent(dedent(inside).strip("\n"), "        "),
        "after": indent(dedent(after).strip("\n"), "    "),
    }
    return "".join(line for line in TRAIN.format(**parts).splitlines(keepends=True) if line.strip() or line == "\n")


def fixed(text: str, *codes: str, unsafe: bool = True) -> str:
    """The text after all rounds of the fixes of these rules (of all rules without codes)."""
    source, _, rounds = harness.fixed(from_text(Path("/project/main.py"), text), *codes, unsafe=unsafe)
    assert rounds < MAX_ROUNDS
    return source.text


def findings(text: str, *codes: str) -> list[Finding]:
    found = relint(from_text(Path("/project/main.py"), text))
    return [f for f in found if not codes or f.code in codes]


def assert_fix(before: str, after: str, *codes: str) -> None:
    """The fixes of ``before`` are exactly ``after``, which no rule has a word on."""
    assert fixed(before, *codes) == after
    assert [f.code for f in findings(after)] == []


def assert_no_fix(text: str, code: str) -> None:
    """The finding is there, and no edit is offered for it."""
    found = findings(text, code)
    assert found
    assert all(f.fix is None or not f.fix.edits for f in found)
