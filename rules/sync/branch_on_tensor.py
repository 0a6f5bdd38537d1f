from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import check_rarely
from gpulint.model import Device, Kind, Model, Site, SiteKind, Step
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A branch needs the value of a GPU tensor on every step.

    `if`, `while`, `assert`, `and`, `or`, `not`, `min`, `max` and `sorted` ask a tensor for its truth, and
    `torch.equal` and `torch.allclose` return a Python bool: the host waits for the device to know it. Decide
    on the device (`torch.where`), assert there (`torch._assert_async`), or check every hundredth step.

    See <https://docs.pytorch.org/docs/stable/generated/torch.where.html>.

    ## When it stays silent

    Under a guard, and for what the host knows without the device: shapes, dtypes, `is None`, lengths. A rare
    body does not make its condition rare: `if torch.isnan(loss): break` reads the loss on every step.

    ## Fix safety

    No automatic fix: which of the three remedies is right depends on what the branch is for.
    """
    for confidence, site, step in model.every_step(model.sites(SiteKind.TEST), partial(_judge, model)):
        yield Finding(
            model.span(site.node),
            f"the truth of `{model.short(site.node)}` makes the host wait for the GPU on every {step.phase.value} step",
            confidence,
            (*model.evidence_of_step(step), model.evidence_of_value(site.node, site.receiver)),
            check_rarely(model, site, step),
        )


def _judge(model: Model, site: Site, step: Step) -> Confidence | None:
    value = site.receiver
    if not value.is_tensor or value.device is Device.HOST:
        return None
    generates = step.loop is not None and not step.training and step.loop.evaluation is None
    if value.opaque or value.kind is Kind.UNKNOWN or generates:
        return Confidence.POSSIBLE
    return model.confidence(value)


BEFORE = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = criterion(model(x), y)
        if torch.isnan(loss):
            raise FloatingPointError(f"loss is NaN at step {step}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
AFTER = BEFORE.replace("if torch.isnan(loss):", "if step % 100 == 0 and torch.isnan(loss):")

RULE = Rule(
    code="GPU103",
    name="branch-on-tensor",
    group="sync",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.SYNCS),
)
