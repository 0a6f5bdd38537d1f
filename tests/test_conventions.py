"""The house rules, checked: codes, pages, messages, sizes, and who may import whom."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from harness import FIXTURES, REPOSITORY, relint

from gpulint.rule import Rule, all_rules
from gpulint.source import from_text

CODES = [
    "GPU101", "GPU102", "GPU103", "GPU104", "GPU201", "GPU202", "GPU203", "GPU204", "GPU210", "GPU301",
    "GPU302", "GPU303", "GPU401", "GPU502",
]  # fmt: skip
BANDS = {"1": "sync", "2": "transfer", "3": "memory", "4": "distributed", "5": "precision"}
PROJECT = [
    p
    for folder in ("gpulint", "rules", "tests", "docs", "bench")
    for p in (REPOSITORY / folder).rglob("*.py")
    if ".cache" not in p.parts
]


def each_rule() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)


def test_the_codes_are_these() -> None:
    assert [rule.code for rule in all_rules()] == CODES


@each_rule()
def test_a_rule_lies_where_its_code_and_name_say(rule: Rule) -> None:
    assert BANDS[rule.code[3]] == rule.group
    assert (REPOSITORY / "rules" / rule.group / f"{rule.name.replace('-', '_')}.py").exists()


@each_rule()
def test_a_page_says_what_why_when_and_how_safe(rule: Rule) -> None:
    title, _, body = rule.doc.partition("\n")
    assert title.endswith(".")
    assert len(title) < 80
    assert re.search(r"<https://docs\.pytorch\.org/", body)
    assert "## When it stays silent" in body
    assert "## Fix safety" in body


@each_rule()
def test_a_rule_has_fixtures(rule: Rule) -> None:
    names = [path.stem for path in (FIXTURES / rule.name).glob("*.py")]
    assert any(name.endswith("_ok") for name in names)
    assert any(not name.endswith(("_ok", ".fixed")) for name in names)


@each_rule()
def test_a_message_is_one_plain_sentence(rule: Rule) -> None:
    findings = relint(from_text(Path(f"/project/{rule.name}/main.py"), rule.example.before))
    for finding in findings:
        assert finding.message[0] == "`" or finding.message[0].islower()
        assert not finding.message.endswith(".")
        assert not re.search(r"faster|slower|speed|%|\btimes\b", finding.message), "the verifier says what it is worth"
        if finding.fix is not None:
            assert finding.fix.title[0].isupper()
            assert not finding.fix.title.endswith(".")


@pytest.mark.parametrize("path", PROJECT, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_files_are_small_and_speak_of_the_project_alone(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    if "gpulint" in path.parts[len(REPOSITORY.parts) :][:1]:
        assert lines <= LARGER.get(path.name, 400)
    if path.is_relative_to(REPOSITORY / "rules"):
        assert lines <= 120
    if path != Path(__file__).resolve():
        assert not re.search(r"/work/|/root/|\bissue \d|\bhelper-\d", text)


LARGER: dict[str, int] = {}  # by name, with the reason


# ---- the import law --------------------------------------------------------------------------------


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def ours(path: Path) -> set[str]:
    return {name for name in imported(path) if name.startswith("gpulint")}


def test_rules_import_the_model_and_records_only() -> None:
    allowed = ("gpulint.model", "gpulint.finding", "gpulint.rule", "gpulint.fixes")
    for path in (REPOSITORY / "rules").rglob("*.py"):
        assert all(name.startswith(allowed) for name in ours(path)), path
        assert not {"libcst", "torch", "click"} & imported(path), path


def test_the_model_knows_no_rule_and_no_engine() -> None:
    allowed = ("gpulint.model", "gpulint.finding", "gpulint.source", "gpulint.config")
    for path in (REPOSITORY / "gpulint" / "model").rglob("*.py"):
        assert all(name.startswith(allowed) for name in ours(path)), path


def test_nothing_imports_a_rule_by_name_or_torch() -> None:
    for path in (REPOSITORY / "gpulint").rglob("*.py"):
        assert not any(name.startswith("gpulint.rules.") for name in imported(path)), path
        assert "torch" not in {name.partition(".")[0] for name in imported(path)}, path


@pytest.mark.parametrize("module", ["gpulint.cli", "gpulint.run", "gpulint.model"])
def test_starting_up_is_light(module: str) -> None:
    code = f"import sys, {module}; print(*sorted({{'libcst', 'torch', 'rich', 'numpy'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_linting_without_a_fix_needs_no_libcst(tmp_path: Path) -> None:
    file = tmp_path / "clean.py"
    file.write_text("import torch\n\n\ndef f(x):\n    return x.cuda()\n", encoding="utf-8")
    code = (
        "import sys\nfrom gpulint.cli import _run\n"
        f"assert _run(['check', '--quiet', {str(file)!r}]) == 0\nprint('libcst' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
