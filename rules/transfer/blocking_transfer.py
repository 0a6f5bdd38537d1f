from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import copy_without_waiting
from gpulint.model import Model, Pin, Site, Step
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A pinned batch is copied to the GPU while the host waits.

    `.to(device)` and `.cuda()` block the host until the copy is done, even from pinned memory. With
    `non_blocking=True` the copy is queued and the host goes on to queue the step.

    See <https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html>.

    ## When it stays silent

    When the source is pageable, where the option gains nothing (GPU201 reports the loader and its fix adds
    both), when the target may be the host, and outside step loops.

    ## Fix safety

    Safe: work queued later on the device waits for the copy.
    """
    for confidence, site, step in model.every_step(model.calls("to", "cuda"), partial(_judge, model)):
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` copies from pinned memory and makes the host wait: no `non_blocking=True`",
            confidence,
            tuple(model.evidence_of_step(step)),
            copy_without_waiting(model, site.node),
        )


def _judge(model: Model, site: Site, step: Step) -> Confidence | None:
    value = site.receiver
    if not value.is_tensor or value.on_gpu or value.pinned is not Pin.PINNED or not site.result.on_gpu:
        return None
    given = "non_blocking" in site.keywords or len(site.args) > (1 if site.name == "cuda" else 2)
    return None if given or not model.gpu else model.confidence(site.result)


BEFORE = """\
import torch
from torch.utils.data import DataLoader


def train(model, dataset, criterion, optimizer):
    model.cuda()
    loader = DataLoader(dataset, batch_size=64, num_workers=4, pin_memory=True)
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
AFTER = BEFORE.replace(".cuda())", ".cuda(non_blocking=True))").replace("x.cuda(),", "x.cuda(non_blocking=True),")
AFTER = AFTER.replace("model(x.cuda())", "model(x.cuda(non_blocking=True))")

RULE = Rule(
    code="GPU203",
    name="blocking-transfer",
    group="transfer",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.BLOCKING_COPIES),
    fixable="sometimes",
)
