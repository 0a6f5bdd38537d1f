"""What the tests share: a tree of files from a dict, and rules that need no model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_rules import FAKE_RULES

Tree = Callable[[dict[str, str]], Path]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Writes files below an empty folder, makes it the current one, and returns it."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return write


@pytest.fixture
def fake_rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The rules of ``fake_rules.py`` in place of the real ones."""
    from gpulint import config, rule

    def forget() -> None:
        rule.all_rules.cache_clear()
        config._known_selectors.cache_clear()

    forget()
    monkeypatch.setattr(rule, "_discover", lambda: iter(FAKE_RULES))
    yield
    forget()
