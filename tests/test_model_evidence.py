"""GPU programs: where the evidence of an accelerator is, and how far it spreads."""

from __future__ import annotations

import pytest
from harness import ROOT, project, settings

TRAIN = """
import torch
{}
def train(model, loader, optimizer, device):
    model.to(device)
    for x in loader:
        loss = model(x.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
"""


def programs(files: dict[str, str], **options: object) -> set[str]:
    """The files that are part of a GPU program."""
    analysed = project(files, settings(**options), rules=())
    return {name for name, model in analysed.models.items() if model.gpu}


@pytest.mark.parametrize(
    "line",
    [
        "x = torch.ones(1).cuda()",
        "device = 'cuda'",
        'device = torch.device("cuda:0")',
        "device = f'cuda:{rank}'",
        "torch.cuda.set_device(0)",
        "torch.distributed.init_process_group('nccl')",
        "device = torch.accelerator.current_accelerator()",
        "import pytorch_lightning as pl",
        "from lightning.pytorch import Trainer",
        "from accelerate import Accelerator",
        "from transformers import Trainer, TrainingArguments",
        "model = torch.nn.DataParallel(None)",
    ],
)
def test_evidence(line: str) -> None:
    assert programs({"main.py": TRAIN.format(line)}) == {"main.py"}


@pytest.mark.parametrize(
    "line",
    [
        "device = 'cpu'",
        "# device = 'cuda'",
        "    # model.cuda()",
        "state = torch.load('x', map_location='cuda')",
        "if torch.cuda.is_available(): print('there is one')",
        "device = 'mps_fallback'",
        "name = 'barracuda'",
        "import lightning_rod",
    ],
)
def test_no_evidence(line: str) -> None:
    assert programs({"main.py": TRAIN.format(line.lstrip() if line.startswith(" ") else line)}) == set()


def test_evidence_spreads_along_imports_but_not_to_siblings() -> None:
    files = {
        "gpu.py": "import torch\nfrom shared import run\nfrom pkg.deep import help_me\nrun('cuda')\n",
        "cpu.py": "import torch\nfrom shared import run\nrun('cpu')\n",
        "shared.py": TRAIN.format("from base import name\n"),
        "base.py": "import torch\nname = 1\n",
        "pkg/__init__.py": "",
        "pkg/deep.py": "import torch\nfrom . import side\nfrom .other import (\n    one,\n    two as three,\n)\n",
        "pkg/side.py": "import torch\n",
        "pkg/other.py": "import torch\none = two = 1\n",
        "pkg/lonely.py": "import torch\nprint(torch.ones(1).item())\n",
        "user.py": "import torch\nimport gpu\n",
    }
    assert programs(files) == {
        "gpu.py", "shared.py", "base.py", "pkg/__init__.py", "pkg/deep.py", "pkg/side.py", "pkg/other.py", "user.py",
    }  # fmt: skip


def test_the_setting_overrides_the_evidence() -> None:
    text = TRAIN.format("device = 'cuda'")
    assert programs({"main.py": text}, gpu="never") == set()
    assert programs({"main.py": TRAIN.format("")}, gpu="always") == {"main.py"}
    assert programs({"main.py": TRAIN.format("")}) == set()


def test_a_findings_device_follows_the_program() -> None:
    def reported(files: dict[str, str]) -> set[str]:
        return {f.path.relative_to(ROOT).as_posix() for f in project(files).findings if f.code == "GPU101"}

    engine = TRAIN.format("")
    gpu = "import torch\nfrom engine import train\ntrain(torch.nn.Linear(1, 1), [], None, torch.device('cuda'))\n"
    cpu = gpu.replace("cuda", "cpu")
    assert reported({"engine.py": engine, "main.py": gpu}) == {"engine.py"}
    assert reported({"engine.py": engine, "main.py": cpu}) == set()
    assert reported({"engine.py": engine}) == set()
    assert reported({"engine.py": engine, "main.py": cpu, "other.py": gpu}) == {"engine.py"}


@pytest.mark.parametrize(
    ("layout", "statement"),
    [
        ({"lib.py"}, "from lib import read"),
        ({"lib.py"}, "import lib\nread = lib.read"),
        ({"lib.py"}, "import lib as l\nread = l.read"),
        ({"pkg/__init__.py", "pkg/lib.py"}, "from pkg.lib import read"),
        ({"pkg/__init__.py", "pkg/lib.py"}, "from pkg import lib\nread = lib.read"),
        ({"pkg/__init__.py", "pkg/lib.py"}, "import pkg.lib\nread = pkg.lib.read"),
        ({"pkg/lib.py"}, "from pkg.lib import read as fetch\nread = fetch"),
        ({"lib.py"}, "from lib import *"),
        ({"src/lib.py"}, "from lib import read"),
        ({"lib.py"}, "def late():\n    from lib import read\n    return read\nread = late()"),
        ({"lib.py"}, "try:\n    from lib import read\nexcept ImportError:\n    read = None"),
        ({"lib.py"}, "import functools, lib\nread = functools.partial(lib.read)"),
    ],
)
def test_ways_to_import_a_helper(layout: set[str], statement: str) -> None:
    helper = next(name for name in layout if name.endswith("lib.py"))
    files = dict.fromkeys(layout, "")
    files[helper] = "def read(t):\n    return t.item()\n"
    files["main.py"] = (
        statement
        + "\n"
        + TRAIN.format("").replace("loss.item()", "read(loss)")
        + ("\ntrain(torch.nn.Linear(1, 1), [], None, 'cuda')\n")
    )
    found = [f for f in project(files).findings if f.code == "GPU101"]
    assert [f.path.relative_to(ROOT).as_posix() for f in found] == [helper]


def test_files_that_import_one_another() -> None:
    files = {
        "a.py": "import torch\nimport b\ndef read(t):\n    return t.item()\n",
        "b.py": "import a\n"
        + TRAIN.format("").replace("loss.item()", "a.read(loss)")
        + "\ntrain(torch.nn.Linear(1, 1), [], None, 'cuda')\n",
    }
    assert {f.path.name for f in project(files).findings if f.code == "GPU101"} == {"a.py"}


def test_the_order_of_files_does_not_matter() -> None:
    files = {
        "main.py": "import torch\nfrom lib import step\n"
        + TRAIN.format("").replace("print(loss.item())", "step(loss)")
        + "\ntrain(torch.nn.Linear(1, 1), [], None, 'cuda')\n",
        "lib.py": "def step(t):\n    print(t.item(), t)\n",
        "other.py": "import torch\nfrom lib import step\nstep(torch.ones(1))\n",
    }
    forward = [(f.path, f.code, f.message) for f in project(files).findings]
    backward = [(f.path, f.code, f.message) for f in project(dict(reversed(files.items()))).findings]
    assert sorted(forward) == sorted(backward)


def test_training_spreads_along_imports_too() -> None:
    files = {
        "net.py": "import torch\nfrom torch import nn\ndef make(model):\n    return nn.DataParallel(model).cuda()\n",
        "train.py": "import torch\nfrom net import make\n" + TRAIN.format(""),
        "embed.py": "import torch\nfrom torch import nn\nmodel = nn.DataParallel(nn.Linear(1, 1)).cuda().eval()\n",
    }
    assert [f.path.name for f in project(files).findings if f.code == "GPU401"] == ["net.py"]
