"""What is said of rules outside of reports: pages, tables, records; and that the written copies are fresh."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fake_rules import FAKE_RULES

from gpulint import pages

ROOT = Path(__file__).resolve().parent.parent
RULE = FAKE_RULES[0]


def test_the_generated_pages_are_fresh() -> None:
    done = subprocess.run(
        [sys.executable, "docs/generate.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_page() -> None:
    assert pages.markdown(RULE) == (
        "# Say fast, not slow (GPU101)\n\n"
        "`slow-word`, group `sync`. Class: slow. On by default, since 0.1. Its fix is always at hand.\n\n"
        "Slow words cost time.\n\nFix safety: safe.\n\n"
        "## Example\n\n```python\nslow = 1\n```\n\nUse instead:\n\n```python\nfast = 1\n```\n"
    )


def test_a_table() -> None:
    table = pages.markdown_table([RULE], "docs/rules/")
    assert table.splitlines()[-1] == ("| GPU101 | [slow-word](docs/rules/slow-word.md) | Say fast, not slow | always |")


@pytest.mark.parametrize("rule", FAKE_RULES, ids=lambda rule: rule.code)
def test_text_is_for_a_terminal(rule: object) -> None:
    text = pages.text(rule)  # type: ignore[arg-type]
    assert "##" not in text
    assert "\n\n\n" not in text
    assert text.endswith("\n")
