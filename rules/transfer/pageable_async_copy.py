from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import pin_source
from gpulint.model import Device, Model, Pin, Site, Step
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """An asynchronous copy starts from pageable memory.

    `non_blocking=True` can only overlap when the host memory is page-locked. From `torch.from_numpy(x)`,
    `torch.zeros(n)` or `torch.tensor(xs)` the driver stages the copy first, so the hint is dropped and the copy
    stalls the stream. Allocate the source pinned, once, outside the loop.

    See <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>.

    ## When it stays silent

    When the source is pinned (`pin_memory=True`, a pinned loader), its memory cannot be known, at set-up, and for
    batches of a loader (GPU201 reports the loader).

    ## Fix safety

    No automatic fix: `.pin_memory()` written before the copy can be slower than nothing.
    """
    for confidence, site, step in model.every_step(model.calls("to", "cuda", "copy_"), partial(_judge, model)):
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` copies from pageable memory: `non_blocking=True` has no effect",
            confidence,
            tuple(model.evidence_of_step(step)),
            pin_source(model, site),
        )


def _judge(model: Model, site: Site, step: Step) -> Confidence | None:
    if "non_blocking" not in site.keywords or site.keywords["non_blocking"].const is not True or not model.gpu:
        return None
    source, target = (
        (site.args[0], site.receiver) if site.name == "copy_" and site.args else (site.receiver, site.result)
    )
    if not source.is_tensor or source.device is not Device.HOST or not target.on_gpu:
        return None
    if source.pinned is not Pin.PAGEABLE or isinstance(source.ref, frozenset):
        return None
    if any(mark.kind == "alloc" and model.allocated_in_step(mark) for mark in source.marks):
        return None  # made on the host for nothing: GPU204 names the cause
    return model.confidence(target)


BEFORE = """\
import torch


def train(model, arrays, criterion, optimizer):
    model.cuda()
    for array, label in arrays:
        x = torch.from_numpy(array).to("cuda", non_blocking=True)
        loss = criterion(model(x), label.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
AFTER = BEFORE.replace(
    "    for array, label in arrays:\n",
    "    buffer = torch.empty(64, 3, 32, 32, pin_memory=True)\n    for array, label in arrays:\n",
).replace("torch.from_numpy(array).to", "buffer.copy_(torch.from_numpy(array)).to")

RULE = Rule(
    code="GPU210",
    name="pageable-async-copy",
    group="transfer",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.PAGEABLE_COPIES),
)
