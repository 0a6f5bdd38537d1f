from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import read_later
from gpulint.model import Device, Kind, Model, Site, Step
from gpulint.rule import Example, Replay, Rule, Saves

_METHODS = ("item", "tolist")
_CONVERSIONS = tuple(f"builtins.{name}" for name in ("float", "int", "bool")) + tuple(
    f"math.{name}" for name in ("sqrt", "exp", "log", "log2", "log10", "isnan", "isinf", "isfinite")
)


def check(model: Model) -> Iterator[Finding]:
    """A GPU value is read on the host on every step.

    `.item()`, `.tolist()`, `float(t)`, `int(t)` and `bool(t)` on a GPU tensor make the host wait until the
    device has finished all queued work, and the device then waits for the host to queue more. Once per step,
    that undoes the overlap on which GPU training lives. Accumulate on the device and read once after the loop.

    See <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>, "Avoid unnecessary CPU-GPU
    synchronization".

    ## When it stays silent

    Under a guard (`if step % n == 0`), after the loop, once per epoch, for values that are on the host, and
    in programs without a GPU. What the host must have within the step (an action for an environment, the
    token that ends a generation) is `possible` and shown only on request.

    ## Fix safety

    The fix is unsafe: the value is read once after the loop, so logging within the loop moves there.
    """
    for confidence, site, step in model.every_step(model.calls(*_METHODS, *_CONVERSIONS), partial(_judge, model)):
        if model.fetched_before(site):
            continue
        value = model.read_value(site)
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` makes the host wait for the GPU on every {step.phase.value} step",
            confidence,
            (*model.evidence_of_step(step), model.evidence_of_value(model.read_node(site), value)),
            read_later(model, site, step),
        )


def _judge(model: Model, site: Site, step: Step) -> Confidence | None:
    value = model.read_value(site)
    if not value.is_tensor or value.device is Device.HOST or model.over_parameters(site):
        return None
    small_result = site.name == "tolist" and not step.training and not model.nested(site, step)
    if value.kind is Kind.UNKNOWN or small_result or model.cannot_wait(site, step):
        return Confidence.POSSIBLE
    return model.confidence(value)


BEFORE = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    total = 0.0
    for x, y in loader:
        x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)
"""
AFTER = BEFORE.replace("total += loss.item()", "total += loss.detach()").replace(
    "return total / len(loader)", "total = float(total)\n    return total / len(loader)"
)

RULE = Rule(
    code="GPU101",
    name="item-in-step-loop",
    group="sync",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.SYNCS),
    fixable="sometimes",
)
