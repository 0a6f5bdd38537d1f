"""What users install: the wheel holds everything, and each way to install gives a working command."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpulint import __version__

ROOT = Path(__file__).resolve().parent.parent
PACKED = ("pyproject.toml", "README.md", "LICENSE", "gpulint", "rules")

EXAMPLE = """\
import torch

def train(model, loader, criterion, optimizer):
    model.cuda()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


def run(command: Sequence[str | Path], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)


def must(command: Sequence[str | Path], cwd: Path) -> str:
    done = run(command, cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_version_is_written_once_more_only() -> None:
    stated = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE)
    assert stated
    assert stated[1] == __version__


def test_every_package_is_listed() -> None:
    """The packages are listed by hand in pyproject.toml; a forgotten one would be missing in the wheel."""
    pyproject = (ROOT / "pyproject.toml").read_text("utf-8")
    listed = set(re.findall(r'^    "(gpulint[\w.]*)",$', pyproject, re.MULTILINE))
    there = {
        ".".join(path.parent.relative_to(ROOT).parts).replace("rules", "gpulint.rules", 1)
        if path.is_relative_to(ROOT / "rules")
        else ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("gpulint", "rules")
        for path in (ROOT / top).rglob("__init__.py")
    }
    assert listed == there


def checkout(target: Path) -> Path:
    """A copy of what a build needs, so that it leaves nothing behind in this one."""
    target.mkdir()
    for name in PACKED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, target)
    return target


def python_with_the_same_dependencies(folder: Path) -> Path:
    """A fresh environment that sees this one's packages, except gpulint: nothing is downloaded."""
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    for package in Path(next(p for p in sys.path if p.endswith("site-packages"))).iterdir():
        if "gpulint" not in package.name and package.suffix != ".pth":
            (site / package.name).symlink_to(package)
    return folder / "bin" / "python"


@pytest.mark.slow
@pytest.mark.parametrize("how", ["wheel", "folder", "editable"])
def test_each_way_to_install(how: str, tmp_path: Path) -> None:
    source = checkout(tmp_path / "source")
    python = python_with_the_same_dependencies(tmp_path / "env")
    pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    options = ["--no-deps", "--no-build-isolation", "--no-index"]
    if how == "wheel":
        must([*pip, "wheel", *options, "--wheel-dir", tmp_path / "dist", source], tmp_path)
        wheel = next((tmp_path / "dist").glob("gpulint-*.whl"))
        names = zipfile.ZipFile(wheel).namelist()
        assert {"gpulint/py.typed", "gpulint/model/torch_api.toml", "gpulint/rules/sync/__init__.py"} <= set(names)
        assert {name.partition("/")[0] for name in names} == {"gpulint", f"gpulint-{__version__}.dist-info"}
        must([*pip, "install", *options, wheel], tmp_path)
    else:
        must([*pip, "install", *options, *(["-e"] if how == "editable" else []), source], tmp_path)

    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "train.py").write_text(EXAMPLE, "utf-8")
    commands: list[list[str | Path]] = [[python.with_name("gpulint")], [python, "-m", "gpulint"]]
    for command in commands:
        assert must([*command, "--version"], tmp_path / "work") == f"gpulint {__version__}\n"
        listed = must([*command, "rule", "--all"], tmp_path / "work")
        assert "GPU101  item-in-step-loop" in listed
        found = run([*command, "--output-format", "concise", "train.py"], tmp_path / "work")
        assert found.returncode == 1, found.stdout + found.stderr
        assert "GPU101" in found.stdout
