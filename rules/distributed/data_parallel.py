from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Confidence, Finding, Severity
from gpulint.fixes import sketch_of_ddp
from gpulint.model import Model
from gpulint.rule import Example, Replay, Rule, Saves

_NAMES = (
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.data_parallel",
    "torch.nn.parallel.data_parallel.data_parallel",
)


def check(model: Model) -> Iterator[Finding]:
    """One process drives all GPUs.

    `DataParallel` copies the model to every GPU, scatters the batch and gathers the outputs on each step, from one
    Python process with one interpreter lock. `DistributedDataParallel` runs a process per GPU and exchanges
    gradients only.

    See <https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html>, which recommends the same.

    ## When it stays silent

    In programs that do not train, and where the class is only mentioned (`isinstance`, unwrapping `.module`).

    ## Fix safety

    No automatic fix: launching changes too. The finding shows the changes for the file.
    """
    for group in model.calls(*_NAMES):
        if not model.trains:
            continue
        site = group[0]
        yield Finding(
            model.span(site.node),
            f"`{model.short(site.node)}` copies the model and scatters the batch from one process on every step",
            Confidence.CERTAIN,
            (),
            sketch_of_ddp(model, site.node),
        )


BEFORE = """\
import torch
from torch import nn


def train(model, loader, criterion, optimizer):
    model = nn.DataParallel(model).cuda()
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
AFTER = """\
import os

import torch
from torch import nn


def train(model, loader, criterion, optimizer):
    torch.distributed.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = nn.parallel.DistributedDataParallel(model.cuda(rank), device_ids=[rank])
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

RULE = Rule(
    code="GPU401",
    name="data-parallel",
    group="distributed",
    since="0.1",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
    replay=Replay(Saves.SCATTER),
)
