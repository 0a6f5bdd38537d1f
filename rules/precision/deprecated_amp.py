from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import renew_amp
from gpulint.model import Model
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """Mixed precision by a deprecated name.

    `torch.cuda.amp.autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` are deprecated in favour of `torch.amp`,
    which names the device; Apex AMP is no longer maintained.

    See <https://docs.pytorch.org/docs/stable/amp.html>.

    ## When it stays silent

    In a shim: the old name in an `except ImportError` or behind a version check.

    ## Fix safety

    Safe: `torch.amp.autocast("cuda", ...)` is what the old name calls.
    """
    for node, name in model.deprecated_amp():
        yield Finding(
            model.span(node),
            f"`{name}` is deprecated: `torch.amp` has it, with the device as first argument"
            if not name.startswith("apex")
            else f"`{name}` is no longer maintained: use `torch.amp`",
            Confidence.CERTAIN,
            (),
            renew_amp(model, name),
        )


BEFORE = """\
import torch


def train(model, loader, criterion, optimizer):
    scaler = torch.cuda.amp.GradScaler()
    for x, y in loader:
        with torch.cuda.amp.autocast():
            loss = criterion(model(x), y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""
AFTER = BEFORE.replace("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler("cuda")').replace(
    "torch.cuda.amp.autocast()", 'torch.amp.autocast("cuda")'
)

RULE = Rule(
    code="GPU502",
    name="deprecated-amp",
    group="precision",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.WARNINGS),
    fixable="sometimes",
)
