"""Which code runs once per step, and of which phase: ``probe()  # step: training``."""

from __future__ import annotations

import pytest
from harness import check_steps, project

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
"""
STEP = "optimizer.zero_grad(); loss.backward(); optimizer.step()"


def test_a_loop_that_trains() -> None:
    check_steps(
        HEAD
        + f"""
def train(model, loader, optimizer, epochs):
    model.cuda()
    probe()  # step: none
    for epoch in range(epochs):
        probe()  # step: none
        for x, y in loader:
            probe()  # step: training
            loss = F.mse_loss(model(x.cuda()), y.cuda())
            {STEP}
            for part in x:
                probe()  # step: training
        probe()  # step: none
    probe()  # step: none
"""
    )


def test_a_loop_that_evaluates() -> None:
    check_steps(
        HEAD
        + """
@torch.no_grad()
def evaluate(model, loader):
    model.cuda().eval()
    for x, y in loader:
        probe()  # step: evaluation
        out = model(x.cuda())
        out.argmax(1).cpu()
    probe()  # step: none
"""
    )


def test_a_loop_over_a_loader_that_only_counts_is_none() -> None:
    check_steps(
        HEAD
        + """
def statistics(loader, model):
    model.cuda()
    total = 0
    for x, y in loader:
        probe()  # step: none
        total += x.mean().item()
    for name in sorted(["a", "b"]):
        probe()  # step: none
        print(name, total)
    for parameter in model.parameters():
        probe()  # step: none
        print(parameter.norm().item())
"""
    )


def test_a_loop_inside_a_forward_pass_is_part_of_the_step() -> None:
    check_steps(
        HEAD
        + f"""
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def forward(self, x):
        probe()  # step: training
        for layer in self.layers:
            probe()  # step: training
            x = layer(x)
        return x.mean().item()

def train(loader, optimizer):
    net = Net().cuda()
    for x in loader:
        loss = F.mse_loss(net(x.cuda()), x)
        {STEP}
"""
    )


def test_calls_are_followed_however_deep() -> None:
    check_steps(
        {
            "main.py": HEAD
            + """
import engine.loops as loops

def main(model, loader, optimizer):
    model.cuda()
    loops.run(model, loader, lambda loss: loops.step(loss, optimizer))
    probe()  # step: none
""",
            "engine/__init__.py": "",
            "engine/loops.py": HEAD
            + """
from .log import note

def run(model, loader, finish):
    for x, y in loader:
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        finish(loss)
        probe()  # step: training

def step(loss, optimizer):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    note(loss)
    probe()  # step: training
""",
            "engine/log.py": """
def note(loss):
    print(loss.item())
    deeper(loss)

def deeper(loss):
    print(loss.item())
    probe()  # step: training
""",
        }
    )


def test_a_function_called_in_both_phases_is_seen_in_both() -> None:
    check_steps(
        HEAD
        + f"""
def forward(model, x):
    probe()  # step: evaluation and training
    return model(x.cuda())

def train(model, loader, optimizer):
    model.cuda()
    for x in loader:
        loss = forward(model, x).sum()
        {STEP}

@torch.no_grad()
def test(model, loader):
    model.cuda().eval()
    for x in loader:
        print(forward(model, x).sum().item())
"""
    )


def test_an_evaluation_loop_started_from_a_guard_is_a_step_loop() -> None:
    check_steps(
        HEAD
        + f"""
def train(model, loader, val_loader, optimizer):
    model.cuda()
    for step, (x, y) in enumerate(loader):
        loss = F.mse_loss(model(x.cuda()), y.cuda())
        {STEP}
        if step % 1000 == 0:
            probe()  # step: none
            validate(model, val_loader)

@torch.no_grad()
def validate(model, loader):
    probe()  # step: none
    for x, y in loader:
        print(F.mse_loss(model(x.cuda()), y.cuda()).item())
        probe()  # step: evaluation
"""
    )


@pytest.mark.parametrize(
    ("loop", "why"),
    [
        ("for i in range(0, len(xs), 32):\n        x = xs[i : i + 32].cuda()", "slices of a tensor in memory"),
        ("while step < 1000:\n        x = next(batches).cuda(); step += 1", "an iterator drawn by hand"),
        ("for _ in range(1000):\n        x = torch.randn(32, 4).cuda()", "batches made on the fly"),
        ("for i, x in enumerate(tqdm(xs)):\n        x = x.cuda()", "a progress bar around it"),
        ("for x in zip(xs, xs):\n        x = x[0].cuda()", "two at once"),
        ("for x in itertools.islice(xs, 100):\n        x = x.cuda()", "a few of them"),
    ],
)
def test_shapes_of_training_loops(loop: str, why: str) -> None:
    check_steps(
        HEAD
        + f"""
import itertools
from tqdm import tqdm

def train(model, xs, batches, optimizer, step=0):
    model.cuda()
    {loop}
        loss = model(x).sum()
        {STEP}
        probe()  # step: training
"""
    )


@pytest.mark.parametrize(
    "step",
    [
        "accelerator.backward(loss); optimizer.step()",
        "scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()",
        "engine.backward(loss); engine.step()",
        "optimizer.zero_grad(); loss.backward(); optimizer.step()",
        "torch.autograd.backward(loss); optimizer.step()",
        "self_loss = loss; self_loss.backward()",
    ],
)
def test_ways_to_take_a_step(step: str) -> None:
    check_steps(
        HEAD
        + f"""
from accelerate import Accelerator

def train(model, loader, optimizer, scaler, engine):
    accelerator = Accelerator()
    model.cuda()
    for x in loader:
        loss = model(x.cuda()).sum()
        {step}
        probe()  # step: training
"""
    )


def test_generators_run_in_the_loop_that_draws() -> None:
    check_steps(
        HEAD
        + f"""
def batches(loader):
    for x in loader:
        y = x.cuda()
        probe()  # step: training
        print(y.sum().item())
        yield y

def train(model, loader, optimizer):
    model.cuda()
    for x in batches(loader):
        loss = model(x).sum()
        {STEP}
        probe()  # step: training
"""
    )


def test_loops_over_few_objects_are_part_of_the_step() -> None:
    check_steps(
        HEAD
        + """
def train(model, loader, optimizers, a, b):
    model.cuda()
    first, second = torch.optim.SGD(model.parameters()), torch.optim.SGD(model.parameters())
    for x in loader:
        for optimizer in (first, second):
            loss = model(x.cuda()).sum()
            loss.backward()
            optimizer.step()
            probe()  # step: training
        probe()  # step: training
"""
    )


def test_the_whole_batch_each_epoch_is_a_step() -> None:
    check_steps(
        HEAD
        + f"""
def train(model, x, y, optimizer):
    model.cuda()
    x, y = x.cuda(), y.cuda()
    for epoch in range(100):
        loss = F.mse_loss(model(x), y)
        {STEP}
        probe()  # step: training
"""
    )


def test_an_epoch_loop_that_samples_is_no_step_loop() -> None:
    check_steps(
        HEAD
        + f"""
def train(model, loader, optimizer):
    model.cuda()
    for epoch in range(10):
        for x in loader:
            loss = model(x.cuda()).mean()
            {STEP}
        with torch.no_grad():
            sample = model(torch.randn(4, 4, device="cuda"))
        print(sample.mean().item())
        probe()  # step: none

@torch.no_grad()
def sample(model):
    model.cuda()
    for _ in range(10):
        x = model(torch.randn(4, 4, device="cuda"))
        print(x.mean().item())
        probe()  # step: evaluation
"""
    )


def test_gradients_of_an_input_are_no_training() -> None:
    check_steps(
        HEAD
        + """
def saliency(model, loader):
    model.cuda().eval()
    for x in loader:
        x = x.cuda().requires_grad_()
        probe()  # step: evaluation
        print(torch.autograd.grad(model(x).sum(), x)[0].mean().item())
"""
    )


def test_a_generator_that_nobody_draws_from_runs_on_no_step() -> None:
    check_steps(
        HEAD
        + f"""
def lazily(x):
    for row in x:
        probe()  # step: none
        yield row.sum().item()

def train(model, loader, optimizer):
    model.cuda()
    for x in loader:
        loss = model(x.cuda()).mean()
        {STEP}
        pending = lazily(loss)
    for value in pending:
        print(value)
"""
    )


def test_the_loop_named_is_that_of_the_steps() -> None:
    text = (
        HEAD
        + """
def train(model, loader):
    model.cuda()
    first, second = torch.optim.SGD(model.parameters()), torch.optim.SGD(model.parameters())
    for x in loader:
        for optimizer in (first, second):
            loss = model(x.cuda()).sum()
            loss.backward()
            optimizer.step()
            print(loss.item())
"""
    )
    (finding,) = (f for f in project(text).findings if f.code == "GPU101")
    assert finding.evidence[0].line == text.split("\n").index("    for x in loader:") + 1
