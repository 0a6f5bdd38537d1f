from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import load_in_workers
from gpulint.model import Model
from gpulint.rule import Example, Replay, Rule, Saves


def check(model: Model) -> Iterator[Finding]:
    """A loader reads and decodes in the training process.

    With `num_workers` absent or 0, items are read, decoded and transformed between two steps, while the GPU
    waits. Workers do it in other processes, ahead of time.

    See <https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading>.

    ## When it stays silent

    For datasets in memory (`TensorDataset`), on the GPU, or whose items are only computed; when the dataset's
    class cannot be seen; and in programs without a GPU.

    ## Fix safety

    Unsafe: workers are processes, so the dataset must pickle, and random numbers are drawn per worker.
    """
    for loader in model.loaders:
        if not model.gpu or loader.foreign or not loader.complete or model.yields_gpu(loader):
            continue
        workers = loader.options.get("num_workers")
        if (workers is not None and workers.const != 0) or not model.reads_items(loader):
            continue
        step = model.step_over(loader)
        if step is None and not loader.moved and not model.serves_framework(loader):
            continue
        evidence = (
            [model.evidence_at(step.node, "a step loop draws its batches here", step.module)]
            if step is not None
            else []
        )
        yield Finding(
            model.span(loader.node),
            "this loader reads and transforms its items in the training process: `num_workers` is 0",
            Confidence.LIKELY,
            tuple(evidence),
            load_in_workers(model, loader),
        )


BEFORE = """\
import torch
from torch.utils.data import DataLoader
from torchvision import datasets, transforms


def train(model, criterion, optimizer):
    model.cuda()
    dataset = datasets.ImageFolder("data", transforms.ToTensor())
    loader = DataLoader(dataset, batch_size=64, pin_memory=True)
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
AFTER = BEFORE.replace("pin_memory=True", "pin_memory=True, num_workers=4")

RULE = Rule(
    code="GPU202",
    name="loader-workers",
    group="transfer",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.WAIT),
    fixable="sometimes",
)
