"""The command line: commands, options, exit codes, and what users are told when something goes wrong."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, Protocol

import click
import pytest
from conftest import Tree

from gpulint import __version__
from gpulint.cli import cli, main, with_default_command

SLOW = "slow = 1\n"  # one finding of the fake rules, safely fixable
HEAVY = "heavy = 1\n"  # one with an unsafe fix
ODD = "odd = 1\n"  # one that is `possible`, without a fix


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Gpulint(Protocol):
    def __call__(self, *arguments: str, stdin: bytes | None = None) -> Done: ...


@pytest.fixture
def gpulint(fake_rules: None, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Gpulint:
    """Runs the command line in this process, with the fake rules."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: str, stdin: bytes | None = None) -> Done:
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
        with pytest.raises(SystemExit) as left:
            main(arguments)
        out, err = capfdbinary.readouterr()
        assert isinstance(left.value.code, int)
        return Done(left.value.code, out.decode(), err.decode())

    return run


# --- commands --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["--help"]),
        (["src"], ["check", "src"]),
        (["--fix", "src"], ["check", "--fix", "src"]),
        (["-"], ["check", "-"]),
        (["check", "src"], ["check", "src"]),
        (["rule", "GPU101"], ["rule", "GPU101"]),
        (["--version"], ["--version"]),
        (["./config"], ["check", "./config"]),
    ],
)
def test_check_is_the_default_command(arguments: list[str], expected: list[str]) -> None:
    assert with_default_command(arguments) == expected


def test_paths_alone_are_checked(gpulint: Gpulint, tree: Tree) -> None:
    tree({"x.py": SLOW})
    assert gpulint("x.py", "--output-format", "concise") == gpulint("check", "--output-format", "concise", "x.py")
    assert gpulint("x.py", "--output-format", "concise") == (
        1,
        "x.py:1:1: GPU101 `slow` is no good word\n",
        "",
    )


def test_check_without_paths_takes_the_current_folder(gpulint: Gpulint, tree: Tree) -> None:
    tree({"a/x.py": SLOW})
    assert "a/x.py:1:1" in gpulint("check").out


def test_help_and_version(gpulint: Gpulint) -> None:
    assert gpulint("--version").out == f"gpulint {__version__}\n"
    assert gpulint() == gpulint("--help") == gpulint("-h")
    assert gpulint("--help").code == 0
    for name in cli.commands:
        done = gpulint(name, "--help")
        assert done.code == 0
        assert done.out.startswith(f"Usage: gpulint {name}")


def test_every_option_has_a_help_text() -> None:
    for command in cli.commands.values():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name not in ("output_format", "color"):
                assert parameter.help, f"{command.name} {parameter.name}"


# --- exit codes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("fast = 1\n", [], 0),
        ("", [], 0),
        (SLOW, [], 1),
        (SLOW, ["--exit-zero"], 0),
        (SLOW, ["--fix"], 0),
        (HEAVY, ["--fix"], 1),
        (HEAVY, ["--fix", "--unsafe-fixes"], 0),
        (SLOW, ["--diff"], 1),
        (SLOW, ["--diff", "--exit-zero"], 0),
        (HEAVY, ["--diff"], 0),
        (SLOW, ["--ignore", "GPU1"], 0),
        (ODD, [], 0),
        (ODD, ["--min-confidence", "possible"], 1),
        (HEAVY, ["--min-confidence", "certain"], 0),
        ("def f(:\n", [], 2),
        ("def f(:\n", ["--exit-zero"], 2),
        ("crash = 1\n", [], 2),
        (SLOW, ["--select", "GPU999"], 2),
        (SLOW, ["--no-such-option"], 2),
        (SLOW, ["--output-format", "xml"], 2),
        (SLOW, ["--jobs", "0"], 2),
    ],
)
def test_exit_codes(gpulint: Gpulint, tree: Tree, text: str, options: list[str], code: int) -> None:
    tree({"x.py": text})
    done = gpulint("x.py", *options)
    assert done.code == code, done
    assert "Traceback" not in done.out + done.err


def test_what_cannot_be_linted_does_not_stop_the_rest(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"a.py": "def f(:\n", "b.py": SLOW, "c.py": "", "d.py": "crash = slow = 1\n"})
    (root / "c.py").write_bytes(b"\xff\xfe\x00binary")
    done = gpulint("a.py", "b.py", "c.py", "d.py", "gone.py", "--output-format", "concise")
    assert done.code == 2
    for line in ("a.py:1:7: error: ", "b.py:1:1: GPU101", "c.py:1:1: error: ", "gone.py:1:1: error: no such file"):
        assert line in done.out
    assert "d.py:1:9: GPU101" in done.out  # the other rules' findings
    assert "rule GPU301 crashed" in done.out or "in GPU301" in done.out
    assert "Traceback" not in done.out


def test_no_file_at_all_is_said(gpulint: Gpulint, tree: Tree) -> None:
    tree({"sub/notes.txt": ""})
    done = gpulint("sub")
    assert done.code == 0
    assert "gpulint: warning: no Python file under sub\n" in done.err


# --- selection and settings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ([], ["GPU201", "GPU101"]),  # worst class first
        (["--select", "GPU1"], ["GPU101"]),
        (["--select", "GPU1,transfer"], ["GPU201", "GPU101"]),
        (["--select", "heavy-word", "--select", "GPU101"], ["GPU201", "GPU101"]),
        (["--select", "ALL", "--ignore", "sync"], ["GPU201"]),
        (["--ignore", "slow-word,transfer"], []),
        (["--isolated"], ["GPU201", "GPU101"]),
        (["--min-confidence", "possible"], ["GPU201", "GPU101", "GPU102"]),
        (["--config", 'min-confidence = "certain"'], ["GPU101"]),
        (["--config", "other.toml"], ["GPU101"]),
    ],
)
def test_selection(gpulint: Gpulint, tree: Tree, options: list[str], codes: list[str]) -> None:
    tree({"x.py": "slow = heavy = odd = 1\n", "other.toml": 'select = ["GPU101"]\n'})
    report = json.loads(gpulint("x.py", "--output-format", "json", *options).out)
    assert [finding["code"] for finding in report["findings"]] == codes


def test_each_file_has_its_own_settings(gpulint: Gpulint, tree: Tree) -> None:
    tree(
        {
            "gpulint.toml": 'ignore = ["GPU101"]\n[per-file-ignores]\n"b.py" = ["ALL"]\n',
            "a.py": SLOW + HEAVY,
            "b.py": HEAVY,
            "sub/gpulint.toml": "",
            "sub/c.py": SLOW,
        }
    )
    assert gpulint(".", "--output-format", "concise").out.splitlines() == [
        "a.py:2:1: GPU201 `heavy` is no good word",
        "sub/c.py:1:1: GPU101 `slow` is no good word",
    ]


def test_a_wrong_setting_is_one_sentence(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"x.py": SLOW, "gpulint.toml": "selct = []\n"})
    expected = f"gpulint: error: {root / 'gpulint.toml'}: `selct` is no setting of gpulint; did you mean `select`?\n"
    assert gpulint("x.py") == (2, "", expected)


def test_a_wrong_rule_is_one_sentence(gpulint: Gpulint, tree: Tree) -> None:
    tree({"x.py": SLOW})
    done = gpulint("x.py", "--select", "GPU1,slow-wrd")
    assert done == (2, "", "gpulint: error: --select: names no rule: 'slow-wrd'; did you mean `slow-word`?\n")


# --- fixes -----------------------------------------------------------------------------------------


def test_fix_says_what_is_fixed_and_what_remains(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"x.py": "slow = 1\nheavy = slow\n", "y.py": "fast = 1\n"})
    done = gpulint(".", "--fix")
    assert (root / "x.py").read_text() == "fast = 1\nheavy = fast\n"
    assert done.code == 1
    assert "Fixed 2 findings" in done.out
    assert "GPU201" in done.out
    assert "GPU101" not in done.out


def test_unsafe_fixes_are_applied_on_request(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"x.py": "slow = 1\nheavy = slow\n"})
    assert gpulint("x.py", "--fix", "--unsafe-fixes").code == 0
    assert (root / "x.py").read_text() == "fast = 1\nlight = fast\n"


def test_diff_writes_nothing(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"x.py": "a = 0\nslow = 1\nheavy = 2\n"})
    done = gpulint("x.py", "--diff", "--fix")
    assert done.out == "--- x.py\n+++ x.py\n@@ -1,3 +1,3 @@\n a = 0\n-slow = 1\n+fast = 1\n heavy = 2\n"
    assert "would fix 1 finding" in done.err
    assert (root / "x.py").read_text() == "a = 0\nslow = 1\nheavy = 2\n"
    assert gpulint("x.py", "--diff", "--quiet").err == ""


def test_the_diff_applies(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"a/x.py": "slow = 1\n", "y.py": "slow = 2", "z.py": "heavy = 3\n"})
    diff = gpulint(".", "--diff", "--unsafe-fixes").out
    subprocess.run(["git", "apply", "-p0"], cwd=root, input=diff.encode(), check=True)
    assert (root / "a/x.py").read_text() == "fast = 1\n"
    assert (root / "y.py").read_text() == "fast = 2"
    assert gpulint(".").code == 0


def test_a_file_that_may_not_be_written_is_said(gpulint: Gpulint, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({"x.py": SLOW})

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", denied)
    done = gpulint("x.py", "--fix")
    assert done.code == 2
    assert "x.py:1:1: error: cannot be written: Permission denied" in done.out
    assert (root / "x.py").read_text() == SLOW
    assert [path.name for path in root.iterdir()] == ["x.py"]


# --- standard input --------------------------------------------------------------------------------


def test_stdin(gpulint: Gpulint, tree: Tree) -> None:
    tree({})
    done = gpulint("-", "--output-format", "concise", stdin=SLOW.encode())
    assert done.code == 1
    assert "GPU101" in done.out


def test_stdin_takes_the_settings_of_its_name(gpulint: Gpulint, tree: Tree) -> None:
    tree({"sub/gpulint.toml": 'ignore = ["GPU101"]\n'})
    done = gpulint("-", "--stdin-filename", "sub/x.py", "--output-format", "concise", stdin=b"slow = heavy = 1\n")
    assert done.out == "sub/x.py:1:8: GPU201 `heavy` is no good word\n"


def test_stdin_fixed_goes_to_stdout_byte_for_byte(gpulint: Gpulint, tree: Tree) -> None:
    tree({})
    text = "\ufeffslow = 1\r\nname = 'é'\r\n"
    done = gpulint("-", "--fix", stdin=text.encode())
    assert done.out == text.replace("slow", "fast")
    assert done.code == 0


def test_stdin_diff(gpulint: Gpulint, tree: Tree) -> None:
    tree({})
    done = gpulint("-", "--diff", "--stdin-filename", "x.py", stdin=SLOW.encode())
    assert done.code == 1
    assert done.out == "--- x.py\n+++ x.py\n@@ -1 +1 @@\n-slow = 1\n+fast = 1\n"


def test_stdin_that_is_no_python(gpulint: Gpulint, tree: Tree) -> None:
    tree({})
    assert gpulint("-", stdin=b"\x00\x01").code == 2
    assert gpulint("-", stdin=b"def f(:\n").code == 2
    assert gpulint("-", stdin=b"").code == 0


# --- reports ---------------------------------------------------------------------------------------


def test_output_file(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"x.py": SLOW})
    done = gpulint("x.py", "--output-format", "json", "--output-file", "report.json")
    assert (done.code, done.out) == (1, "")
    assert json.loads((root / "report.json").read_text())["findings"][0]["code"] == "GPU101"


def test_an_output_file_that_cannot_be_written(gpulint: Gpulint, tree: Tree) -> None:
    tree({"x.py": SLOW})
    done = gpulint("x.py", "--output-file", "nowhere/report.json")
    assert done.code == 2
    assert "nowhere/report.json cannot be written: No such file or directory" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("form", ["text", "concise", "json", "sarif", "github"])
def test_every_format_names_the_finding(gpulint: Gpulint, tree: Tree, form: str) -> None:
    tree({"x.py": SLOW})
    done = gpulint("x.py", "--output-format", form)
    assert done.code == 1
    assert "GPU101" in done.out
    if form in ("json", "sarif"):
        json.loads(done.out)


def test_explain_and_statistics_and_quiet(gpulint: Gpulint, tree: Tree) -> None:
    tree({"x.py": SLOW})
    assert "the word slow stands here" not in gpulint("x.py").out
    assert "the word slow stands here" in gpulint("x.py", "--explain").out
    assert "1  GPU101" in gpulint("x.py", "--statistics").out
    assert "Found" not in gpulint("x.py", "--quiet").out


@pytest.mark.parametrize(
    ("environment", "option", "colored"),
    [
        ({}, "auto", False),
        ({}, "always", True),
        ({"NO_COLOR": "1"}, "always", True),
        ({"FORCE_COLOR": "1"}, "auto", True),
        ({"FORCE_COLOR": "0"}, "auto", False),
        ({"FORCE_COLOR": "1"}, "never", False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
    ],
)
def test_color(
    gpulint: Gpulint, tree: Tree, monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str], option: str, colored: bool,
) -> None:  # fmt: skip
    tree({"x.py": SLOW})
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in gpulint("x.py", "--color", option).out) is colored


def test_several_projects_in_several_processes(tree: Tree) -> None:
    """More than one worker gives what one gives; the real rules, since workers don't see the fake ones."""
    filler = "".join(f"x{i} = {i}\n" for i in range(15_000))
    tree({f"{name}/{file}": text for name in "ab" for file, text in (("setup.py", filler), ("x.py", filler))})
    one, two = (subprocess.run([sys.executable, "-m", "gpulint", ".", "--output-format", "concise", "-j", jobs],
                               capture_output=True, text=True, check=False) for jobs in "12")  # fmt: skip
    assert (one.returncode, one.stdout, one.stderr) == (two.returncode, two.stdout, two.stderr) == (0, "", "")


# --- rule, config, reveal, new-rule ----------------------------------------------------------------


def test_rule(gpulint: Gpulint) -> None:
    for name in ("GPU101", "gpu101", "slow-word"):
        done = gpulint("rule", name)
        assert done.code == 0
        assert done.out.startswith("GPU101 slow-word: Say fast, not slow\n")
    assert "    -slow = 1\n    +fast = 1\n" in gpulint("rule", "GPU101").out
    assert "GPU101  slow-word           Say fast, not slow\n" in gpulint("rule", "--all").out


def test_rule_of_the_engine_itself(gpulint: Gpulint) -> None:
    assert gpulint("rule", "GPU001").out.startswith("GPU001 unused-suppression: ")


def test_rule_as_markdown_and_json(gpulint: Gpulint) -> None:
    page = gpulint("rule", "GPU201", "--output-format", "markdown").out
    assert page.startswith("# Say light, not heavy (GPU201)\n\n`heavy-word`, group `transfer`. Class: memory.")
    assert "```python\nslow = 1\n```" in page
    record = json.loads(gpulint("rule", "GPU201", "--output-format", "json").out)
    assert (record["code"], record["severity"], record["fixable"]) == ("GPU201", "memory", "sometimes")
    records = json.loads(gpulint("rule", "--all", "--output-format", "json").out)
    assert {"GPU101", "GPU102", "GPU201", "GPU301"} <= {record["code"] for record in records}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one rule, or say --all."),
        (["GPU101", "--all"], "name one rule, or say --all."),
        (["GPU1011"], "there is no rule 'GPU1011'; did you mean `GPU101`?"),
        (["zzz"], "there is no rule 'zzz'\n"),
    ],
)
def test_rule_mistakes(gpulint: Gpulint, arguments: list[str], message: str) -> None:
    done = gpulint("rule", *arguments)
    assert done.code == 2
    assert message in done.err


def test_config_shows_settings_and_their_origin(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"gpulint.toml": 'gpu = "always"\n[per-file-ignores]\n"a*.py" = ["GPU1"]\n'})
    done = gpulint("config", "sub/x.py", "--select", "GPU1", "--min-confidence", "possible")
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[:2] == ["# settings for sub/x.py", f"# from {root / 'gpulint.toml'}"]
    assert f'gpu = "always"  # set by {root / "gpulint.toml"}' in lines
    assert f'per-file-ignores = {{"a*.py" = ["GPU1"]}}  # set by {root / "gpulint.toml"}' in lines
    assert 'select = ["GPU1"]  # set by the command line' in lines
    assert 'min-confidence = "possible"  # set by the command line' in lines
    assert "respect-gitignore = true" in lines
    assert lines[-1] == "# rules: GPU101 GPU102"


def test_config_as_json(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({"gpulint.toml": 'step-functions = ["my_step"]\n'})
    shown = json.loads(gpulint("config", "--output-format", "json").out)
    assert shown["source"] == str(root / "gpulint.toml")
    assert shown["settings"]["step-functions"] == {"value": ["my_step"], "origin": str(root / "gpulint.toml")}
    assert shown["settings"]["gpu"] == {"value": "auto", "origin": "default"}
    assert shown["rules"] == ["GPU101", "GPU102", "GPU201", "GPU301"]


def test_what_config_shows_can_be_written_into_a_file(gpulint: Gpulint, tree: Tree) -> None:
    root = tree({})
    (root / "gpulint.toml").write_text(gpulint("config").out)
    assert gpulint("config").code == 0


REVEAL = "import torch\n\nmodel = torch.nn.Linear(2, 2).cuda()\ny = model(torch.zeros(2, 2).cuda())\nz = y.item()\n"


def test_reveal(gpulint: Gpulint, tree: Tree) -> None:
    tree({"train.py": REVEAL, "other.py": "import torch\n", "broken.py": "def f(:\n"})
    done = gpulint("reveal", "train.py:4")
    assert done.code == 0, done
    assert "Tensor[gpu" in done.out
    assert "nothing is known at train.py:2" in gpulint("reveal", "train.py:2").out


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("train.py", "'train.py' is not of the form FILE:LINE, such as train.py:42."),
        ("train.py:x", "is not of the form FILE:LINE"),
        ("gone.py:1", "gone.py: cannot be read: No such file or directory"),
    ],
)
def test_reveal_mistakes(gpulint: Gpulint, tree: Tree, place: str, message: str) -> None:
    tree({"train.py": REVEAL})
    done = gpulint("reveal", place)
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err


def test_new_rule(gpulint: Gpulint, tree: Tree) -> None:
    tree({"rules/__init__.py": "", "gpulint/rule.py": ""})
    done = gpulint("new-rule", "sync/wait-for-it")
    assert done.code == 0, done
    assert done.out.startswith("GPU101 wait-for-it:\n  rules/sync/wait_for_it.py\n")
    assert gpulint("new-rule", "sync/wait-for-it").code == 2
    assert "is not of the form GROUP/NAME" in gpulint("new-rule", "wait").err


# --- when things go wrong --------------------------------------------------------------------------


def break_the_engine(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("gpulint.run.check", broken)


def test_an_unexpected_error_is_one_sentence(gpulint: Gpulint, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree({"x.py": SLOW})
    break_the_engine(monkeypatch, KeyError("x\ny"))
    done = gpulint("x.py")
    assert done.code == 2
    assert done.err.startswith("gpulint: internal error (KeyError: ")
    assert done.err.endswith("please report it with the output of --verbose.\n")
    assert done.err.count("\n") == 1
    assert "Traceback" in gpulint("x.py", "--verbose").err


def test_interrupted(gpulint: Gpulint, tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree({"x.py": SLOW})
    break_the_engine(monkeypatch, KeyboardInterrupt())
    done = gpulint("x.py")
    assert done.code == 130
    assert "Traceback" not in done.err


def test_interrupted_by_a_signal(tree: Tree) -> None:
    root = tree({})
    os.mkfifo(root / "never")
    process = subprocess.Popen(
        [sys.executable, "-m", "gpulint", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    time.sleep(0.6)  # long enough to be waiting for its input
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=10)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_a_reader_that_leaves_early(tree: Tree) -> None:
    """`gpulint rule --all | head -1`: no traceback, no noise, and the exit code stays meaningful."""
    tree({})
    process = subprocess.Popen(
        [sys.executable, "-m", "gpulint", "rule", "--all", "--output-format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait(timeout=20) == 0
    assert err == b""


def test_a_terminal_that_cannot_show_the_text(tree: Tree) -> None:
    tree({"x.py": "def f(:\n    'é'\n", "é.py": "def f(:\n"})
    done = subprocess.run(
        [sys.executable, "-m", "gpulint", "é.py"],
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert b"\\xe9.py:1:7: error" in done.stdout
    assert done.stderr == b""


def test_start_up_is_lean() -> None:
    """`gpulint --version` imports the command line only: no rule, no model, no libcst, no torch."""
    code = (
        "import sys\n"
        "from gpulint.cli import main\n"
        "try: main(['--version'])\n"
        "except SystemExit: print(*sorted(m for m in sys.modules if m.split('.')[0] in "
        "('gpulint', 'libcst', 'torch', 'pathspec', 'difflib', 'json')))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1] == "gpulint gpulint.cli"


def test_check_imports_neither_libcst_nor_torch(tree: Tree) -> None:
    tree({"x.py": "import torch\n"})
    code = (
        "import sys\n"
        "from gpulint.cli import main\n"
        "try: main(['x.py', '-q'])\n"
        "except SystemExit: print(*sorted({'libcst', 'torch'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"
