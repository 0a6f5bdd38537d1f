"""Comments that silence findings, and those that silence none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpulint import suppress
from gpulint.finding import Applicability, Confidence, Finding, Span
from gpulint.fix import apply_fixes
from gpulint.rule import all_rules
from gpulint.source import Source, from_text
from gpulint.suppress import UNUSED, filtered, suppressions

pytestmark = pytest.mark.usefixtures("fake_rules")
WORDS = {"slow": "GPU101", "odd": "GPU102", "heavy": "GPU201"}


def source_of(text: str) -> Source:
    return from_text(Path("train.py"), text)


def found_in(source: Source) -> list[Finding]:
    """A finding for each word, or for ``word(...)`` up to its bracket, outside comments."""
    code = re.sub(r"#[^\r\n]*", lambda m: "." * len(m[0]), source.text)
    return [
        Finding(Span(*m.span()), "no good word", Confidence.LIKELY, code=WORDS[m[1]], path=source.path)
        for m in re.finditer(r"\b(slow|odd|heavy)\b(?:\([^)]*\))?", code)
    ]


def left(text: str, ran: tuple[str, ...] = ("GPU101", "GPU102", "GPU201", "GPU301")) -> list[str]:
    """What is still reported: ``line code`` in the order of the text."""
    source = source_of(text)
    rules = [rule for rule in all_rules() if rule.code in ran]
    findings = [finding for finding in found_in(source) if finding.code in ran]
    kept = sorted(filtered(source, findings, rules), key=lambda f: f.span)
    return [f"{source.position(f.span.start)[0]} {f.code}" for f in kept]


def mended(text: str) -> str:
    source = source_of(text)
    return apply_fixes(source, filtered(source, found_in(source), all_rules()), unsafe=False)[0]


def messages(text: str) -> list[str]:
    source = source_of(text)
    return [f.message for f in filtered(source, found_in(source), all_rules()) if f.code == UNUSED.code]


# ---- what a comment silences -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "comment",
    [
        "# gpulint: ignore",
        "#gpulint:ignore",
        "# GPUlint: Ignore  because",
        "# gpulint: ignore[GPU101]",
        "# gpulint: ignore[gpu101]",
        "# gpulint: ignore [ GPU101 ]",
        "# gpulint: ignore[slow-word] once an epoch, see #12",
        "# gpulint: ignore[GPU1]",
        "# gpulint: ignore[sync]",
        "# gpulint: ignore[ALL]",
        "# type: ignore # gpulint: ignore[GPU101]",
        "# gpulint: ignore[GPU101]  # noqa: E501",
        "# noqa",
        "#NOQA",
        "# noqa: GPU101",
        "# noqa:gpu101",
        "# noqa: E501, GPU101",
        "# noqa: E501 GPU101 - why",
        "# noqa: E501  # gpulint: ignore[GPU101]",
        "# type: ignore  # noqa: GPU101",
    ],
)
def test_a_comment_silences_its_line(comment: str) -> None:
    assert left(f"x = slow  {comment}\ny = slow\n") == ["2 GPU101"]


@pytest.mark.parametrize(
    "comment",
    [
        "# noqa: E501",
        "# noqa: GPU2",
        "# noqability",
        "# flake8: noqa",
        "# gpulint: ignored",
        "# gpulint: ignore-files",
        "# gpulint: ignore[GPU101",  # never closed: not taken for the one that silences all
        "# see gpulint: ignore",
        "# pylint: ignore",
    ],
)
def test_other_comments_silence_nothing(comment: str) -> None:
    assert left(f"x = slow  {comment}\n") == ["1 GPU101"]


def test_codes_silence_only_their_rules() -> None:
    assert left("x = slow, heavy  # gpulint: ignore[GPU101]\n") == ["1 GPU201"]
    assert left("x = slow, odd, heavy  # gpulint: ignore[GPU101, heavy-word]\n") == ["1 GPU102"]


def test_strings_that_look_like_comments_are_none() -> None:
    assert left("x = slow, '# gpulint: ignore'\n") == ["1 GPU101"]
    assert left("x = '''\n# gpulint: ignore-file\n'''; slow\n") == ["3 GPU101"]


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_a_call_of_several_lines(newline: str) -> None:
    def lines(*texts: str) -> str:
        return "".join(text + newline for text in texts)

    assert left(lines("slow(  # noqa", "  1,", ")", "slow")) == ["4 GPU101"]
    assert left(lines("slow(", "  1,  # noqa", ")", "slow")) == ["4 GPU101"]
    assert left(lines("slow(", "  1,", ")  # gpulint: ignore", "slow")) == ["4 GPU101"]


def test_the_first_and_last_line_speak_for_the_whole_statement() -> None:
    assert left("f(\n  slow,\n  é, heavy,\n)  # gpulint: ignore[GPU101, GPU201]\nslow\n") == ["5 GPU101"]
    assert left("f(  # noqa\n  slow,\n  2,\n)\n") == []
    assert left("f(\n  slow,\n  2,  # noqa\n)\n") == ["2 GPU101"]


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_statements_end_alike_with_every_newline(newline: str) -> None:
    assert left(newline.join(["f(  # noqa", "  slow,", ")", "slow", ""])) == ["4 GPU101"]


def test_a_header_does_not_speak_for_its_block() -> None:
    assert left("if slow:  # noqa\n    slow\n") == ["2 GPU101"]


def test_a_comment_on_its_own_line_applies_to_the_next_statement() -> None:
    assert left("slow\n# gpulint: ignore[GPU101]\nslow\nslow\n") == ["1 GPU101", "4 GPU101"]
    assert left("# gpulint: ignore\n# more\n\nf(\n  1,\n  slow,\n)\n") == []
    assert left("if x:\n    # gpulint: ignore\n    slow\n    slow\n") == ["4 GPU101"]
    assert left("f(\n  # gpulint: ignore\n  slow,\n  slow,\n  1)\n") == ["4 GPU101"]
    assert left("# noqa\nslow\n") == ["2 GPU101"]


def test_a_whole_file() -> None:
    assert left("slow\nheavy\n# gpulint: ignore-file\n") == []
    assert left("# gpulint: ignore-file[GPU101] made by hand\nslow\nheavy\n") == ["3 GPU201"]


def test_a_file_that_is_no_python_is_read_as_far_as_it_goes() -> None:
    assert left("slow  # gpulint: ignore\nx = (\nheavy") == ["3 GPU201"]
    assert left("slow  # noqa\n  x\n y\nheavy ''' ") == ["4 GPU201"]


def test_files_without_such_comments_are_not_tokenized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suppress, "_tokens", lambda text: pytest.fail("tokenized"))
    assert suppressions(source_of("slow  # quick\n")) == []


# ---- GPU001 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("x = 1  # gpulint: ignore[GPU101] why\n", "x = 1\n"),
        ("x = 1  # gpulint: ignore", "x = 1"),
        ("x = 1\r\n  # gpulint: ignore\r\ny = 2\r\n", "x = 1\r\ny = 2\r\n"),
        ("# gpulint: ignore-file\n", ""),
        ("x = 1\n# gpulint: ignore", "x = 1\n"),
        ("é = 1  # gpulint: ignore[GPU101]  # noqa: E501\n", "é = 1  # noqa: E501\n"),
        ("x = 1  # type: ignore  # gpulint: ignore see #12\n", "x = 1  # type: ignore\n"),
        ("slow  # gpulint: ignore[GPU101,GPU201] why\n", "slow  # gpulint: ignore[GPU101] why\n"),
        ("slow  # gpulint: ignore[GPU999, gpu101]\n", "slow  # gpulint: ignore[GPU101]\n"),
        ("slow  # gpulint: ignore[GPU101, slow-word]\n", "slow  # gpulint: ignore[GPU101]\n"),
        ("x = 1  # gpulint: ignore[]\n", "x = 1\n"),
    ],
)
def test_what_silences_nothing_is_reported_and_removed(text: str, fixed: str) -> None:
    assert [line.split()[1] for line in left(text)] == ["GPU001"]
    assert mended(text) == fixed
    assert left(fixed) == []


def test_the_fix_of_an_unused_comment_is_safe() -> None:
    (finding,) = filtered(source_of("x  # gpulint: ignore\n"), [], all_rules())
    assert finding.fix is not None
    assert finding.fix.applicability is Applicability.SAFE
    assert finding.confidence is Confidence.CERTAIN


def test_messages() -> None:
    assert messages("x  # gpulint: ignore\n") == ["nothing here for this comment to silence"]
    assert messages("x  # gpulint: ignore[GPU101, sync]\n") == ["nothing here for `GPU101`, `sync` to silence"]
    assert messages("slow  # gpulint: ignore[slow-wrod, GPU101]\n") == [
        "there is no rule `slow-wrod`: the nearest is `slow-word`"
    ]
    assert messages("x  # gpulint: ignore[zzz]\n") == ["there is no rule `zzz`"]


def test_noqa_is_never_reported_as_unused() -> None:
    assert left("x = 1  # noqa\ny = 2  # noqa: GPU101\n") == []


def test_comments_for_rules_that_did_not_run_are_left_alone() -> None:
    text = "x = 1  # gpulint: ignore[GPU101]\ny = 2  # gpulint: ignore\nz = 3  # gpulint: ignore[sync]\n"
    assert left(text, ran=("GPU102", "GPU201")) == []
    assert left(text, ran=("GPU101",)) == ["1 GPU001"]


def test_an_unused_comment_can_be_silenced_by_name() -> None:
    assert left("x  # gpulint: ignore[GPU101, unused-suppression]\n") == []
    assert left("x  # gpulint: ignore[GPU101]  # noqa: GPU001\n") == []
    assert left("# gpulint: ignore-file[GPU001]\nx  # gpulint: ignore\n") == []
    assert left("x  # gpulint: ignore[GPU101]  # noqa\n") == ["1 GPU001"]


def test_unused_comments_need_not_be_reported() -> None:
    assert filtered(source_of("x  # gpulint: ignore\n"), [], all_rules(), report_unused=False) == []
