"""Evaluations that record a graph: who evaluates, and who needs the graph after all."""

from __future__ import annotations

import pytest
from harness import check

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
"""


EVALUATE_ACTIONS = pytest.param("evaluate_actions", marks=pytest.mark.xfail(reason="begins with `evaluate`"))
WRAPPED = pytest.mark.xfail(reason="a function wrapped by a call of no_grad is not followed")


@pytest.mark.parametrize(
    "name", ["evaluate", "validate", "test_epoch", "predict", "run_inference", "val_step", "eval_model"]
)
def test_a_name_says_that_it_evaluates(name: str) -> None:
    check(
        HEAD
        + f"""
def {name}(model, loader):
    model.cuda()
    hits = torch.zeros((), device="cuda")
    for x, y in loader:
        hits += (model(x.cuda()).argmax(1) == y.cuda()).sum()  # expect: GPU301
    return hits
""",
        "GPU301",
    )


@pytest.mark.parametrize("name", ["measure", "accuracy_of", "run"])
def test_eval_mode_says_so_too(name: str) -> None:
    text = (
        HEAD
        + f"""
def {name}(model, loader):
    model.cuda()[EVAL]
    for x, y in loader:
        print((model(x.cuda()).argmax(1) == y.cuda()).sum())[EXPECT]
"""
    )
    check(text.replace("[EVAL]", ".eval()").replace("[EXPECT]", "  # expect: GPU301"), "GPU301")
    check(text.replace("[EVAL]", ".train(False)").replace("[EXPECT]", "  # expect: GPU301"), "GPU301")
    check(text.replace("[EVAL]", "").replace("[EXPECT]", ""), "GPU301")


@pytest.mark.parametrize("name", ["latest_model", "contest", "interval_loop", "reevaluation_count", EVALUATE_ACTIONS])
def test_names_that_only_look_like_it(name: str) -> None:
    check(
        HEAD
        + f"""
def {name}(model, loader):
    model.cuda()
    return [model(x.cuda()).mean() for x in loader]
""",
        "GPU301",
    )


@pytest.mark.parametrize(
    "use",
    [
        "loss.backward()",
        "(g,) = torch.autograd.grad(loss, x)",
        "g = torch.autograd.grad(outputs=loss, inputs=x)[0]",
        "attack(model, loss)",
        "scaler.scale(loss).backward()",
    ],
)
def test_gradients_are_needed(use: str) -> None:
    check(
        HEAD
        + f"""
def attack(model, loss):
    loss.sum().backward()

def evaluate(model, loader, scaler):
    model.cuda().eval()
    for x, y in loader:
        x = x.cuda().requires_grad_()
        loss = F.mse_loss(model(x), y.cuda())
        {use}
""",
        "GPU301",
    )


def test_a_loss_that_the_caller_differentiates_is_needed() -> None:
    check(
        HEAD
        + """
def evaluate_loss(model, x, y):
    return F.mse_loss(model(x.cuda()), y.cuda())

def train(model, loader, optimizer):
    model.cuda()
    for x, y in loader:
        loss = evaluate_loss(model, x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
        "GPU301",
    )


def test_helper_and_caller_give_one_finding() -> None:
    check(
        {
            "main.py": HEAD
            + """
from helpers import predict_batch, score

def evaluate(model, loader):
    model.cuda().eval()
    for x, y in loader:
        out = predict_batch(model, x)
        print(score(model, out, y))
""",
            "helpers.py": """
import torch

def predict_batch(model, x):
    return model(x.cuda())  # expect: GPU301

def score(model, out, y):
    return (model(out) == y.cuda()).sum()
""",
        },
        "GPU301",
    )


@pytest.mark.parametrize(
    ("before", "call"),
    [
        ("", "with torch.no_grad():\n        evaluate(model, loader)"),
        ("", "with torch.inference_mode():\n        evaluate(model, loader)"),
        ("", "with torch.set_grad_enabled(False):\n        evaluate(model, loader)"),
        ("", "with torch.autocast('cuda'), torch.no_grad():\n        evaluate(model, loader)"),
        ("", "torch.set_grad_enabled(False)\n    evaluate(model, loader)"),
        pytest.param("", "torch.no_grad()(evaluate)(model, loader)", marks=WRAPPED),
        ("@torch.no_grad()", "evaluate(model, loader)"),
        ("@torch.no_grad", "evaluate(model, loader)"),
        ("@torch.inference_mode()", "evaluate(model, loader)"),
        ("@torch.set_grad_enabled(False)", "evaluate(model, loader)"),
        ("no_grad = torch.no_grad\n@no_grad()", "evaluate(model, loader)"),
        ("from torch import no_grad as quiet\n@quiet()", "evaluate(model, loader)"),
    ],
)
def test_gradients_are_off(before: str, call: str) -> None:
    check(
        HEAD
        + f"""
{before}
def evaluate(model, loader):
    model.eval()
    for x in loader:
        print(model(x.cuda()).mean())

def main(model, loader):
    model.cuda()
    {call}
""",
        "GPU301",
    )


def test_one_caller_with_gradients_is_enough() -> None:
    check(
        HEAD
        + """
def evaluate(model, loader):
    model.eval()
    for x in loader:
        print(model(x.cuda()).mean())  # expect: GPU301

def main(model, loader):
    model.cuda()
    with torch.no_grad():
        evaluate(model, loader)
    evaluate(model, loader)
""",
        "GPU301",
    )


def test_enable_grad_inside_no_grad_counts() -> None:
    check(
        HEAD
        + """
@torch.no_grad()
def evaluate(model, loader):
    model.cuda().eval()
    for x in loader:
        with torch.enable_grad():
            print(model(x.cuda()).mean())  # expect: GPU301
""",
        "GPU301",
    )


def test_frozen_modules_record_nothing() -> None:
    check(
        HEAD
        + """
def evaluate(loader):
    teacher = nn.Linear(2, 2).cuda().eval().requires_grad_(False)
    for x in loader:
        print(teacher(x.cuda()).mean())
""",
        "GPU301",
    )


def test_unit_tests_are_no_evaluations() -> None:
    text = (
        HEAD
        + """
def test_forward():
    model = nn.Linear(2, 2).cuda().eval()
    for x in [torch.ones(2), torch.ones(2)]:
        assert model(x.cuda()).shape == (2,){}
"""
    )
    check({"tests/test_model.py": text.format("")}, "GPU301")
    check({"test_model.py": text.format("")}, "GPU301")
    check({"model.py": text.format("  # expect: GPU301")}, "GPU301")


def test_a_module_inside_a_module_is_not_the_place() -> None:
    check(
        HEAD
        + """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()

    def forward(self, x):
        return self.block(x)

def evaluate(loader):
    net = Net().cuda().eval()
    for x in loader:
        print(net(x.cuda()).mean())  # expect: GPU301
""",
        "GPU301",
    )


def test_the_evaluation_inside_a_training_function() -> None:
    text = (
        HEAD
        + """
def fit(model, loader, val_loader, optimizer):
    model.cuda()
    for epoch in range(3):
        [TRAIN]
        for x, y in loader:
            loss = F.mse_loss(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        [EVAL]
        for x, y in val_loader:
            print((model(x.cuda()) - y.cuda()).abs().mean())[EXPECT]
"""
    )
    marked = text.replace("[TRAIN]", "model.train()").replace("[EVAL]", "model.eval()")
    check(marked.replace("[EXPECT]", "  # expect: GPU301"), "GPU301")
    plain = text.replace("[TRAIN]", "model.train()").replace("[EVAL]", "pass")
    check(plain.replace("[EXPECT]", ""), "GPU301")


def test_a_script_that_evaluates() -> None:
    check(
        HEAD
        + """
model = nn.Linear(2, 2).cuda()
model.eval()
for x in torch.utils.data.DataLoader([], pin_memory=True):
    print(model(x.cuda(non_blocking=True)).mean())  # expect: GPU301
""",
        "GPU301",
    )


def test_eval_mode_without_a_loop_of_its_own() -> None:
    check(
        HEAD
        + """
def answer(model, x):
    model.eval()
    return model(x.cuda()).argmax(1)  # expect: GPU301

def serve(model, requests):
    model.cuda()
    for x in requests:
        print(answer(model, x).shape)
""",
        "GPU301",
    )
