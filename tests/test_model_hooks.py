"""What a framework, or the configuration, calls once per step, and what it lets wait."""

from __future__ import annotations

import pytest
from harness import check_steps, settings

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
"""
SYNC_ALLOWED = """
import contextlib

@contextlib.contextmanager
def sync_allowed(why=""):
    yield
"""
STEP = "optimizer.zero_grad(); loss.backward(); optimizer.step()"


def test_lightning_hooks() -> None:
    check_steps(
        HEAD
        + """
import pytorch_lightning as pl

class Net(pl.LightningModule):
    def forward(self, x):
        probe()  # step: training
        return self.net(x).sum().item()

    def training_step(self, batch, batch_idx):
        self.helper(batch)
        probe()  # step: training
        return self.net(batch).sum().item()

    def validation_step(self, batch, batch_idx):
        probe()  # step: evaluation
        return self.net(batch).sum().item()

    def on_train_batch_end(self, outputs, batch, batch_idx):
        probe()  # step: training
        print(outputs["loss"].item())

    def on_train_epoch_end(self):
        probe()  # step: none
        print(self.total.item())

    def configure_optimizers(self):
        probe()  # step: none
        return torch.optim.SGD(self.parameters(), lr=float(self.lr))

    def helper(self, batch):
        probe()  # step: training
        return batch.sum().item()

class Watch(pl.Callback):
    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        probe()  # step: training
        print(outputs["loss"].item())

    def on_fit_start(self, trainer, pl_module):
        probe()  # step: none
        print(pl_module.loss.item())
"""
    )


def test_hooks_of_trainers_and_engines() -> None:
    check_steps(
        HEAD
        + """
from ignite.engine import Engine
from transformers import Trainer

class Mine(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        probe()  # step: training
        return model(**inputs).loss.item()

    def prediction_step(self, model, inputs, prediction_loss_only):
        probe()  # step: evaluation
        return model(**inputs).loss.item()

    def create_optimizer(self):
        probe()  # step: none
        return float(self.loss)

def process(engine, batch):
    probe()  # step: training
    return model(batch.cuda()).sum().item()

model = nn.Linear(2, 2).cuda()
trainer = Engine(process)
"""
    )


def test_a_base_class_of_the_project_passes_its_hooks_on() -> None:
    check_steps(
        {
            "base.py": HEAD
            + """
import lightning as L

class Base(L.LightningModule):
    def common(self, batch):
        probe()  # step: training
        return self.net(batch).sum().item()
""",
            "child.py": """
from base import Base

class Child(Base):
    def training_step(self, batch, batch_idx):
        print(batch.sum().item())
        return self.common(batch)
""",
        }
    )


def test_step_functions_of_the_configuration() -> None:
    text = (
        HEAD
        + """
class Job:
    def work(self, batch):
        probe()  # step: {}
        return batch.cuda().sum().item()

def handle(batch):
    probe()  # step: {}
    return batch.cuda().sum().item()
"""
    )
    check_steps(text.format("none", "none"))
    check_steps(text.format("none", "training"), settings(step_functions=("handle",)))
    check_steps(text.format("training", "none"), settings(step_functions=("work",)))


def test_a_step_function_named_with_its_class() -> None:
    check_steps(
        HEAD
        + """
class Job:
    def work(self, batch):
        probe()  # step: training
        return batch.cuda().sum().item()
""",
        settings(step_functions=("Job.work",)),
    )


def test_a_function_that_takes_a_whole_step_runs_once_per_step() -> None:
    check_steps(
        HEAD
        + f"""
class Agent:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model.cuda(), optimizer

    def update(self, x):
        probe()  # step: training
        optimizer = self.optimizer
        loss = self.model(x).sum()
        {STEP}
        return loss.item()
"""
    )


@pytest.mark.parametrize(
    "files", [{}, {"mylib/__init__.py": "", "mylib/utils.py": SYNC_ALLOWED}], ids=["outside", "inside"]
)
def test_what_may_synchronise(files: dict[str, str]) -> None:
    """A context or decorator that the configuration names, of another package or of the project."""
    text = (
        HEAD
        + f"""
from mylib.utils import sync_allowed

@sync_allowed
def report(loss):
    print(loss.item())
    probe()  # step: [ALLOWED]

@sync_allowed("why")
def explain(loss):
    print(loss.item())
    probe()  # step: [ALLOWED]

def train(model, loader, optimizer):
    model.cuda()
    for x in loader:
        loss = model(x.cuda()).mean()
        {STEP}
        report(loss)
        explain(loss)
        with sync_allowed():
            probe()  # step: [ALLOWED]
        probe()  # step: training
"""
    )
    check_steps({"main.py": text.replace("[ALLOWED]", "training"), **files})
    allowed = settings(allowed_sync=("mylib.utils.sync_allowed",))
    check_steps({"main.py": text.replace("[ALLOWED]", "none"), **files}, allowed)
