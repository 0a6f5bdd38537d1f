"""Files and rules to results: a project at a time, with comments, settings, fixes and context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Tree

from gpulint import engine
from gpulint.config import Loader
from gpulint.discover import discover
from gpulint.engine import Outcome, check, context, projects, rules_for
from gpulint.finding import Checked, Confidence, ParseFailed, RuleCrashed
from gpulint.fix import MAX_ROUNDS
from gpulint.source import read

PROJECT = "[project]\nname = 'demo'\n"


def lint(*paths: str, fix: bool = False, unsafe: bool = False, **options: Any) -> Outcome:
    """What ``gpulint check`` finds, all projects in one."""
    loader = Loader(**options)
    given = [Path(path) for path in paths]
    groups, failures = projects(discover(given, loader).files, loader, given)
    whole = Outcome(results=list(failures))
    for group in groups:
        outcome = check(group, loader, fix=fix, unsafe=unsafe)
        whole.results += outcome.results
        whole.sources |= outcome.sources
        whole.originals |= outcome.originals
        whole.fixed += outcome.fixed
        whole.statistics += outcome.statistics
        whole.seconds |= outcome.seconds
    return whole


def places(outcome: Outcome) -> list[str]:
    """``path:line code`` of every finding, in the engine's order."""
    return [
        f"{f.path.as_posix()}:{outcome.sources[f.path].position(f.span.start)[0]} {f.code}" for f in outcome.findings
    ]


fake = pytest.mark.usefixtures("fake_rules")


# ---- results ---------------------------------------------------------------------------------------


@fake
def test_findings_are_stamped_and_sorted_by_place(tree: Tree) -> None:
    tree({"a.py": "heavy\nslow, slow\n", "b.py": "x = 1\n"})
    outcome = lint("a.py", "b.py")
    assert places(outcome) == ["a.py:1 GPU201", "a.py:2 GPU101", "a.py:2 GPU101"]
    assert [result.path for result in outcome.results] == [Path("a.py"), Path("b.py")]
    assert all(isinstance(result, Checked) for result in outcome.results)
    columns = [outcome.sources[f.path].position(f.span.start)[1] for f in outcome.findings]
    assert columns == [1, 1, 7]


@fake
def test_a_file_that_cannot_be_parsed_does_not_hide_the_others(tree: Tree) -> None:
    root = tree({"bad.py": "x = (\n", "good.py": "slow\n"})
    (root / "binary.py").write_bytes(b"\0")
    outcome = lint(".")
    failures = {str(r.path): r.message for r in outcome.results if isinstance(r, ParseFailed)}
    assert failures.keys() == {"bad.py", "binary.py"}
    assert failures["binary.py"] == "is a binary file, not Python source"
    assert places(outcome) == ["good.py:1 GPU101"]


@fake
def test_a_rule_that_crashes_does_not_hide_the_others(tree: Tree) -> None:
    tree({"a.py": "crash\nslow\nx  # gpulint: ignore[GPU301]\n", "b.py": "slow\n"})
    outcome = lint(".")
    crashed, checked = outcome.results
    assert isinstance(crashed, RuleCrashed)
    assert (crashed.code, crashed.message) == ("GPU301", "ZeroDivisionError: the rule crashed")
    assert "in crash_word" in crashed.traceback
    assert isinstance(checked, Checked)
    assert places(outcome) == ["a.py:2 GPU101", "b.py:1 GPU101"]  # and no GPU001: who knows


@fake
def test_a_lower_confidence_shows_more(tree: Tree) -> None:
    tree({"a.py": "slow, heavy, odd\n"})
    assert places(lint("a.py")) == ["a.py:1 GPU101", "a.py:1 GPU201"]
    assert places(lint("a.py", min_confidence=Confidence.CERTAIN)) == ["a.py:1 GPU101"]
    assert len(lint("a.py", min_confidence=Confidence.POSSIBLE).findings) == 3


@fake
def test_a_comment_for_what_would_not_be_shown_is_in_use(tree: Tree) -> None:
    tree({"a.py": "odd  # gpulint: ignore[GPU102]\n"})
    assert places(lint("a.py")) == []


# ---- settings --------------------------------------------------------------------------------------


@fake
def test_per_file_ignores(tree: Tree) -> None:
    tree(
        {
            "gpulint.toml": "[per-file-ignores]\n'tests/*' = ['sync']\n",
            "a.py": "slow, heavy\n",
            "tests/b.py": "slow, heavy\n",
        }
    )
    assert places(lint(".")) == ["a.py:1 GPU101", "a.py:1 GPU201", "tests/b.py:1 GPU201"]


@fake
@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ({}, ["GPU101", "GPU001"]),
        ({"select": ["GPU101"]}, ["GPU101"]),
        ({"select": ["GPU101", "GPU001"]}, ["GPU101", "GPU001"]),
        ({"select": ["ALL"]}, ["GPU101", "GPU001"]),
        ({"ignore": ["GPU001"]}, ["GPU101"]),
        ({"ignore": ["unused-suppression"]}, ["GPU101"]),
        ({"select": ["GPU2"], "extend_select": ["GPU001"]}, []),  # the rule it names did not run
    ],
)
def test_unused_suppressions_are_a_rule_like_any_other(tree: Tree, options: dict[str, Any], codes: list[str]) -> None:
    tree({"a.py": "slow\nx  # gpulint: ignore[GPU101]\n"})
    assert [f.code for f in lint("a.py", **options).findings] == codes


@fake
def test_rules_for_a_file(tree: Tree) -> None:
    root = tree({"gpulint.toml": "ignore = ['GPU102']\n[per-file-ignores]\n'a.py' = ['GPU101']\n"})
    settings = Loader()(root)
    assert [r.code for r in rules_for(settings, root / "a.py")] == ["GPU201", "GPU301"]
    assert [r.code for r in rules_for(settings, root / "b.py")] == ["GPU101", "GPU201", "GPU301"]


@fake
def test_statistics(tree: Tree) -> None:
    tree({"a.py": "slow\nslow", "b.py": "heavy\n"})
    outcome = lint(".")
    assert {key: outcome.statistics[key] for key in ("files", "lines")} == {"files": 2, "lines": 4}
    assert outcome.seconds.keys() == {"analysis", "rules"}


# ---- projects --------------------------------------------------------------------------------------


@fake
def test_each_project_by_itself(tree: Tree) -> None:
    root = tree({"one/pyproject.toml": PROJECT, "one/a.py": "slow", "two/setup.py": "", "two/b.py": "slow"})
    groups, failures = projects(discover([Path()], Loader()).files, Loader(), [Path()])
    assert not failures
    shown = {g.root.relative_to(root).as_posix(): [s.path.name for s in g.asked] for g in groups}
    assert shown == {"one": ["a.py"], "two": ["b.py", "setup.py"]}
    assert all(group.context == () for group in groups)  # asked for whole: nothing else to read


# ---- fixes -----------------------------------------------------------------------------------------


@fake
def test_fixes_in_all_files_of_a_project_in_memory(tree: Tree) -> None:
    root = tree({"a.py": "slow\r\nheavy\n", "b.py": "x = 1\n", "c.py": "slow\n"})
    (root / "a.py").write_bytes(b"slow\r\nheavy\n")
    outcome = lint(".", fix=True)
    assert outcome.sources[Path("a.py")].text == "fast\r\nheavy\n"
    assert sorted(map(str, outcome.originals)) == ["a.py", "c.py"]
    assert outcome.originals[Path("a.py")].text == "slow\r\nheavy\n"
    assert places(outcome) == ["a.py:2 GPU201"]
    assert [f.code for f in outcome.fixed] == ["GPU101", "GPU101"]
    assert (root / "a.py").read_bytes() == b"slow\r\nheavy\n"  # whoever calls writes


@fake
def test_unsafe_fixes_when_asked_for(tree: Tree) -> None:
    tree({"a.py": "heavy\n"})
    assert lint("a.py", fix=True, unsafe=True).sources[Path("a.py")].text == "light\n"


@fake
def test_fixes_go_on_until_nothing_is_left(tree: Tree) -> None:
    tree({"a.py": "slow  # gpulint: ignore[GPU201]\n"})
    outcome = lint("a.py", fix=True)
    assert outcome.sources[Path("a.py")].text == "fast\n"
    assert outcome.findings == []


@fake
def test_results_are_those_of_the_text_after_the_last_round(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_ROUNDS", 1)
    tree({"a.py": "slow\nheavy\n"})
    outcome = lint("a.py", fix=True)
    assert places(outcome) == ["a.py:2 GPU201"]
    (finding,) = outcome.findings
    assert outcome.sources[Path("a.py")].text[finding.span.start :] == "heavy\n"


@fake
def test_fixes_that_chase_each_other_end(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        engine, "apply_fixes", lambda source, findings, unsafe: (source.text + "slow\n", list(findings))
    )
    tree({"a.py": "slow\n"})
    assert lint("a.py", fix=True).sources[Path("a.py")].line_count == 2 + MAX_ROUNDS


@fake
def test_notebooks_are_linted_and_mended(tree: Tree) -> None:
    cell = {"cell_type": "code", "source": ["!ls\n", "slow"]}
    root = tree({"a.ipynb": json.dumps({"cells": [{"cell_type": "markdown", "source": "slow"}, cell]})})
    before = (root / "a.ipynb").read_bytes()
    outcome = lint("a.ipynb", fix=True)
    source = outcome.sources[Path("a.ipynb")]
    assert source.encoded(source.text) == before.replace(b'\\n", "slow"', b'\\n", "fast"')


# ---- context ---------------------------------------------------------------------------------------

ENGINE = """\
import torch


def evaluate(model, loader):
    model.eval()
    total = 0
    for images, labels in loader:
        total += (model(images.cuda(non_blocking=True)).argmax(1) == labels.cuda(non_blocking=True)).sum()
    return total
"""
MAIN = """\
import torch
from pkg.engine import evaluate


def main(model, loader):
    model.cuda()
    with torch.no_grad():
        print(evaluate(model, loader))


if __name__ == "__main__":
    main(torch.nn.Linear(2, 2), torch.utils.data.DataLoader([], num_workers=2, pin_memory=True))
"""


@pytest.mark.parametrize("path", ["pkg/engine.py", "pkg"])
def test_callers_that_are_not_linted_still_count(tree: Tree, path: str) -> None:
    root = tree({"pyproject.toml": PROJECT, "pkg/__init__.py": "", "pkg/engine.py": ENGINE, "main.py": MAIN})
    assert places(lint(path, select=["GPU301"])) == []
    (root / "main.py").unlink()  # without its caller, nothing says that no gradients are recorded
    assert places(lint(path, select=["GPU301"])) == ["pkg/engine.py:8 GPU301"]


@fake
def test_only_what_was_asked_for_is_reported(tree: Tree) -> None:
    tree({"setup.py": "", "a.py": "import b\nslow\n", "b.py": "slow\n", "c.py": "x = (\nimport a\n"})
    assert places(lint("a.py", fix=False)) == ["a.py:2 GPU101"]
    outcome = lint("a.py", fix=True)
    assert list(outcome.originals) == [Path("a.py")]
    assert [r.path for r in outcome.results] == [Path("a.py")]


def names(root: Path, asked: str) -> list[str]:
    found = context(root, [read(root / asked)], Loader())
    return sorted(source.path.relative_to(root).as_posix() for source in found)


def test_context_is_what_imports_or_is_imported(tree: Tree) -> None:
    root = tree(
        {
            "setup.py": "",
            "main.py": "from pkg import engine\n",
            "pkg/__init__.py": "",
            "pkg/engine.py": "from .utils import log\n",
            "pkg/utils.py": "import pkg.deep\n",
            "pkg/deep.py": "",
            "other.py": "import os\n",
            "beside.py": "from pkg.utils import log\n",  # shares a helper only
        }
    )
    found = names(root, "pkg/engine.py")
    assert {"main.py", "pkg/utils.py", "pkg/deep.py"} <= set(found)
    assert not {"other.py", "beside.py", "pkg/engine.py", "setup.py"} & set(found)


def test_context_leaves_out_what_is_excluded_or_cannot_be_read(tree: Tree) -> None:
    root = tree({"setup.py": "", "a.py": "x = 1\n", "venv/b.py": "import a\n", "c.py": "import a\n"})
    (root / "d.py").write_bytes(b"import a\n\0")
    assert names(root, "a.py") == ["c.py"]


def test_context_of_a_huge_project_is_bounded(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {f"far/away/f{n}.py": "import near.a\n" for n in range(9)}
    root = tree({"setup.py": "", "near/a.py": "", "near/b.py": "import near.a\n", **files})
    monkeypatch.setattr(engine, "CONTEXT_LIMIT", 1)
    assert names(root, "near/a.py") == ["near/b.py"]


def test_a_folder_that_is_no_project_is_not_searched_in_depth(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tree({"a.py": "", "b.py": "import a\n", "deep/c.py": "import a\n"})
    monkeypatch.setattr(engine, "discover", lambda *_: pytest.fail("searched"))
    assert names(root, "a.py") == ["b.py"]


def test_the_same_file_under_another_name_is_no_context(tree: Tree) -> None:
    root = tree({"setup.py": "", "a.py": "import b\n"})
    (root / "b.py").symlink_to(root / "a.py")
    assert names(root, "a.py") == []
