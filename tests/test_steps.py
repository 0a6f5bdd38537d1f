"""What runs on every step: step loops, step functions, guards, callers, other files."""

from __future__ import annotations

import pytest
from harness import check, project, settings

HEAD = """
import torch
import torch.nn.functional as F
"""
LOOP = (
    HEAD
    + """
def train(model, loader, optimizer, args, rank, verbose):
    model.cuda()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {}
"""
)
RARE = [
    "if step % 100 == 0:",
    "if not step % args.every:",
    "if (step + 1) % args.every == 0:",
    "if step == 0:",
    "if step in {1, 10, 100}:",
    "if rank == 0 and step % 50 == 0:",
    "if step % args.every == 0 or step == len(loader) - 1:",
]
OFTEN = [
    "if rank == 0:",
    "if verbose:",
    "if args.log:",
    "if step % 1 == 0:",
    "if step < 10:",
    "if step % 100:",
    "if args.mode == 'train':",
]


@pytest.mark.parametrize("test", RARE)
def test_a_guard_silences(test: str) -> None:
    check(LOOP.format(f"{test}\n            print(loss.item())"), "GPU101")


@pytest.mark.parametrize("test", OFTEN)
def test_what_holds_often_is_no_guard(test: str) -> None:
    check(LOOP.format(f"{test}\n            print(loss.item())  # expect: GPU101"), "GPU101")


def test_a_guard_does_not_cover_its_own_condition() -> None:
    check(LOOP.format("if torch.isnan(loss):  # expect: GPU103\n            break"), "GPU103")
    check(LOOP.format("if step % 10 == 0 and torch.isnan(loss):\n            break"), "GPU103")


def test_a_guard_around_the_step_itself_is_none() -> None:
    check(
        HEAD
        + """
def train(model, loader, optimizer):
    model.cuda()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        if (step + 1) % 4 == 0:
            optimizer.step()
            print(loss.item())  # expect: GPU101
""",
        "GPU101",
    )


def test_continue_makes_the_rest_rare() -> None:
    check(LOOP.format("if step % 100:\n            continue\n        print(loss.item())"), "GPU101")


def test_once_an_epoch_is_no_step_and_a_full_batch_epoch_is_one() -> None:
    check(
        HEAD
        + """
def train(model, loader, optimizer, x, y):
    model.cuda()
    for epoch in range(10):
        for a, b in loader:
            loss = F.cross_entropy(model(a.cuda()), b.cuda())
            loss.backward()
            optimizer.step()
        print(loss.item())
    for epoch in range(10):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        print(loss.item())  # expect: GPU101
""",
        "GPU101",
    )


def test_a_helper_in_another_file_runs_on_every_step() -> None:
    check(
        {
            "main.py": HEAD
            + """
from utils.metrics import accuracy

def train(model, loader, optimizer):
    model.cuda()
    for x, y in loader:
        out = model(x.cuda())
        F.cross_entropy(out, y.cuda()).backward()
        optimizer.step()
        accuracy(out, y.cuda())
""",
            "utils/__init__.py": "",
            "utils/metrics.py": """
def accuracy(out, y):
    return (out.argmax(1) == y).float().mean().item()  # expect: GPU101
""",
        },
        "GPU101",
    )


def test_a_re_export_and_a_relative_import_are_followed() -> None:
    check(
        {
            "pkg/__init__.py": "from .inner import read",
            "pkg/inner/__init__.py": "from .deep import read",
            "pkg/inner/deep.py": "def read(t):\n    return t.item()  # expect: GPU101\n",
            "main.py": HEAD + "import pkg\n" + LOOP.removeprefix(HEAD).format("pkg.read(loss)"),
        },
        "GPU101",
    )


EVALUATE = """
import torch

def evaluate(model, loader):
    model.eval()
    total = torch.zeros((), device="cuda")
    for x in loader:
        total += model(x.cuda()).sum(){}
    return total
"""
CALL = """
from engine import evaluate

def main(model, loader):
    model.cuda()
    {}
"""


def test_no_grad_in_every_caller_counts() -> None:
    guarded = "import torch\n" + CALL.format("with torch.no_grad():\n        print(evaluate(model, loader))")
    check({"engine.py": EVALUATE.format(""), "main.py": guarded}, "GPU301")
    without = CALL.format("print(evaluate(model, loader))")
    check({"engine.py": EVALUATE.format("  # expect: GPU301"), "main.py": without}, "GPU301")


def test_hooks_of_frameworks_run_on_every_step() -> None:
    check(
        """
import lightning as L
import torch.nn.functional as F

class Net(L.LightningModule):
    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        self.log("loss", loss.item())  # expect: GPU101
        return loss

    def on_train_epoch_end(self):
        print(self.total.item())
""",
        "GPU101",
    )


def test_step_functions_and_allowed_syncs_of_the_configuration() -> None:
    text = (
        HEAD
        + """
def handle(batch):
    return (batch.cuda() * 2).sum().item(){}
"""
    )
    check(text.format(""), "GPU101")
    check(text.format("  # expect: GPU101"), "GPU101", config=settings(step_functions=("handle",)))
    sync = LOOP.format("with torch.profiler.record_function('x'):\n            print(loss.item()){}")
    allowed = settings(allowed_sync=("torch.profiler.record_function",))
    check(sync.format("  # expect: GPU101"), "GPU101")
    check(sync.format(""), "GPU101", config=allowed)


def test_no_gpu_no_waiting() -> None:
    quiet = LOOP.replace(".cuda()", "")
    check(quiet.format("print(loss.item())"), "GPU101")
    check(quiet.format("print(loss.item())  # expect: GPU101"), "GPU101", config=settings(gpu="always"))


def test_a_file_that_does_not_parse_is_one_failure() -> None:
    with pytest.raises(AssertionError, match="cannot parse"):
        project({"broken.py": "def f(:\n", "fine.py": "x = 1\n"})


def test_a_predicate_that_is_rare_is_a_guard() -> None:
    check(
        HEAD
        + """
class Logger:
    def due(self, step):
        if step % self.every == 0:
            self.every *= 2
            return True
        return False

def train(model, loader, optimizer, logger: Logger, debug=False):
    model.cuda()
    for step, (x, y) in enumerate(loader):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        if logger.due(step):
            print(loss.item())
        if debug is True:
            print(loss.item())
        if debug is False:
            print(loss.item())  # expect: GPU101
""",
        "GPU101",
    )


def test_a_step_function_named_with_its_class() -> None:
    check(
        HEAD
        + """
class Job:
    def work(self, batch):
        return batch.cuda().sum().item()  # expect: GPU101

class Other:
    def work(self, batch):
        return batch.cuda().sum().item()
""",
        "GPU101",
        config=settings(step_functions=("Job.work",)),
    )


def test_a_hook_in_a_file_that_never_names_torch() -> None:
    check(
        {
            "base.py": HEAD
            + """
import lightning as L

class Base(L.LightningModule):
    def common(self, batch):
        return self.net(batch.cuda()).sum().item()  # expect: GPU101
""",
            "child.py": """
from base import Base

class Child(Base):
    def training_step(self, batch, batch_idx):
        print(batch.cuda().sum().item())  # expect: GPU101
        return self.common(batch)
""",
        },
        "GPU101",
    )
