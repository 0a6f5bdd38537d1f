from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import create_on_device
from gpulint.model import Model
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A tensor is made on the host and moved to the GPU on every step.

    `torch.zeros(n).to(device)` fills host memory, copies it over the bus and frees it;
    `torch.zeros(n, device=device)` fills device memory and copies nothing.

    See <https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html>, "Create tensors directly on the
    target device".

    ## When it stays silent

    At set-up, under a guard, for host data that must be copied anyway (`torch.from_numpy(batch)`), and for random
    numbers in a file that seeds the CPU's generator (`possible`).

    ## Fix safety

    Safe for constants. Unsafe for random numbers: the device's generator draws others for the same seed.
    """
    for group in model.sites_of_allocation():
        for site in group:
            moved = model.moved_after(site)
            step = model.step(site)
            if moved is None or step is None or not model.gpu:
                continue
            confidence = Confidence.CERTAIN if model.nested(site, step) or step.loop is not None else Confidence.LIKELY
            if model.is_random(site) and model.seeds_host():
                confidence = Confidence.POSSIBLE
            node, module = moved
            yield Finding(
                model.span(site.node),
                f"`{model.short(site.node)}` is made on the host and copied to the GPU on each {step.phase.value} step",
                confidence,
                (
                    *model.evidence_of_step(step),
                    model.evidence_at(node, "it is moved to the GPU here", module),
                ),
                create_on_device(model, site, node if module.path == model.path else site.node),
            )
            break


BEFORE = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    for x in loader:
        x = x.cuda(non_blocking=True)
        target = torch.ones(len(x), 1).cuda()
        loss = criterion(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
AFTER = BEFORE.replace("torch.ones(len(x), 1).cuda()", 'torch.ones(len(x), 1, device="cuda")')

RULE = Rule(
    code="GPU204",
    name="host-alloc-then-move",
    group="transfer",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.COPIES_TO_DEVICE),
    fixable="sometimes",
)
