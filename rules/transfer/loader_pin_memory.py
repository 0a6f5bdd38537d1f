from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import pin_batches
from gpulint.model import Model, Pin
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A loader hands pageable batches to the GPU.

    Without `pin_memory=True` a batch lies in pageable memory: its copy to the device goes through a staging
    buffer and cannot run beside the computation. A pinned batch with `non_blocking=True` can.

    See <https://docs.pytorch.org/docs/stable/data.html#memory-pinning>.

    ## When it stays silent

    When the batches are not seen to go to the GPU, the dataset already yields GPU tensors, a framework places
    the batches (Lightning, Hugging Face `Trainer`, Accelerate), or the option comes from where it cannot be seen.

    ## Fix safety

    Safe: the values are the same.
    """
    for loader in model.loaders:
        if not model.gpu or loader.pinned is not Pin.PAGEABLE or loader.foreign or loader.prepared:
            continue
        if not loader.moved or not loader.complete or model.yields_gpu(loader):
            continue
        node, sure, module = loader.moved[0]
        yield Finding(
            model.span(loader.node),
            "the batches of this loader are copied to the GPU from pageable memory: no `pin_memory=True`",
            Confidence.CERTAIN if sure else Confidence.LIKELY,
            (model.evidence_at(node, "a batch is copied to the GPU here", module),),
            pin_batches(model, loader),
        )


BEFORE = """\
import torch
from torch.utils.data import DataLoader


def train(model, dataset, criterion, optimizer):
    model.cuda()
    loader = DataLoader(dataset, batch_size=64, num_workers=4)
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
AFTER = BEFORE.replace("num_workers=4", "num_workers=4, pin_memory=True")

RULE = Rule(
    code="GPU201",
    name="loader-pin-memory",
    group="transfer",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.PAGEABLE_COPIES),
    fixable="sometimes",
)
