"""What each format makes of the same findings; ``GPULINT_UPDATE_SNAPSHOTS=1`` writes the files anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from made_up import CLEAN, REPORT

from gpulint import __version__
from gpulint.report import FORMATS, Style, render

SNAPSHOTS = Path(__file__).parent / "snapshots"
CASES = {
    "text.txt": ("text", Style()),
    "text-explain.txt": ("text", Style(explain=True, verbose=True, statistics=True)),
    "text-narrow.txt": ("text", Style(explain=True, width=50)),
    "text-color.txt": ("text", Style(explain=True, color=True)),
    "text-quiet.txt": ("text", Style(quiet=True)),
    "concise.txt": ("concise", Style()),
    "report.json": ("json", Style(statistics=True)),
    "report.sarif": ("sarif", Style()),
    "github.txt": ("github", Style()),
}


@pytest.mark.parametrize("name", CASES)
def test_output_is_as_before(name: str) -> None:
    output = render(REPORT, *CASES[name]).replace(f'"{__version__}"', '"VERSION"')
    path = SNAPSHOTS / name
    if os.environ.get("GPULINT_UPDATE_SNAPSHOTS"):
        path.write_text(output, encoding="utf-8", newline="\n")
    assert output == path.read_text(encoding="utf-8")


def test_no_snapshot_is_left_over() -> None:
    assert {path.name for path in SNAPSHOTS.iterdir()} == set(CASES)


@pytest.mark.parametrize("name", FORMATS)
def test_a_clean_run(name: str) -> None:
    output = render(CLEAN, name)
    expected = {"text": "No findings in 1 file.\n", "concise": "", "github": ""}
    assert output == expected.get(name, output)
    assert not output or output.endswith("\n")


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown output format 'xml': choose from text, concise"):
        render(CLEAN, "xml")
