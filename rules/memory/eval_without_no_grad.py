from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Finding, Severity
from gpulint.fixes import switch_grad_off
from gpulint.model import Model
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """Evaluation records a graph that nobody uses.

    Without `torch.no_grad()` or `torch.inference_mode()` a forward pass keeps every activation for a backward
    pass that never comes. `model.eval()` switches dropout and batch norm and leaves autograd on.

    See <https://docs.pytorch.org/docs/stable/notes/autograd.html#locally-disabling-gradient-computation>.

    ## When it stays silent

    Under `no_grad`, `inference_mode` or `set_grad_enabled` around the call, in a decorator, or in every caller that
    can be seen; in hooks that a framework runs without gradients; and where gradients are used (attacks, saliency).

    ## Fix safety

    Safe when nothing in the function uses gradients: results are the same.
    """
    for site, confidence, info in model.evaluations_with_gradients():
        name = info.qualname if info is not None else "this script"
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` records a graph for a backward pass that never comes: "
            f"`{name}` evaluates without `torch.no_grad()`",
            confidence,
            tuple(model.evidence_of_evaluation(site, info)),
            switch_grad_off(model, site, info),
        )


BEFORE = """\
import torch


def evaluate(model, loader):
    model.cuda().eval()
    hits = torch.zeros((), device="cuda")
    for x, y in loader:
        scores = model(x.cuda(non_blocking=True))
        hits += (scores.argmax(dim=1) == y.cuda(non_blocking=True)).sum()
    return hits.item() / len(loader.dataset)
"""
AFTER = BEFORE.replace("def evaluate", "@torch.no_grad()\ndef evaluate")

RULE = Rule(
    code="GPU301",
    name="eval-without-no-grad",
    group="memory",
    since="0.1",
    severity=Severity.MEMORY,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.PEAK_MEMORY),
    fixable="sometimes",
)
