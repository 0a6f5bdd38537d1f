from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Confidence, Finding, Severity
from gpulint.model import Model, Pin, Site
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
    for group in model.calls("to", "cuda"):
        best: tuple[Confidence, Site] | None = None
        for site in group:
            value = site.receiver
            if not value.is_tensor or value.on_gpu or value.pinned is not Pin.PINNED or not site.result.on_gpu:
                continue
            if "non_blocking" in site.keywords or model.step(site) is None or not model.gpu:
                continue
            confidence = model.confidence(site.result)
            if best is None or confidence > best[0]:
                best = confidence, site
        if best is None:
            continue
        confidence, site = best
        step = model.step(site)
        assert step is not None
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` copies from pinned memory and still makes the host wait: no `non_blocking=True`",
            confidence,
            tuple(model.evidence_of_step(step)),
            model.fix_keyword(site.node, "non_blocking", "True", "Copy without waiting"),
        )


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
