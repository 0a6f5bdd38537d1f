"""Rules for the tests of everything around rules: they look at the text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpulint.finding import Applicability, Confidence, Edit, Evidence, Finding, Fix, Severity, Span
from gpulint.rule import Example, Rule

if TYPE_CHECKING:
    from gpulint.model import Model


def slow_word(model: Model) -> Iterator[Finding]:
    """Say fast, not slow.

    Slow words cost time.

    Fix safety: safe.
    """
    yield from _words(model, "slow", "fast", Applicability.SAFE, Confidence.CERTAIN)


def heavy_word(model: Model) -> Iterator[Finding]:
    """Say light, not heavy.

    Fix safety: unsafe, it may be lighter than meant.
    """
    yield from _words(model, "heavy", "light", Applicability.UNSAFE, Confidence.LIKELY)


def odd_word(model: Model) -> Iterator[Finding]:
    """Wonder about odd words."""
    yield from _words(model, "odd", "", Applicability.MANUAL, Confidence.POSSIBLE)


def crash_word(model: Model) -> Iterator[Finding]:
    """Crash on the word crash."""
    for _ in re.finditer(r"\bcrash\b", model.source.text):
        raise ZeroDivisionError("the rule crashed")
    yield from ()


def _words(
    model: Model, word: str, better: str, applicability: Applicability, confidence: Confidence
) -> Iterator[Finding]:
    for match in re.finditer(rf"\b{word}\b", model.source.text):
        span = Span(*match.span())
        line, column = model.source.position(span.start)
        evidence = (Evidence(model.path, line, column, f"the word {word} stands here"),)
        edits = () if applicability is Applicability.MANUAL else (Edit(span.start, span.end, better),)
        fix = Fix(f"Replace `{word}`", applicability, edits)
        yield Finding(span, f"`{word}` is no good word", confidence, evidence, fix)


def _rule(code: str, name: str, group: str, severity: Severity, check: object, fixable: str) -> Rule:
    example = Example("slow = 1\n", "fast = 1\n")
    return Rule(code, name, group, "0.1", severity, check, example, fixable=fixable)  # type: ignore[arg-type]


FAKE_RULES = (
    _rule("GPU101", "slow-word", "sync", Severity.SLOW, slow_word, "always"),
    _rule("GPU102", "odd-word", "sync", Severity.SLOW, odd_word, "never"),
    _rule("GPU201", "heavy-word", "transfer", Severity.MEMORY, heavy_word, "sometimes"),
    _rule("GPU301", "crash-word", "memory", Severity.WRONG, crash_word, "never"),
)
