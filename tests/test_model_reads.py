"""Values read on the host: once per cause, and only as likely as they could wait."""

from __future__ import annotations

import re

import pytest
from harness import check, settings

from gpulint.finding import Confidence

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
"""
LOOP = (
    HEAD
    + """
import math
import numpy as np
import scipy.optimize

def train(model, loader, optimizer, env, matcher, tokenizer):
    model.cuda()
    for step, (x, y) in enumerate(loader):
        x, y = x.cuda(), y.cuda()
        out = model(x)
        loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {}
"""
)


def only_possible(text: str, *codes: str) -> None:
    """What the comments expect is found on request only."""
    check(text, *codes, config=settings(min_confidence=Confidence.POSSIBLE))
    check(re.sub(r"  # expect: .*", "", text), *codes)


@pytest.mark.parametrize(
    "code",
    [
        "a = loss.item()  # expect: GPU101",
        "a = out.tolist()  # expect: GPU101",
        "a = float(loss)  # expect: GPU101",
        "a = int(out.argmax())  # expect: GPU101",
        "a = bool(out.any())  # expect: GPU101",
        "a = math.sqrt(loss)  # expect: GPU101",
        "a = out[0, 1].item()  # expect: GPU101",
        "a = [o.item() for o in out]  # expect: GPU101",
        "a = out.detach().cpu().numpy()  # expect: GPU102",
        "a = out.to('cpu')  # expect: GPU102",
        "a = out.to(torch.device('cpu'))  # expect: GPU102",
        "a = out.detach().cpu().item()  # expect: GPU102",
        "a = out.cpu(); b = a.numpy(), a.mean().item(), float(a.sum())  # expect: GPU102",
        "a = loss.item(); b = float(a), f'{a}', a > 3, print(a)  # expect: GPU101",
        "if out.any().item(): pass  # expect: GPU101",
        "print(loss.item(), f'{loss.item()}')  # expect: GPU101",
        "a = out.shape[0], out.size(0), len(out), out.dim(), out.numel(), out.device, out.dtype",
        "a = y.new_zeros(3), out.data_ptr(), out.is_contiguous()",
        "a = np.mean([1.0]), float('inf'), int(3.5), bool(step), math.sqrt(step)",
        "a = torch.tensor(3.0).item(), torch.zeros(3).tolist()",
        "a = [p.norm().item() for p in model.parameters()]",
    ],
)
def test_one_cause_is_one_finding(code: str) -> None:
    check(LOOP.format(code), "GPU101", "GPU102", "GPU103", "GPU104")


def test_the_same_tensor_is_fetched_once_until_it_changes() -> None:
    check(
        LOOP.format(
            "a = loss.item()  # expect: GPU101\n"
            "        print(loss.item(), float(loss))\n"
            "        loss = F.mse_loss(model(x), y)\n"
            "        print(loss.item())  # expect: GPU101\n"
            "        print(out.cpu())  # expect: GPU102\n"
            "        print(out.cpu())\n"
            "        (loss * 2).backward()\n"
            "        optimizer.step()\n"
            "        print(loss.item())  # expect: GPU101\n"
        ),
        "GPU101",
        "GPU102",
    )


@pytest.mark.parametrize(
    "code",
    [
        "action = out.argmax().item()  # expect: GPU101\n        env.step(action)",
        "rows = scipy.optimize.linear_sum_assignment(out.cpu())  # expect: GPU102",
        "rows = scipy.optimize.linear_sum_assignment(out.detach().cpu().numpy())  # expect: GPU102",
        "text = tokenizer.decode(out.argmax(-1).tolist())  # expect: GPU101",
        "lengths = y.sum(1).tolist()  # expect: GPU101\n        nn.utils.rnn.pack_padded_sequence(x, lengths)",
    ],
)
def test_what_the_host_must_have_is_only_possible(code: str) -> None:
    only_possible(LOOP.format(code), "GPU101", "GPU102")


def test_what_is_used_after_the_loop_could_wait() -> None:
    check(
        LOOP.format("rows = out.argmax(-1).tolist()  # expect: GPU101\n    print(tokenizer.decode(rows))"),
        "GPU101",
    )


def test_a_token_that_ends_a_generation_is_only_possible() -> None:
    only_possible(
        HEAD
        + """
@torch.no_grad()
def generate(model, ids, end):
    model.cuda().eval()
    ids = ids.cuda()
    for _ in range(100):
        token = model(ids)[:, -1].argmax(-1)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if token.item() == end:  # expect: GPU101
            break
    return ids
""",
        "GPU101",
        "GPU103",
    )


def test_a_list_per_evaluation_batch_is_only_possible_and_per_element_likely() -> None:
    only_possible(
        HEAD
        + """
@torch.no_grad()
def evaluate(model, loader, metric):
    model.cuda().eval()
    for x in loader:
        metric.add(model(x.cuda()).argmax(-1).tolist())  # expect: GPU101
""",
        "GPU101",
    )
    check(
        HEAD
        + """
@torch.no_grad()
def evaluate(model, loader, metric):
    model.cuda().eval()
    for x in loader:
        for row in model(x.cuda()).argmax(-1):
            metric.add(row.tolist())  # expect: GPU101
""",
        "GPU101",
    )


def test_remote_calls_need_their_values() -> None:
    only_possible(
        LOOP.replace("import math", "import torch.distributed.rpc as rpc").format("loss.item()  # expect: GPU101"),
        "GPU101",
    )


def test_copies_to_pinned_memory_and_to_any_device_are_none() -> None:
    check(
        LOOP.format(
            "host = out.to('cpu', non_blocking=True)\n"
            "        same = out.to(y.device), out.to(y.dtype), out.to(out), out.type(torch.float16)\n"
            "        moved = out.to(env.device)"
        ),
        "GPU102",
    )


def test_without_evidence_a_read_is_only_possible() -> None:
    only_possible(LOOP.replace(".cuda()", "").format("print(loss.item())  # expect: GPU101"), "GPU101")


def test_structures_of_unknown_members_are_no_tensors_to_format() -> None:
    check(
        LOOP.format(
            "print(step, out)\n        print(loss)  # expect: GPU104\n        print(x, y)\n        if out: pass"
        ),
        "GPU104",
        "GPU103",
    )


def test_one_print_is_one_finding() -> None:
    check(LOOP.format("print(loss, loss.mean(), f'{loss} {loss}')  # expect: GPU104"), "GPU104")


def test_an_index_of_an_evaluation_is_only_possible() -> None:
    only_possible(
        HEAD
        + """
@torch.no_grad()
def evaluate(model, loader):
    model.cuda().eval()
    for x, sizes in loader:
        size = sizes.cuda().max().item()  # expect: GPU101
        print(model(x.cuda()[:, :size]).shape)
""",
        "GPU101",
    )


def test_a_branch_of_a_generation_is_only_possible() -> None:
    only_possible(
        HEAD
        + """
@torch.no_grad()
def generate(model, ids, end):
    model.cuda().eval()
    ids = ids.cuda()
    for _ in range(100):
        token = model(ids)[:, -1].argmax(-1)
        ids = torch.cat([ids, token[:, None]], dim=1)
        if (token == end).all():  # expect: GPU103
            break
    return ids
""",
        "GPU103",
    )


def test_a_device_that_only_may_be_the_host_is_no_copy_to_it() -> None:
    check(LOOP.format("host = torch.device('cpu')\n        a = out.to(host)"), "GPU102")
