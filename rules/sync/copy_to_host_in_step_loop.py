from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import copy_later
from gpulint.model import Device, Kind, Model, Site, Step
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A GPU tensor is copied to the host on every step.

    `.cpu()`, `.to("cpu")` and `.numpy()` copy to pageable host memory: the host waits until the device has
    finished all queued work and then for the copy. Collect on the device and copy once after the loop, or
    reduce (`argmax`, a mean) before the copy.

    See <https://docs.pytorch.org/docs/stable/notes/cuda.html>, "Asynchronous execution".

    ## When it stays silent

    Under a guard, after the loop, for what is on the host already, and for `non_blocking=True`. A result that
    a host library must have within the step (SciPy, an environment) is `possible`.

    ## Fix safety

    The fix is unsafe: the results stay on the device until the loop ends.
    """
    for confidence, site, step in model.every_step(model.calls("cpu", "to", "numpy", "type"), partial(_judge, model)):
        if model.fetched_before(site):
            continue
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` copies a GPU tensor to the host on every {step.phase.value} step, "
            "and the host waits for it",
            confidence,
            (*model.evidence_of_step(step), model.evidence_of_value(model.read_node(site), site.receiver)),
            copy_later(model, site, step),
        )


def _judge(model: Model, site: Site, step: Step) -> Confidence | None:
    value = site.receiver
    if not value.is_tensor or value.device is Device.HOST or "non_blocking" in site.keywords:
        return None
    if site.name in ("to", "type") and "cpu" not in model.text(site.node).rpartition(f".{site.name}(")[2].lower():
        return None  # a device that only may be the host
    if site.result.device is not Device.HOST and not (site.name == "numpy" and value.on_gpu):
        return None
    if value.kind is Kind.UNKNOWN or model.cannot_wait(site, step):
        return Confidence.POSSIBLE
    return model.confidence(value)


BEFORE = """\
import torch


@torch.no_grad()
def predict(model, loader):
    model.cuda().eval()
    labels = []
    for x in loader:
        logits = model(x.cuda(non_blocking=True))
        labels.append(logits.argmax(dim=1).cpu())
    return torch.cat(labels)
"""
AFTER = BEFORE.replace(".argmax(dim=1).cpu()", ".argmax(dim=1)").replace("torch.cat(labels)", "torch.cat(labels).cpu()")

RULE = Rule(
    code="GPU102",
    name="copy-to-host-in-step-loop",
    group="sync",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.COPIES_TO_HOST),
    fixable="sometimes",
)
