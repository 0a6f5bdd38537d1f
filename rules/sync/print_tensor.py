from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import log_rarely
from gpulint.model import Device, Kind, Model, Site, SiteKind, Step
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A GPU tensor is printed or logged on every step.

    `print`, f-strings, `%`, `format`, `logging`, `set_postfix`, `add_scalar` and `wandb.log` turn a tensor into
    text or a number: the host waits for the device and copies the value. f-strings and logging arguments are
    evaluated whether or not the level is on. Log every N steps, from an accumulator on the device.

    See <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>, "Avoid unnecessary CPU-GPU
    synchronization".

    ## When it stays silent

    Under a guard, after the loop, and for arguments that are on the host already (`loss.item()` is GPU101).

    ## Fix safety

    No automatic fix: how often to log is yours to say.
    """
    statements: set[ast.AST | None] = set()
    for confidence, site, step in model.every_step(model.sites(SiteKind.FORMAT), partial(_judge, model)):
        statement = model.statement(site.node)
        if statement in statements:
            continue  # one print is one cause
        statements.add(statement)
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` is a GPU tensor that is formatted on every {step.phase.value} step",
            confidence,
            (*model.evidence_of_step(step), model.evidence_of_value(site.node, site.receiver)),
            log_rarely(model, site, step),
        )


def _judge(model: Model, site: Site, step: Step) -> Confidence | None:
    value = site.receiver
    if not value.is_tensor or value.device is Device.HOST:
        return None
    if value.opaque or value.kind is Kind.UNKNOWN:
        return Confidence.POSSIBLE
    return model.confidence(value)


BEFORE = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(step, loss)
"""
AFTER = BEFORE.replace("        print(step, loss)", "        if step % 100 == 0:\n            print(step, loss)")

RULE = Rule(
    code="GPU104",
    name="print-tensor",
    group="sync",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.SYNCS),
)
