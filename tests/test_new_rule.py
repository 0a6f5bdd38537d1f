"""The scaffolder: four new files, no existing one touched, and a rule that discovery accepts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Tree

from gpulint.new_rule import NewRuleError, create

CHECKOUT = {
    "rules/__init__.py": "",
    "rules/sync/__init__.py": "",
    "rules/sync/first.py": 'RULE = Rule(code="GPU101", name="first")\n',
    "rules/sync/ninth.py": "RULE = Rule(code='GPU109', name='ninth')\n",
    "rules/transfer/__init__.py": "",
    "gpulint/rule.py": "",
    "sub/keep": "",
}


def contents(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_it_writes_files_and_edits_none(tree: Tree) -> None:
    root = tree(CHECKOUT)
    before = contents(root)
    made = create("sync/wait-for-it", "0.2", start=root / "sub")
    after = contents(root)
    new = [
        "rules/sync/wait_for_it.py",
        "fixtures/wait-for-it/basic.py",
        "fixtures/wait-for-it/basic_ok.py",
        "docs/rules/wait-for-it.md",
    ]
    assert [path.relative_to(root).as_posix() for path in made.files] == new
    assert after.keys() - before.keys() == set(new)
    assert before.items() <= after.items()
    assert b"# expect: GPU110" in after["fixtures/wait-for-it/basic.py"]
    assert b"(GPU110)" in after["docs/rules/wait-for-it.md"]


def test_the_next_code_is_past_the_highest_of_the_band(tree: Tree) -> None:
    root = tree(CHECKOUT)
    assert create("sync/a", "0.2").code == "GPU110"
    assert create("sync/b", "0.2").code == "GPU111"
    assert create("transfer/c", "0.2").code == "GPU201"
    assert create("sync/d", "0.2", code="GPU105", start=root).code == "GPU105"


@pytest.mark.parametrize(
    ("where", "code", "message"),
    [
        ("wait-for-it", None, "'wait-for-it' is not of the form GROUP/NAME"),
        ("speed/x", None, "with a group of sync, transfer, memory, distributed, precision"),
        ("sync/Wait", None, "lower-case words joined by dashes, unlike 'Wait'"),
        ("sync/../x", None, "lower-case words joined by dashes"),
        ("transfer/first", None, "there is a rule named first already"),
        ("sync/x", "GPU201", "a code of the group sync is GPU101 to GPU199, not GPU201"),
        ("sync/x", "GPU100", "not GPU100"),
        ("sync/x", "GPU109", "GPU109 is the code of ninth"),
    ],
)
def test_mistakes(tree: Tree, where: str, code: str | None, message: str) -> None:
    root = tree(CHECKOUT)
    before = contents(root)
    with pytest.raises(NewRuleError) as caught:
        create(where, "0.2", code)
    assert message in str(caught.value)
    assert contents(root) == before


def test_a_full_band(tree: Tree) -> None:
    tree(CHECKOUT | {"rules/sync/last.py": 'Rule(code="GPU199", name="last")'})
    with pytest.raises(NewRuleError, match="all codes of the group sync are taken"):
        create("sync/x", "0.2")


def test_outside_a_checkout(tree: Tree) -> None:
    tree({"x": ""})
    with pytest.raises(NewRuleError, match="made in a checkout of gpulint"):
        create("sync/x", "0.2")


def test_a_file_in_the_way_is_left_alone(tree: Tree) -> None:
    root = tree(CHECKOUT | {"fixtures/x/basic.py": "mine\n"})
    with pytest.raises(NewRuleError, match="is there already"):
        create("sync/x", "0.2")
    assert not (root / "rules/sync/x.py").exists()


def test_what_is_written_is_clean(tree: Tree) -> None:
    root = tree(CHECKOUT)
    made = create("sync/wait-for-it", "0.2")
    config = Path(__file__).parent.parent / "pyproject.toml"
    for command in (["check"], ["format", "--check"]):
        run = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--config", str(config), str(made.files[0])],
            cwd=root, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert run.returncode == 0, run.stdout + run.stderr
