"""What the analysis knows of a value: ``reveal(x)  # revealed: Tensor[gpu, attached]`` in tests/flow."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from harness import FLOW, REPOSITORY, settings

from gpulint.model import analyse
from gpulint.source import from_text

# Reveals whose comment says what is right and the analysis does not say yet: file, expression, why.
NOT_YET: dict[tuple[str, str], str] = {}

_REVEAL = re.compile(r"^\s*reveal\((.*)\)  # revealed: (.*)$")


def programs() -> list[Path]:
    """A file of tests/flow is a project of its own, and so is a folder."""
    return sorted(p for p in FLOW.iterdir() if p.suffix == ".py" or (p.is_dir() and p.name != "__pycache__"))


def reveals() -> list[tuple[Path, Path, int, str, str]]:
    found = []
    for program in programs():
        for path in [program] if program.is_file() else sorted(program.rglob("*.py")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                if (match := _REVEAL.match(line)) is not None:
                    found.append((program, path, number, match[1], match[2]))
    return found


@cache
def revealed(program: Path) -> dict[tuple[Path, int], set[str]]:
    """Per file and line, the value of the call's argument in each variant of the function around it."""
    paths = [program] if program.is_file() else sorted(program.rglob("*.py"))
    root = program.parent if program.is_file() else program
    analysis = analyse([from_text(p, p.read_text(encoding="utf-8")) for p in paths], settings(root=root))
    assert not analysis.failures
    values: dict[tuple[Path, int], set[str]] = {}
    for path, model in analysis.models.items():
        for group in model.calls("reveal"):
            for site in group:
                values.setdefault((path, site.line), set()).add(site.args[0].describe())
    return values


def test_there_are_enough() -> None:
    assert len(reveals()) >= 60


def test_every_exception_is_used() -> None:
    known = {(str(path.relative_to(FLOW)), expression) for _, path, _, expression, _ in reveals()}
    assert set(NOT_YET) <= known


def _case(program: Path, path: Path, line: int, expression: str, wanted: str) -> ParameterSet:
    name = str(path.relative_to(FLOW))
    why = NOT_YET.get((name, expression))
    marks = [pytest.mark.xfail(reason=why, strict=True)] if why is not None else []
    return pytest.param(program, path, line, expression, wanted, id=f"{name}:{line}:{expression}", marks=marks)


@pytest.mark.parametrize(("program", "path", "line", "expression", "wanted"), [_case(*reveal) for reveal in reveals()])
def test_reveal(program: Path, path: Path, line: int, expression: str, wanted: str) -> None:
    found = revealed(program).get((path, line))
    assert found is not None, f"{path.relative_to(REPOSITORY)}:{line}: no analysis reached `reveal({expression})`"
    assert found == {wanted}, f"{path.relative_to(REPOSITORY)}:{line}: reveal({expression})"
