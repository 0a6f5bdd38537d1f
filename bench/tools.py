"""What the benchmarks share: pinned tools in environments of their own, pinned sources, printing.

Everything downloaded lands in ``bench/.cache`` (or ``$GPULINT_BENCH_CACHE``) and is made once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("GPULINT_BENCH_CACHE") or ROOT / "bench" / ".cache")

# Versions are pinned so that two runs a month apart measure the same thing.
TOOLS = {
    "ruff": ("ruff==0.17.6",),
    "torch-preflight": ("torch-preflight==0.5.0", "libcst==1.9.0"),
    "hotpath-ai": ("hotpath-ai==0.1.0",),
    "torchfix": ("torchfix==0.7.0",),
}


class BenchError(Exception):
    """Something the benchmark needs could not be had; the message is one sentence."""


def say(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(command: Sequence[str | Path]) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode:
        words = " ".join(map(str, command))
        raise BenchError(f"{words} ended with {done.returncode}:\n{done.stderr[-2000:]}")


def environment(name: str, requirements: Sequence[str]) -> Path:
    """The ``bin`` folder of a virtual environment holding ``requirements``, made on first use."""
    folder = CACHE / "envs" / name
    made_of = "\n".join([sys.version, *requirements])
    stamp = folder / "made-of.txt"
    if not stamp.exists() or stamp.read_text() != made_of:
        sys.stderr.write(f"making an environment for {name} ...\n")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pip_install: list[str | Path] = [folder / "bin" / "python", "-m", "pip", "install", "--quiet"]
        run([*pip_install, *(item.partition("#")[0] for item in requirements)])
        stamp.write_text(made_of)
    return folder / "bin"


def tool(name: str) -> Path:
    return environment(name, TOOLS[name])


def gpulint() -> Path:
    """gpulint as a user gets it: this source tree installed, again whenever the tree has changed."""
    tree = hashlib.sha256()
    folders = (ROOT / "gpulint", ROOT / "rules")
    for path in (ROOT / "pyproject.toml", *(path for folder in folders for path in package_files(folder))):
        tree.update(str(path).encode() + path.read_bytes())
    return environment("gpulint", [f"{ROOT}#{tree.hexdigest()}"]) / "gpulint"


def package_files(folder: Path) -> Iterator[Path]:
    """Sources and data of a package, without what running it leaves behind."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def source_tree(name: str, version: str, cache: Path = CACHE) -> Path:
    """The unpacked wheel of ``name`` from PyPI, without its dependencies."""
    folder = cache / "wheels" / f"{name}-{version}"
    if not folder.is_dir():
        sys.stderr.write(f"fetching {name} {version} ...\n")
        with TemporaryDirectory() as temporary:
            wanted = [f"{name}=={version}", "--no-deps", "--only-binary=:all:", "--quiet"]
            run([sys.executable, "-m", "pip", "download", *wanted, "--dest", temporary])
            (wheel,) = Path(temporary).glob("*.whl")
            part = folder.with_name(folder.name + ".part")
            shutil.rmtree(part, ignore_errors=True)
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(part)
            part.rename(folder)
    return folder


@contextmanager
def copies(tree: Path, times: int = 1) -> Iterator[Path]:
    """``tree``, copied outside this repository, whose .gitignore and settings would leak in.

    With ``times`` above 1 the folder holds that many copies under different package names.
    """
    with TemporaryDirectory(prefix="gpulint-bench-") as temporary:
        for number in range(times):
            shutil.copytree(tree, Path(temporary) / f"{tree.name}_{number}")
        yield Path(temporary)


def count(files: Iterable[Path]) -> tuple[int, int]:
    """How many files, and how many lines in them."""
    lines = [path.read_bytes().count(b"\n") for path in files]
    return len(lines), sum(lines)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned columns, numbers to the right. The first row is the heading."""
    columns = []
    for heading, *cells in zip(*rows, strict=True):
        width = max(map(len, (heading, *cells)))
        numbers = all(cell[:1].isdigit() for cell in cells if cell) and any(cells)
        columns.append([cell.rjust(width) if numbers else cell.ljust(width) for cell in (heading, *cells)])
        columns[-1].insert(1, "-" * width)
    return "\n".join("  ".join(row).rstrip() for row in zip(*columns, strict=True))
