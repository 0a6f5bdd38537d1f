from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Finding, Severity
from gpulint.fixes import flush_blocks
from gpulint.model import Model
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A model's outputs pile up on the GPU.

    Outputs that are collected on every step and used on the host afterwards fill device memory with the whole
    data set's results. Reduce on the fly, or move a block to the host every N steps.

    See <https://docs.pytorch.org/docs/stable/notes/faq.html>, "My model reports cuda runtime error(2): out of memory".

    ## When it stays silent

    For small results (losses, labels, counts), for bounded containers and lists flushed at a bound, and for what is
    reduced on the device.

    ## Fix safety

    No automatic fix: how many steps to keep is a choice between memory and waiting.
    """
    for kept in model.kept_outputs():
        yield Finding(
            model.span(kept.node),
            f"`{model.short(kept.value)}` is collected on the GPU on every step, without a bound, for use on the host",
            kept.confidence,
            tuple(model.evidence_of_step(kept.step)),
            flush_blocks(model, kept),
        )


BEFORE = """\
import torch


@torch.no_grad()
def predict(model, loader):
    model.cuda().eval()
    outputs = []
    for x in loader:
        outputs.append(model(x.cuda(non_blocking=True)))
    return torch.cat(outputs).cpu().numpy()
"""
AFTER = """\
import torch


@torch.no_grad()
def predict(model, loader):
    model.cuda().eval()
    outputs, block = [], []
    for step, x in enumerate(loader, start=1):
        block.append(model(x.cuda(non_blocking=True)))
        if step % 64 == 0:
            outputs.append(torch.cat(block).cpu())
            block = []
    if block:
        outputs.append(torch.cat(block).cpu())
    return torch.cat(outputs).numpy()
"""

RULE = Rule(
    code="GPU303",
    name="outputs-accumulated",
    group="memory",
    since="0.1",
    severity=Severity.MEMORY,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.GROWTH),
)
