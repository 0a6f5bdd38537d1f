"""Guards: what runs rarely within a step loop is no per-step cost, and what only seems rare is."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet
from harness import check, check_steps

LOOP = """
import math
import sys
import time
import torch
import torch.nn.functional as F

def train(model, loader, optimizer, args, rank, verbose, cfg, use_cuda=True, debug=False, use_amp=False, hook=None):
    model.cuda()
    seen, shown, window, history, last, cache, mask = 0, 0, [], {{}}, 0.0, {{}}, None
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        loss = F.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += 1
        {}
"""
BODY = "\n            probe()  # step: {}"

RARE = [
    # every n steps
    "if step % 100 == 0:",
    "if 0 == step % 100:",
    "if not step % args.every:",
    "if not (step % args.every):",
    "if (step + 1) % args.every == 0:",
    "if step % 100 == 99:",
    "if step % 100 < 1:",
    "if (step % args.every) == args.every - 1:",
    "if seen % 10 == 0:",
    "if cfg.iteration % 10 == 0:",
    # now and then
    "if step == 0:",
    "if step == len(loader) - 1:",
    "if step + 1 == len(loader):",
    "if step in {1, 10, 100}:",
    "if step in (0, args.last):",
    "if args.every > 0 and step % args.every == 0:",
    "if step % 100 == 0 and rank == 0:",
    "if step % 100 == 0 or step == len(loader) - 1:",
    "if (due := step % 100 == 0) and verbose:",
    "if time.time() - last > 10:",
    "if time.perf_counter() - last >= args.seconds:",
    # off unless asked for
    "if debug:",
    "if debug and rank == 0:",
    "if debug is True:",
    "if not debug is False:",
    # without a GPU
    "if not use_cuda:",
    "if not torch.cuda.is_available():",
    "if args.device == 'cpu':",
    "if args.no_cuda:",
    "if args.device_type != 'cuda':",
]
OFTEN = [
    "if rank == 0:",
    "if args.local_rank == 0:",
    "if cfg.gpu_index == 0:",
    "if verbose:",
    "if args.log:",
    "if args.mode == 'train':",
    "if use_amp:",
    "if use_cuda:",
    "if torch.cuda.is_available():",
    "if args.device == 'cuda':",
    "if step % 1 == 0:",
    "if not step % 1:",
    "if step % 100:",
    "if step % 100 != 0:",
    "if step > 0:",
    "if step < 1000:",
    "if step != 0:",
    "if step not in {1, 10}:",
    "if step % 100 == 0 or rank == 0:",
    "if step == 0 or verbose:",
    "if not debug:",
    "if debug is False:",
    "if '%d' % rank == args.first:",
    "if args.epoch_name == 'last':",
    "if hook is not None:",
    "if len(x) > 3:",
    "if True:",
]


def not_yet(test: str, why: str) -> ParameterSet:
    return pytest.param(test, marks=pytest.mark.xfail(reason=why))


@pytest.mark.parametrize("test", [*RARE, not_yet("if seen == 10:", "a counter of any name")])
def test_rare_conditions(test: str) -> None:
    check_steps(LOOP.format(test + BODY.format("none")))


@pytest.mark.parametrize(
    "test", [*OFTEN, not_yet("if x.shape[0] == args.batch_size:", "`batch_size` passes for a counter")]
)
def test_frequent_conditions(test: str) -> None:
    check_steps(LOOP.format(test + BODY.format("training")))


@pytest.mark.parametrize(
    "test",
    [
        "if step % 100:",
        "if step % 100 != 0:",
        "if step not in {1, 10}:",
        "if step != 0:",
        "if not debug:",
        "if use_cuda:",
    ],
)
def test_the_else_of_a_frequent_condition_is_rare(test: str) -> None:
    check_steps(LOOP.format(f"{test}{BODY.format('training')}\n        else:{BODY.format('none')}"))


@pytest.mark.parametrize("test", ["if step % 100 == 0:", "if step == 0:", "if debug:"])
def test_the_else_of_a_rare_condition_is_frequent(test: str) -> None:
    check_steps(LOOP.format(f"{test}{BODY.format('none')}\n        else:{BODY.format('training')}"))


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("if len(window) >= 8:\n            probe()  # step: none\n            window.clear()", "flushed"),
        ("if len(window) == 8:\n            probe()  # step: none\n            window = []", "flushed by assignment"),
        ("if seen >= 100:\n            probe()  # step: none\n            seen = 0", "counted up and set back"),
        ("if shown < 5:\n            probe()  # step: none\n            shown += 1", "a handful of times"),
        ("if mask is None:\n            probe()  # step: none\n            mask = torch.ones(3)", "fills a local"),
        ("if 'k' not in cache:\n            probe()  # step: none\n            cache['k'] = x", "fills a cache"),
        ("if not hasattr(args, 'm'):\n            pass\n        probe()  # step: training", "after the branch"),
        ("if loss > 9:\n            probe()  # step: none\n            break", "leaves the loop"),
        ("if loss > 9:\n            probe()  # step: none\n            return loss", "leaves the function"),
        (
            "if loss > 9:\n            probe()  # step: none\n            raise ValueError(probe())  # step: none",
            "raises",
        ),
        ("if loss > 9:\n            probe()  # step: none\n            sys.exit(1)", "ends the program"),
        ("if rank == 0:\n            probe()  # step: training\n            continue", "goes on"),
        (
            "if rank == 0:\n            with verbose:\n                raise ValueError(probe())  # step: none",
            "a message",
        ),
        ("if step % 100:\n            continue\n        probe()  # step: none", "skips the rest"),
        ("if rank != 0:\n            continue\n        probe()  # step: training", "skips the rest on other ranks"),
        ("if step < 10:\n            continue\n        probe()  # step: training", "skips a few"),
        (
            "try:\n            probe()  # step: training\n        except OSError:\n            probe()  # step: none",
            "handler",
        ),
        ("try:\n            pass\n        finally:\n            probe()  # step: training", "finally"),
        ("assert seen, probe()  # step: none", "the message of an assertion"),
        ("print(probe() if step % 100 == 0 else 0)  # step: none", "a conditional expression"),
        ("print(0 if step % 100 == 0 else probe())  # step: training", "its other side"),
        ("print(0 if step % 100 else probe())  # step: none", "its rare other side"),
        ("step % 100 == 0 and probe()  # step: none", "a short circuit"),
        ("step % 100 and probe()  # step: training", "no short circuit"),
        ("step % 100 or probe()  # step: none", "an `or` of what is mostly true"),
        ("due = step % 100 == 0\n        if due:\n            probe()  # step: none", "a name for the condition"),
        ("due = step % 100 == 0 and verbose\n        if due:\n            probe()  # step: none", "a longer one"),
        (
            "for _ in range(3):\n            if step % 100 == 0:\n                probe()  # step: none",
            "in an inner loop",
        ),
        (
            "if step % 100 == 0:\n            for _ in range(3):\n                probe()  # step: none",
            "around an inner loop",
        ),
        ("if verbose:\n            if step % 100 == 0:\n                probe()  # step: none", "below another branch"),
        ("if step % 100 == 0:\n            if verbose:\n                probe()  # step: none", "above another branch"),
        ("if rank == 0:\n            pass\n        elif step % 9 == 0:\n            probe()  # step: none", "elif"),
        ("while step % 100 == 0:\n            probe()  # step: training\n            step += 1", "`while` is no guard"),
    ],
    ids=lambda value: value if " " in value and "\n" not in value and "probe" not in value else "",
)
def test_shapes_of_guards(code: str, why: str) -> None:
    check_steps(LOOP.format(code))


def test_a_cache_that_is_a_parameter_is_filled_on_each_call() -> None:
    check_steps(
        """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.table, self.width = nn.Linear(4, 4), None, 0

    def forward(self, x, mask=None):
        if mask is None:
            probe()  # step: training
            mask = torch.ones(4).cuda()
        if self.table is None or self.table.device != x.device:
            probe()  # step: none
            self.table = torch.ones(4).to(x.device)
        if not hasattr(self, "other"):
            probe()  # step: none
            self.other = torch.ones(4).cuda()
        if self.table is None:
            probe()  # step: training
            x = x * 2
        return self.layer(x) * mask + self.table

def train(loader, optimizer, cache=None):
    net = Net().cuda()
    for x in loader:
        loss = net(x.cuda()).mean()
        loss.backward()
        optimizer.step()
        if cache is None:
            probe()  # step: training
            cache = x
"""
    )


def test_a_guard_in_the_caller_silences_the_callee() -> None:
    check_steps(
        {
            "main.py": LOOP.format("if step % 100 == 0:\n            show(loss)\n        note(loss)").replace(
                "import math", "from report import note, show"
            ),
            "report.py": """
def show(loss):
    probe()  # step: none
    print(loss.item())

def note(loss):
    probe()  # step: training
    print(loss.item())
    if loss.step == 0:
        probe()  # step: none
""",
        }
    )


def test_a_predicate_of_the_project_is_a_guard() -> None:
    check_steps(
        LOOP.format(
            "if due(step):\n            probe()  # step: none\n"
            "        if always(step):\n            probe()  # step: training\n"
            "        if args.schedule.due(step):\n            probe()  # step: training"
        )
        + """

def due(step, every=100):
    \"\"\"Now and then.\"\"\"
    return step % every == 0

def always(step):
    return step >= 0
"""
    )


def test_a_guard_around_the_step_is_none() -> None:
    check_steps(
        """
import torch

def train(generator, critic, loader, g_opt, c_opt, scaler):
    generator.cuda(), critic.cuda()
    for step, x in enumerate(loader):
        x = x.cuda()
        loss = critic(x).mean()
        loss.backward()
        if step % 5 == 0:
            probe()  # step: training
            g_loss = -critic(generator(x)).mean()
            g_loss.backward()
            g_opt.step()
        if step % 100 == 0:
            probe()  # step: none
            print(loss.item())
        try:
            probe()  # step: training
            c_opt.step()
        except RuntimeError:
            probe()  # step: none
            c_opt.zero_grad()
"""
    )


def test_a_condition_is_read_whatever_its_body() -> None:
    check(
        LOOP.format(
            "if torch.isnan(loss):  # expect: GPU103\n            break\n"
            "        if step % 10 == 0 and loss > 3:\n            print(step)\n"
            "        if loss > 3 and step % 10 == 0:  # expect: GPU103\n            print(step)\n"
            "        if step % 10 or loss > 3:\n            print(step)\n"
            "        assert not torch.isinf(loss), f'{loss}'  # expect: GPU103"
        ),
        "GPU103",
        "GPU104",
    )


@pytest.mark.xfail(reason="the last operand of `and` and `or` is not seen to be tested")
@pytest.mark.parametrize(
    "code",
    [
        "if rank == 0 and loss > 3:  # expect: GPU103\n            print(step)",
        "if step % 10 == 0 or loss > 3:  # expect: GPU103\n            print(step)",
        "if not (verbose or loss > 3):  # expect: GPU103\n            print(step)",
        "assert verbose or loss > 3  # expect: GPU103",
        "print(1 if verbose and loss > 3 else 2)  # expect: GPU103",
    ],
)
def test_every_operand_of_a_condition_is_read(code: str) -> None:
    check(LOOP.format(code), "GPU103")


def test_the_last_operand_of_a_value_is_not_read() -> None:
    check(LOOP.format("kept = loss or x  # expect: GPU103\n        other = cache or loss"), "GPU103")
