"""The hooks, run by the real pre-commit on a repository of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PRE_COMMIT = Path(sys.executable).with_name("pre-commit")
PACKED = ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "gpulint", "rules")

TRAIN = """\
import torch
from torch.utils.data import DataLoader


def train(model, dataset, criterion, optimizer):
    model.cuda()
    loader = DataLoader(dataset, batch_size=8, num_workers=4)
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed"),
    pytest.mark.skipif(not PRE_COMMIT.exists(), reason="pre-commit is not installed"),
]


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path) -> Path:
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "files")
    return folder


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This checkout as a repository with a commit, as pre-commit wants it."""
    folder = tmp_path_factory.mktemp("hooks")
    for name in PACKED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif source.exists():
            shutil.copy2(source, folder)
    return repository(folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pre-commit's store, shared by the tests so that the hooks' environment is built once."""
    return tmp_path_factory.mktemp("store")


def try_repo(hooks: Path, home: Path, work: Path, hook: str) -> subprocess.CompletedProcess[str]:
    hidden = ("GIT_", "PRE_COMMIT", "VIRTUAL_ENV")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)}
    environment["PRE_COMMIT_HOME"] = str(home)
    return subprocess.run(
        [PRE_COMMIT, "try-repo", str(hooks), hook, "--all-files", "--verbose", "--color", "never"],
        cwd=work, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_hooks(hooks: Path, home: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN, "utf-8")
    (tmp_path / "notes.txt").write_text("no Python\n", "utf-8")
    work = repository(tmp_path)

    first = try_repo(hooks, home, work, "gpulint")
    if "pip" in first.stderr and "No matching distribution" in first.stderr:
        pytest.skip("the package index can't be reached")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "Failed" in first.stdout
    assert "GPU201" in first.stdout
    assert "notes.txt" not in first.stdout

    fixed = try_repo(hooks, home, work, "gpulint-fix")
    assert fixed.returncode == 1, fixed.stdout + fixed.stderr  # pre-commit: files were modified
    assert "files were modified by this hook" in fixed.stdout
    assert "pin_memory=True" in (work / "train.py").read_text("utf-8")

    git(work, "add", "--all")
    again = try_repo(hooks, home, work, "gpulint")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "Passed" in again.stdout
