"""The documentation says what is so: generated parts are fresh, commands exist, JSON keys are described."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpulint.config import _KEYS
from gpulint.new_rule import BANDS

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def gpulint(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpulint", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_what_is_generated_is_fresh() -> None:
    command = [sys.executable, "docs/generate.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_architecture_fits_on_a_few_pages() -> None:
    assert len(read("docs/architecture.md").splitlines()) <= 150


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_commands_and_links_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    for line in re.findall(r"^\$ make ([a-z -]+?)\s*(?:#.*)?$", text, re.M):
        assert set(line.split()) <= TARGETS
    for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", re.sub(r"```.*?```", "", text, flags=re.DOTALL)):
        assert "://" in link or (page.parent / link).exists(), link


def test_the_readme_names_the_two_commands_of_a_fresh_machine() -> None:
    text = read("README.md")
    assert "$ make demo" in text
    assert "$ make test" in text
    assert {"demo", "test"} <= TARGETS


def test_the_options_of_the_readme_exist() -> None:
    known = gpulint("check", "--help").stdout
    options = {
        option for line in re.findall(r"gpulint .*", read("README.md")) for option in re.findall(r"--[a-z-]+", line)
    }
    assert options
    assert {option for option in options if option not in known} == set()


def test_the_readme_has_what_gpulint_prints() -> None:
    text = read("README.md")
    assert "GPU302 graph-retained" in text
    assert "= because: fixtures/demo/engine.py" in text


def test_every_setting_is_described() -> None:
    described = re.findall(r"^\| `([a-z-]+)` \|", read("docs/configuration.md"), re.M)
    assert sorted(described) == sorted(_KEYS)


def test_the_groups_are_those_of_new_rules() -> None:
    text = read("docs/adding-a-rule.md")
    assert [group for group in BANDS if f"`{group}`" not in text] == []


def test_every_key_of_the_json_is_described() -> None:
    done = gpulint("fixtures/demo", "--output-format", "json", "--statistics")
    whole = json.loads(done.stdout)
    finding = next(f for f in whole["findings"] if f["evidence"] and f["fix"] and f["fix"]["edits"])
    real = {
        "One object": set(whole),
        "A finding": set(finding),
        "A link": set(finding["evidence"][0]),
        "A fix": set(finding["fix"]),
        "An edit": set(finding["fix"]["edits"][0]),
        "An error": {"path", "line", "message"},
        "The summary": set(whole["summary"]),
    }
    assert _documented(read("docs/output-formats.md"), real) == real


def test_an_error_in_the_json(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def f(:\n", encoding="utf-8")
    whole = json.loads(gpulint(str(tmp_path), "--output-format", "json").stdout)
    assert set(whole["errors"][0]) == {"path", "line", "message"}


def _documented(text: str, headings: dict[str, set[str]]) -> dict[str, set[str]]:
    """The keys in the first table below each heading."""
    said: dict[str, set[str]] = {}
    for heading in headings:
        match = re.search(rf"^{heading}\b.*?^\| --- .*?\n((?:\|[^\n]*\n)+)", text, re.M | re.DOTALL)
        assert match, heading
        said[heading] = {key for row in match[1].splitlines() for key in re.findall(r"`(\w+)`", row.split("|")[1])}
    return said
