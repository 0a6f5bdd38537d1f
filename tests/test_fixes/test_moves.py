"""GPU201 to GPU204: loaders, copies of batches, and tensors made where they are used."""

from __future__ import annotations

import pytest
from fix_pairs import HEAD, assert_fix, assert_no_fix, findings, fixed, train

from gpulint.finding import Applicability

LOADER = """\
import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader


def train(model, dataset, optimizer, options):
    model.cuda()
    loader = DataLoader({arguments})
    for x, y in loader:
        x, y = x.cuda({copy}), y.to("cuda"{more})
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
WAITING = {"copy": "", "more": ""}
QUEUED = {"copy": "non_blocking=True", "more": ", non_blocking=True"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dataset, num_workers=4", "dataset, num_workers=4, pin_memory=True"),
        ("dataset, num_workers=4, pin_memory=False", "dataset, num_workers=4, pin_memory=True"),
        ("dataset, 64, True, None, None, 4", "dataset, 64, True, None, None, 4, pin_memory=True"),
    ],
)
def test_pinning_and_the_copies_go_together(before: str, after: str) -> None:
    assert_fix(LOADER.format(arguments=before, **WAITING), LOADER.format(arguments=after, **QUEUED))


def test_a_pinned_loader_is_copied_from_without_waiting() -> None:
    pinned = "dataset, num_workers=4, pin_memory=True"
    assert_fix(LOADER.format(arguments=pinned, **WAITING), LOADER.format(arguments=pinned, **QUEUED))


def test_both_are_safe() -> None:
    text = LOADER.format(arguments="dataset, num_workers=4", **WAITING)
    assert fixed(text, unsafe=False) == fixed(text)


def test_an_option_that_is_given_by_position_stays() -> None:
    text = LOADER.format(arguments="dataset, 64, True, None, None, 4, None, False", **WAITING)
    assert fixed(text, "GPU201") == text


def test_options_of_a_dict_stay() -> None:
    text = LOADER.format(arguments="dataset, **kept", **WAITING).replace(
        "    loader", '    kept = {"num_workers": 4, "pin_memory": False}\n    loader'
    )
    assert fixed(text, "GPU201") == text


# ---- created on the device ----------------------------------------------------------------------------

CREATED = {
    "to": ("torch.zeros(3).to(device)", "torch.zeros(3, device=device)"),
    "cuda": ("torch.ones(len(x), 1).cuda()", 'torch.ones(len(x), 1, device="cuda")'),
    "a number": ("torch.ones(3).cuda(0)", "torch.ones(3, device=0)"),
    "type and device": (
        "torch.zeros(3).to(device, torch.float16)",
        "torch.zeros(3, device=device, dtype=torch.float16)",
    ),
    "by keyword": ("torch.zeros(3).to(device=x.device)", "torch.zeros(3, device=x.device)"),
    "queued": ("torch.arange(3).to(device, non_blocking=True)", "torch.arange(3, device=device)"),
    "like another": ("torch.zeros(3).type_as(x)", "torch.zeros(3, device=x.device, dtype=x.dtype)"),
    "like another, by to": ("torch.zeros(3).to(out)", "torch.zeros(3, device=out.device, dtype=out.dtype)"),
    "reshaped first": ("torch.arange(3).unsqueeze(0).to(device)", "torch.arange(3, device=device).unsqueeze(0)"),
    "filled first": ("torch.empty(3).fill_(0.5).cuda()", 'torch.empty(3, device="cuda").fill_(0.5)'),
    "on the host in so many words": (
        'torch.zeros(3, device="cpu").to(device)',
        "torch.zeros(3, device=device)",
    ),
}


@pytest.mark.parametrize(("before", "after"), CREATED.values(), ids=CREATED)
def test_it_is_made_on_the_device(before: str, after: str) -> None:
    text = train("", "z = {}\nout = model(z)")
    assert_fix(text.format(before), text.format(after))
    assert {f.fix.applicability for f in findings(text.format(before), "GPU204") if f.fix} == {Applicability.SAFE}


def test_random_numbers_are_others_on_the_device() -> None:
    text = train("", "z = {}\nout = model(z)")
    before = text.format("torch.randn(len(x), 8).to(device)")
    assert_fix(before, text.format("torch.randn(len(x), 8, device=device)"))
    assert fixed(before, "GPU204", unsafe=False) == before


def test_a_move_in_a_later_statement_goes() -> None:
    assert_fix(
        train("", "h = torch.zeros(3)\nn = len(x)\nh = h.to(device)\nout = model(h)"),
        train("", "h = torch.zeros(3, device=device)\nn = len(x)\nout = model(h)"),
    )


@pytest.mark.parametrize(
    "lines",
    [
        "z = torch.zeros(3, requires_grad=True).to(device)",
        "z = torch.FloatTensor(3).to(device)",
        "z = torch.zeros(3).cuda(options)",  # may be None, which means the host at creation
        "z = torch.zeros(3)\nwhere = x.device\nz = z.to(where)",
        "z = torch.zeros(3)\nif device:\n    z = z.to(device)",
    ],
)
def test_in_doubt_it_is_made_where_it_was(lines: str) -> None:
    assert_no_fix(train("options = model.options", lines + "\nout = model(z)"), "GPU204")


# ---- workers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("data, pin_memory=True", "data, pin_memory=True, num_workers=4"),
        ("data, num_workers=0, pin_memory=True", "data, num_workers=4, pin_memory=True"),
    ],
)
def test_workers(before: str, after: str) -> None:
    text = LOADER.format(arguments="{0}", **QUEUED).replace("dataset, optimizer", "optimizer")
    text = text.replace("from torch.utils", "from torchvision import datasets, transforms\nfrom torch.utils")
    text = text.replace("    loader =", '    data = datasets.ImageFolder("data", transforms.ToTensor())\n    loader =')
    assert_fix(text.format(before), text.format(after))


def test_lines_and_newlines_stay() -> None:
    text = train("", "z = torch.zeros(\n    3,  # rows\n    4,\n).cuda()\nout = model(z)").replace("\n", "\r\n")
    after = fixed(text)
    assert "\n" not in after.replace("\r\n", "")
    assert 'device="cuda"' in after
    assert "# rows" in after
    assert HEAD.replace("\n", "\r\n") in after


@pytest.mark.parametrize(("method", "is_queued"), [("to(self, device)", False), ("to(self, device, **more)", True)])
def test_a_batch_class_of_the_project_may_not_know_the_option(method: str, is_queued: bool) -> None:
    batches = f"class Batch:\n    def {method}:\n        return self\n\n\n"
    loop = LOADER.format(arguments="dataset, num_workers=4", **WAITING).replace(
        '    for x, y in loader:\n        x, y = x.cuda(), y.to("cuda")\n        loss = F.cross_entropy(model(x), y)\n',
        '    for batch in loader:\n        batch = batch.to("cuda")\n        loss = model(batch).mean()\n',
    )
    after = fixed(loop.replace("def train", batches + "def train"), "GPU201")
    assert "pin_memory=True" in after
    assert ("non_blocking=True" in after) is is_queued
