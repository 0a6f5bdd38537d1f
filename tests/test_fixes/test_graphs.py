"""GPU301, GPU302 and GPU502: graphs that nobody uses, and names that are no longer used."""

from __future__ import annotations

import pytest
from fix_pairs import HEAD, assert_fix, assert_no_fix, findings, fixed, train

from gpulint.finding import Applicability

KEPT = {
    "a sum": ("total = 0.0", "total += loss", "total += loss.detach()", "return total"),
    "a sum of a sum": ("total = 0.0", "total += loss + 1", "total += (loss + 1).detach()", "return total"),
    "in brackets": ("total = 0.0", "total += (loss + 1)", "total += (loss + 1).detach()", "return total"),
    "written out": ("total = 0.0", "total = total + loss", "total = total + loss.detach()", "return total"),
    "a list": ("xs = []", "xs.append(loss)", "xs.append(loss.detach())", "return xs"),
    "a list of sums": ("xs = []", "xs.append(loss / 2)", "xs.append((loss / 2).detach())", "return xs"),
    "a list of pairs": ("xs = []", "xs.append((step, loss))", "xs.append((step, loss.detach()))", "return xs"),
    "a list of dicts": (
        "xs = []",
        'xs.append({"step": step, "loss": loss})',
        'xs.append({"step": step, "loss": loss.detach()})',
        "return xs",
    ),
    "an entry": ("xs = {}", "xs[step] = loss", "xs[step] = loss.detach()", "return xs"),
}


@pytest.mark.parametrize(("start", "before", "after", "end"), KEPT.values(), ids=KEPT)
def test_what_is_kept_is_detached(start: str, before: str, after: str, end: str) -> None:
    assert_fix(train(start, before, end), train(start, after, end))
    assert fixed(train(start, before, end), unsafe=False) == train(start, after, end)


EVALUATE = HEAD + (
    "{decorator}def evaluate(model, loader):\n"
    "    model.cuda().eval()\n"
    "    hits = torch.zeros((), device='cuda')\n"
    "    for x, y in loader:\n"
    "        hits += (model(x.cuda(non_blocking=True)).argmax(1) == y.cuda(non_blocking=True)).sum()\n"
    "    return hits.item()\n"
)


def test_an_evaluation_is_decorated() -> None:
    assert_fix(EVALUATE.format(decorator=""), EVALUATE.format(decorator="@torch.no_grad()\n"))


def test_the_decorator_stands_next_to_the_function() -> None:
    before = EVALUATE.format(decorator="@staticmethod\n")
    assert fixed(before) == EVALUATE.format(decorator="@staticmethod\n@torch.no_grad()\n")


def test_torch_is_imported() -> None:
    before = (
        EVALUATE.format(decorator="").replace(HEAD, "from torch import zeros\n\n\n").replace("torch.zeros", "zeros")
    )
    after = fixed(before)
    assert after.startswith("import torch\nfrom torch import zeros\n")
    assert "@torch.no_grad()\ndef evaluate" in after
    assert findings(after) == []


def test_an_alias_of_torch_is_used() -> None:
    before = EVALUATE.format(decorator="").replace("import torch\n", "import torch as th\n")
    assert "@th.no_grad()\n" in fixed(before.replace("torch.zeros", "th.zeros"))


def test_validation_within_training_is_wrapped() -> None:
    lines = (
        "model.eval()\n"
        "error = torch.zeros((), device='cuda')\n"
        "{0}for x, y in val_loader:\n"
        "{1}    error += (model(x.cuda(non_blocking=True)) - y.cuda(non_blocking=True)).abs().mean(){2}\n"
        "print(error.item())"
    )
    text = train("", "", "{}").replace("loader, optimizer", "loader, val_loader, optimizer")
    body = "\n    ".join(lines.split("\n"))
    before = text.replace("{}", body.format("", "", ""))
    after = text.replace("{}", body.format("with torch.no_grad():\n        ", "    ", ""))
    assert fixed(before, "GPU301") == after
    assert findings(after, "GPU301") == []


def test_a_coroutine_is_not_decorated() -> None:
    text = EVALUATE.format(decorator="").replace("def ", "async def ").replace("for x", "async for x")
    assert fixed(text, "GPU301") == text


@pytest.mark.parametrize("name", ["forward", "compute_loss", "training_step"])
def test_a_hook_that_may_train_is_not_decorated(name: str) -> None:
    text = HEAD + (
        "class Net(torch.nn.Module):\n"
        "    def __init__(self, teacher):\n"
        "        super().__init__()\n"
        "        self.teacher = teacher.cuda()\n\n"
        f"    def {name}(self, x):\n"
        "        self.teacher.eval()\n"
        "        return self.teacher(x.cuda())\n"
    )
    assert fixed(text, "GPU301") == text


# ---- old names ------------------------------------------------------------------------------------------

AMP = {
    "by path": (
        "import torch\n",
        "torch.cuda.amp.{}()",
        "import torch\n",
        'torch.amp.{}("cuda")',
    ),
    "by name": (
        "import torch\nfrom torch.cuda.amp import GradScaler, autocast\n",
        "{}()",
        "import torch\nfrom torch.amp import GradScaler, autocast\n",
        '{}("cuda")',
    ),
    "by module": (
        "import torch\nfrom torch.cuda import amp\n",
        "amp.{}()",
        "import torch\nfrom torch import amp\n",
        'amp.{}("cuda")',
    ),
    "by alias of the module": (
        "import torch\nimport torch.cuda.amp as mixed\n",
        "mixed.{}()",
        "import torch\nimport torch.amp as mixed\n",
        'mixed.{}("cuda")',
    ),
    "with options": (
        "import torch\n",
        "torch.cuda.amp.{}(enabled=True)",
        "import torch\n",
        'torch.amp.{}("cuda", enabled=True)',
    ),
}
STEP = """\
import torch.nn.functional as F


def train(model, loader, optimizer):
    model.cuda()
    scaler = {scaler}
    for x, y in loader:
        with {autocast}:
            loss = F.cross_entropy(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
"""


@pytest.mark.parametrize(("imports", "old", "new_imports", "new"), AMP.values(), ids=AMP)
def test_amp_names_the_device(imports: str, old: str, new_imports: str, new: str) -> None:
    before = imports + STEP.format(scaler=old.format("GradScaler"), autocast=old.format("autocast"))
    after = new_imports + STEP.format(scaler=new.format("GradScaler"), autocast=new.format("autocast"))
    assert_fix(before, after)
    assert fixed(before, unsafe=False) == after


def test_positions_of_autocast_become_names() -> None:
    text = "import torch\n" + STEP.format(scaler='torch.amp.GradScaler("cuda")', autocast="{}")
    assert_fix(
        text.format("torch.cuda.amp.autocast(True, torch.bfloat16)"),
        text.format('torch.amp.autocast("cuda", enabled=True, dtype=torch.bfloat16)'),
    )


def test_names_under_an_alias_and_in_annotations() -> None:
    imports = "import torch\nfrom torch.{0}amp import GradScaler as Scaler, autocast, custom_fwd\n\n\n"
    text = imports + (
        "class Op(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    @custom_fwd{1}\n"
        "    def forward(ctx, x):\n"
        "        return x\n\n\n"
        "def check(scaler: Scaler) -> bool:\n"
        "    return isinstance(scaler, Scaler)\n\n\n"
    )
    assert_fix(
        text.format("cuda.", "") + STEP.format(scaler="Scaler(2.0)", autocast="autocast()"),
        text.format("", '(device_type="cuda")')
        + STEP.format(scaler='Scaler("cuda", 2.0)', autocast='autocast("cuda")'),
    )


@pytest.mark.parametrize(
    "imports",
    [
        "import torch\nfrom torch.cuda.amp import GradScaler, autocast, common\n",
        "import torch\nfrom torch.cuda.amp import GradScaler, autocast\ncontext = autocast if torch else None\n",
        "import torch\nfrom torch.cuda.amp import GradScaler, autocast\n__all__ = ['autocast']\n",
        "import torch\nfrom torch.cuda.amp import GradScaler, autocast\nautocast = autocast\n",
    ],
)
def test_in_doubt_the_old_names_stay(imports: str) -> None:
    assert_no_fix(imports + STEP.format(scaler="GradScaler()", autocast="autocast()"), "GPU502")


def test_apex_is_for_a_person() -> None:
    text = "from apex import amp\n" + STEP.format(scaler="None", autocast="amp.scale_loss(loader, optimizer)")
    for finding in findings(text, "GPU502"):
        assert finding.fix is not None
        assert finding.fix.applicability is Applicability.MANUAL
