"""Which files are linted: suffixes, excludes, .gitignore, links, and what can't be read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Tree

from gpulint.config import Loader
from gpulint.discover import compiled, discover, project_root


def names(*paths: str) -> list[str]:
    return [path.as_posix() for path in discover(map(Path, paths), Loader()).files]


def test_python_and_notebooks_in_order(tree: Tree) -> None:
    tree(dict.fromkeys(("b.py", "a/z.py", "a/n.ipynb", "a/b/c.py", "a.pyi", "a.txt", "c"), ""))
    assert names(".") == ["b.py", "a/n.ipynb", "a/z.py", "a/b/c.py"]


def test_a_file_is_listed_once_and_as_first_named(tree: Tree) -> None:
    tree({"a/x.py": "", "a/y.py": ""})
    assert names("a/y.py", "a", "./a/x.py") == ["a/y.py", "a/x.py"]


def test_paths_stay_as_given(tree: Tree) -> None:
    root = tree({"a/x.py": ""})
    assert names(str(root / "a")) == [(root / "a/x.py").as_posix()]
    os.chdir(root / "a")
    assert names("../a") == ["../a/x.py"]


def test_default_excludes(tree: Tree) -> None:
    tree(
        dict.fromkeys(
            (".venv/x.py", "a/node_modules/x.py", "__pycache__/x.py", "build/x.py", "dist/x.py",
             "lib/site-packages/torch/x.py", "pkg/dist/x.py", "pkg/build/x.py", "builder.py"), ""
        )
    )  # fmt: skip
    assert names(".") == ["builder.py", "pkg/build/x.py", "pkg/dist/x.py"]


def test_what_is_asked_for_is_linted_though_excluded(tree: Tree) -> None:
    tree(dict.fromkeys((".venv/lib/site-packages/timm/x.py", ".venv/lib/site-packages/timm/.git/h.py"), ""))
    assert names(".venv/lib/site-packages/timm") == [".venv/lib/site-packages/timm/x.py"]
    assert names(".venv/lib/site-packages/timm/.git/h.py") == [".venv/lib/site-packages/timm/.git/h.py"]


def test_a_named_file_of_any_suffix_is_linted(tree: Tree) -> None:
    tree({"script": "", "stub.pyi": ""})
    assert names("script", "stub.pyi") == ["script", "stub.pyi"]


def test_exclude_is_relative_to_the_config_file(tree: Tree) -> None:
    root = tree(
        {
            "gpulint.toml": 'exclude = ["/a/gen", "*_pb2.py", "!keep_pb2.py"]\n',
            **dict.fromkeys(("a/gen/x.py", "b/a/gen/x.py", "b/x_pb2.py", "b/keep_pb2.py", ".venv/x.py"), ""),
        }
    )
    expected = [".venv/x.py", "b/keep_pb2.py", "b/a/gen/x.py"]
    assert names(".") == expected
    os.chdir(root / "b")
    assert names("..") == [f"../{name}" for name in expected]


def test_extend_exclude_adds(tree: Tree) -> None:
    tree({"gpulint.toml": 'extend-exclude = ["old/"]\n', "old/x.py": "", ".venv/x.py": "", "x.py": ""})
    assert names(".") == ["x.py"]


def test_a_nested_config_has_its_own_excludes(tree: Tree) -> None:
    tree({"a/gpulint.toml": 'exclude = ["/gen"]\n', "a/gen/x.py": "", "gen/x.py": "", "a/x.py": ""})
    assert names(".") == ["a/x.py", "gen/x.py"]


# --- .gitignore ------------------------------------------------------------------------------------

GITIGNORED = {
    ".git/info/exclude": "private.py\n",
    ".gitignore": "# comment\n\n/out\n*.gen.py\n!good.gen.py\nlogs/\n",
    "src/.gitignore": "local.py\n!x.gen.py\n",
    **dict.fromkeys(
        ("out/x.py", "src/out/x.py", "x.gen.py", "good.gen.py", "src/x.gen.py", "src/local.py", "local.py",
         "src/logs/x.py", "private.py"), ""
    ),
}  # fmt: skip


def test_gitignore(tree: Tree) -> None:
    tree(GITIGNORED)
    assert names(".") == ["good.gen.py", "local.py", "src/x.gen.py", "src/out/x.py"]


def test_gitignore_above_the_folder_that_is_asked_for(tree: Tree) -> None:
    root = tree(GITIGNORED)
    assert names("src") == ["src/x.gen.py", "src/out/x.py"]
    os.chdir(root / "src")
    assert names(".") == ["x.gen.py", "out/x.py"]


def test_an_ignored_folder_that_is_asked_for(tree: Tree) -> None:
    tree(GITIGNORED | {"out/y.gen.py": ""})
    assert names("out") == ["out/x.py"]


def test_gitignore_of_a_parent_outside_the_repository_does_not_count(tree: Tree) -> None:
    tree({".gitignore": "*.py\n", "repo/.git/HEAD": "", "repo/x.py": ""})
    assert names("repo") == ["repo/x.py"]


def test_respect_gitignore_can_be_switched_off(tree: Tree) -> None:
    tree({"gpulint.toml": "respect-gitignore = false\n", ".gitignore": "x.py\n", "x.py": ""})
    assert names(".") == ["x.py"]


def test_plain_patterns_agree_with_pathspec() -> None:
    """The shortcut for plain names gives what the full matcher gives."""
    patterns = ("build", "/dist", ".venv")
    fast, full = compiled(patterns), compiled((*patterns, "!never"))
    for path in ("build", "a/build", "dist", "a/dist", ".venv", "abuild", "build.py", "a"):
        for is_folder in (True, False):
            assert bool(fast(path, is_folder)) == bool(full(path, is_folder)), path


# --- links, and what can't be read -----------------------------------------------------------------


def test_links_to_folders_end(tree: Tree) -> None:
    root = tree({"a/x.py": ""})
    (root / "a/loop").symlink_to(root)
    (root / "a/self").symlink_to("self")
    assert names(".") == ["a/x.py"]
    (root / "link").symlink_to("a")
    assert names("link") == ["link/x.py"]


def test_a_linked_file_is_listed_once(tree: Tree) -> None:
    root = tree({"a/x.py": "", "y.py": ""})
    (root / "a/also.py").symlink_to("x.py")
    (root / "a/y.py").symlink_to("../y.py")
    assert names("a", ".") == ["a/also.py", "a/y.py"]


def test_files_that_are_links_in_a_circle_are_listed_and_fail_when_read(tree: Tree) -> None:
    root = tree({".keep": ""})
    (root / "a.py").symlink_to("b.py")
    (root / "b.py").symlink_to("a.py")
    (root / "gone.py").symlink_to("nowhere.py")
    (root / ".#edited.py").symlink_to("user@host.1234")
    assert set(names(".")) <= {"a.py", "b.py", "gone.py"}
    assert {"a.py", "gone.py"} <= set(names("."))
    failure = discover([Path("a.py")], Loader()).failures[0]
    assert failure.path == Path("a.py")
    assert failure.message == "can't be read: Too many levels of symbolic links"


def test_a_path_that_is_not_there(tree: Tree) -> None:
    tree({"x.py": ""})
    found = discover([Path("nowhere"), Path("x.py")], Loader())
    assert found.files == [Path("x.py")]
    assert [(f.path, f.message) for f in found.failures] == [(Path("nowhere"), "no such file or folder")]


def test_a_path_that_is_neither_file_nor_folder(tree: Tree) -> None:
    root = tree({})
    os.mkfifo(root / "pipe.py")
    assert discover([Path("pipe.py")], Loader()).failures[0].message == "neither a file nor a folder"
    assert names(".") == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_may_not_be_read(tree: Tree) -> None:
    root = tree({"locked/x.py": "", "x.py": ""})
    (root / "locked").chmod(0)
    found = discover([Path()], Loader())
    (root / "locked").chmod(0o700)
    assert found.files == [Path("x.py")]
    assert [f.message for f in found.failures] == ["can't be read: Permission denied"]


# --- projects --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mark", ["gpulint.toml", "pyproject.toml", "setup.py", ".git/HEAD"])
def test_a_project_begins_at_its_mark(tree: Tree, mark: str) -> None:
    root = tree({f"one/{mark}": "", "one/pkg/x.py": ""})
    assert project_root(root / "one/pkg/x.py", root) == root / "one"


def test_without_a_mark_the_path_given_is_the_project(tree: Tree) -> None:
    root = tree({"one/pkg/x.py": ""})
    if any((parent / ".git").exists() for parent in root.parents):
        pytest.skip("the temporary folder lies in a repository")
    assert project_root(Path("one/pkg/x.py"), Path("one")) == root / "one"
    assert project_root(Path("one/pkg/x.py"), Path("one/pkg/x.py")) == root / "one/pkg"
    assert project_root(Path("one/pkg/x.py")) == root / "one/pkg"
