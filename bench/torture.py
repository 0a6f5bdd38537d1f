"""Give gpulint hostile inputs: each must be answered in one clear line, in bounded time and memory.

A case passes when the exit code is the expected one, the expected words are in the output, no
traceback is, and time and memory stay under the limits. Where a folder is linted, a good file
beside the bad one must still be linted: its finding must be there. Ends with 1 on any failure.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from measure import Run, measure
from tools import say, table

SECONDS = 20.0
MIB = 300.0
NEIGHBOUR = """\
import torch


def train(model: torch.nn.Module, loader, optimizer):
    model.cuda()
    total = 0.0
    for images, target in loader:
        loss = model(images.cuda()).sub(target.cuda()).square().mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
GPU = "import torch\nx = torch.zeros(3).cuda()\n"  # so that no screen skips the file


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[Path], Path | None]  # fills a folder; the path to lint, None for the folder
    says: str = ""  # a pattern that the output must contain
    exits: tuple[int, ...] = (2,)


def text(content: str | bytes, name: str = "x.py") -> Callable[[Path], Path | None]:
    """A file lying beside the good neighbour; the folder is linted."""

    def make(folder: Path) -> None:
        data = content.encode() if isinstance(content, str) else content
        (folder / name).write_bytes(data)
        (folder / "neighbour.py").write_text(NEIGHBOUR)

    return make


def long_file(lines: int) -> str:
    forward = "for batch in loader:\n    loss = model(batch.cuda())\n"
    step = forward + "    loss.backward()\n    total += loss.item()\n"
    head = "import torch\nmodel = torch.nn.Linear(3, 1).cuda()\ntotal = 0\n"
    return head + step * (lines // 4)


def many_functions(lines: int) -> str:
    body = NEIGHBOUR.partition("\n\n\n")[2]
    return "import torch\n" + "".join(
        body.replace("def train(", f"def train_{number}(") for number in range(lines // body.count("\n"))
    )


def nested_ifs(depth: int) -> str:
    return GPU + "".join(" " * level + "if x:\n" for level in range(depth)) + " " * depth + "x\n"


def link_loop(folder: Path) -> None:
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    (folder / "package").mkdir()
    (folder / "package" / "again").symlink_to(folder, target_is_directory=True)
    (folder / "package" / "self").symlink_to("self")


def beside_a_link_to_itself(folder: Path) -> Path:
    (folder / "package").mkdir()
    (folder / "package" / "self.py").symlink_to("self.py")
    (folder / "x.py").write_text(NEIGHBOUR)
    return folder / "x.py"


def link_to_itself(folder: Path) -> Path:
    path = folder / "x.py"
    path.symlink_to("x.py")
    return path


def dangling(folder: Path) -> None:
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    (folder / "x.py").symlink_to("gone.py")


def dangling_named(folder: Path) -> Path:
    path = folder / "x.py"
    path.symlink_to("gone.py")
    return path


def folder_named_py(folder: Path) -> None:
    (folder / "x.py").mkdir()
    (folder / "x.py" / "neighbour.py").write_text(NEIGHBOUR)


def pipe(folder: Path) -> None:
    (folder / "neighbour.py").write_text(NEIGHBOUR)
    os.mkfifo(folder / "x.py")


def pipe_named(folder: Path) -> Path:
    os.mkfifo(folder / "x.py")
    return folder / "x.py"


def forbidden(folder: Path) -> None:
    text(GPU)(folder)
    (folder / "x.py").chmod(0)


def nothing(folder: Path) -> Path:
    return folder / "gone.py"


def empty_folder(folder: Path) -> None:
    del folder


CASES = [
    Case("10,000 nested parentheses", text(GPU + "(" * 10_000 + ")" * 10_000 + "\n"), "x.py:3"),
    Case("10,000 nested lists", text(GPU + "[" * 10_000 + "]" * 10_000 + "\n"), "x.py:3"),
    Case("90 nested parentheses", text(GPU + "y = " + "(" * 90 + "x" + ")" * 90 + "\n"), exits=(1,)),
    Case("10,000 minus signs", text(GPU + "y = " + "-" * 10_000 + "1\n"), "x.py"),
    Case("10,000 terms added", text(GPU + "y = " + "+".join(["x"] * 10_000) + "\n"), exits=(1, 2)),
    Case("10,000 chained calls", text(GPU + "y = x" + ".abs()" * 10_000 + "\n"), exits=(1, 2)),
    Case("10,000 branches of elif", text(GPU + "if x: y = 1\n" + "elif x: y = 2\n" * 10_000), exits=(1, 2)),
    Case("95 nested ifs", text(nested_ifs(95)), exits=(1,)),
    Case("a line of 1,000,000 characters", text(GPU + f"y = '{'a' * 1_000_000}'\n"), exits=(1,)),
    Case("50,000 lines of loops", text(long_file(50_000)), exits=(1,)),
    Case("50,000 lines of functions", text(many_functions(50_000)), exits=(1,)),
    Case("50,000 lines of data", text(GPU + "y = [\n" + "    1.5,\n" * 50_000 + "]\n"), exits=(1,)),
    Case("a file over 10 MB", text(GPU + "y = 1  # padding\n" * 650_000), r"x\.py.*(large|big)"),
    Case("a binary file", text(b"\x7fELF\x02\x01\x01\x00" + bytes(range(256)) * 40), r"x\.py.*binary"),
    Case("a null byte", text("import torch\nx = '\0'\n"), r"x\.py"),
    Case("not UTF-8", text(b"import torch\nx = '\xff\xfe\xe9'\n"), r"x\.py.*(UTF-8|utf-8|decode|encod)"),
    Case("an unknown encoding", text("# -*- coding: klingon -*-\nimport torch\n"), r"x\.py.*klingon"),
    Case("UTF-16", text("import torch\n".encode("utf-16")), r"x\.py"),
    Case("an empty file", text(""), exits=(1,)),
    Case("only a byte order mark", text(b"\xef\xbb\xbf"), exits=(1,)),
    Case("invalid syntax", text("import torch\ndef f(:\n    pass\n"), r"x\.py:2"),
    Case("Python 2", text("import torch\nprint 'hello'\n"), r"x\.py:2"),
    Case("a broken indentation", text("import torch\nif x:\n\ty\n        z\n"), r"x\.py:[34]"),
    Case("an unfinished string", text("import torch\nx = '''abc\n"), r"x\.py:[123]"),
    Case("a notebook that is no JSON", text("{", "x.ipynb"), r"x\.ipynb"),
    Case("a loop of symlinks", link_loop, exits=(1,)),
    Case("a symlink to itself", link_to_itself, r"x\.py"),
    Case("a file beside such a symlink", beside_a_link_to_itself, r"x\.py.*GPU101", exits=(1,)),
    Case("a dangling symlink", dangling, exits=(1, 2)),
    Case("a dangling symlink, named", dangling_named, r"x\.py"),
    Case("a folder named x.py", folder_named_py, exits=(1,)),
    Case("a named pipe", pipe, exits=(1, 2)),
    Case("a named pipe, named", pipe_named, r"x\.py"),
    Case("a file that isn't there", nothing, r"gone\.py"),
    Case("an empty folder", empty_folder, exits=(0,)),
]
if os.geteuid() != 0:  # root reads everything
    CASES.append(Case("a file nobody may read", forbidden, r"x\.py.*(ermission|read)"))


def try_case(case: Case, gpulint: list[str]) -> tuple[Run, list[str]]:
    """Run one case; what is wrong with the answer."""
    with TemporaryDirectory(prefix="gpulint-torture-") as temporary:
        folder = Path(temporary)
        path = case.make(folder) or folder
        run = measure([*gpulint, "check", "--output-format", "concise", path], limit=SECONDS)
        beside = path == folder and any(folder.glob("**/neighbour.py"))
    output = run.stdout + run.stderr
    wrong = []
    if run.returncode == 124:
        wrong.append(f"took more than {SECONDS:g} s")
    elif run.returncode not in case.exits:
        wrong.append(f"exit code {run.returncode}")
    if "Traceback" in output or "internal error" in output:
        wrong.append("a crash")
    if not re.search(case.says, output):
        wrong.append(f"no line with {case.says!r}")
    if beside and not re.search(r"neighbour\.py.*GPU101", output):
        wrong.append("the file beside it is not linted")
    if run.peak_mib > MIB:
        wrong.append(f"over {MIB:g} MiB")
    return run, wrong


def answer(run: Run, width: int = 90) -> str:
    """The line that a user reads about the bad file."""
    output = (run.stderr + run.stdout).splitlines()
    lines = [line for line in output if line.strip() and "neighbour" not in line]
    about = [line for line in lines if re.search(r"\bx\.(py|ipynb)|gone\.py", line)]
    text = re.sub(r"\S*gpulint-torture-\w+/", "", (about or lines or ["(nothing)"])[0])
    return text if len(text) <= width else text[: width - 3] + "..."


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--gpulint", default=f"{shlex.quote(sys.executable)} -m gpulint", metavar="COMMAND")
    options = parser.parse_args()
    rows = [["input", "exit", "seconds", "MiB", "result"]]
    answers, failed = [], 0
    for case in CASES:
        run, wrong = try_case(case, shlex.split(options.gpulint))
        failed += bool(wrong)
        verdict = "; ".join(wrong) or "ok"
        rows.append([case.name, str(run.returncode), f"{run.seconds:.1f}", f"{run.peak_mib:.0f}", verdict])
        answers.append(f"{case.name}\n    {answer(run)}")
    say(table(rows))
    say("\nWhat it says:\n" + "\n".join(answers))
    say(f"\n{len(CASES)} inputs, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
