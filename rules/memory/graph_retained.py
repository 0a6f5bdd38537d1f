from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Finding, Severity
from gpulint.fixes import detach_kept
from gpulint.model import Model
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A tensor that is kept over steps keeps its graph.

    `total += loss`, `losses.append(loss)` or a meter that is given the loss hold on to the autograd graph of every
    step. After `backward()` the graph's nodes stay, one chain longer on each step; in a forward-only loop all
    activations stay too. Keep `loss.detach()`.

    See <https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory>.

    ## When it stays silent

    For detached values and `.item()`, for what is reset on each step, and where the accumulated value reaches
    `backward()` by any path that can be seen (gradient accumulation, returns of an episode).

    ## Fix safety

    Safe: what is only logged has the same value without its graph.
    """
    for kept in model.kept_graphs():
        yield Finding(
            model.span(kept.node),
            f"`{model.short(kept.value)}` is kept over steps together with its autograd graph",
            kept.confidence,
            (
                *model.evidence_of_step(kept.step),
                model.evidence_at(kept.site.node, "it is kept here", kept.site.module),
            ),
            detach_kept(model, kept),
        )


BEFORE = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total / len(loader)
"""
AFTER = BEFORE.replace("total += loss", "total += loss.detach()")

RULE = Rule(
    code="GPU302",
    name="graph-retained",
    group="memory",
    since="0.1",
    severity=Severity.MEMORY,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.GROWTH),
    fixable="sometimes",
)
