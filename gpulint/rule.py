"""The Rule record, discovery of rules, and selection by code, prefix, name or group."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING

from gpulint.finding import Finding, Severity

if TYPE_CHECKING:
    from gpulint.model import Model


class Saves(Enum):
    """What a rule promises that its fix saves, and its replay must show."""

    SYNCS = "host-device synchronisations"
    COPIES_TO_HOST = "copies to the host"
    COPIES_TO_DEVICE = "copies to the device"
    PAGEABLE_COPIES = "copies from pageable memory"
    BLOCKING_COPIES = "blocking copies"
    GROWTH = "bytes kept per step"
    PEAK_MEMORY = "peak memory"
    KERNELS = "kernels"
    WARNINGS = "deprecation warnings"
    SCATTER = "scattered and gathered bytes"
    WAIT = "time waiting for data"


@dataclass(frozen=True, slots=True)
class Example:
    """A whole small file before and after its fix: documentation page, fixture and replay at once."""

    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Replay:
    """How the verifier measures a rule: what the ``after`` of its example saves over ``before``."""

    saves: Saves
    steps: int = 8


@dataclass(frozen=True, slots=True)
class Rule:
    """One anti-pattern. ``check`` is pure; its docstring is the documentation page."""

    code: str
    name: str
    group: str
    since: str
    severity: Severity
    check: Callable[[Model], Iterable[Finding]]
    example: Example
    replay: Replay | None = None
    on_by_default: bool = True
    fixable: str = "never"  # "always", "sometimes" or "never"

    @property
    def doc(self) -> str:
        """The documentation page as Markdown, dedented."""
        return inspect.cleandoc(self.check.__doc__ or "")

    @property
    def title(self) -> str:
        """The first line of the page, without its full stop."""
        return self.doc.partition("\n")[0].rstrip(".")


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the package ``gpulint.rules``, sorted by code."""
    return tuple(sorted(_discover(), key=lambda rule: rule.code))


def _discover() -> Iterator[Rule]:
    package = importlib.import_module("gpulint.rules")
    for module in pkgutil.walk_packages(package.__path__, "gpulint.rules."):
        if not module.ispkg:
            rule = getattr(importlib.import_module(module.name), "RULE", None)
            if isinstance(rule, Rule):
                yield rule


def matches(rule: Rule, selector: str) -> bool:
    """Whether a selector names the rule: ``ALL``, a code, a code's prefix, a name or a group."""
    return (
        selector == "ALL"
        or (selector.startswith("GPU") and rule.code.startswith(selector))
        or selector in (rule.name, rule.group)
    )


def select(chosen: Iterable[str] = (), ignored: Iterable[str] = (), extended: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules to run: those chosen (default: on by default), plus extended, less ignored.

    The most specific selector wins, as in Ruff: ``--select GPU1 --ignore GPU101``.
    """
    wanted, unwanted, extra = tuple(chosen), tuple(ignored), tuple(extended)
    return tuple(
        rule
        for rule in all_rules()
        if (
            (any(matches(rule, s) for s in wanted) if wanted else rule.on_by_default)
            or any(matches(rule, s) for s in extra)
        )
        and not any(matches(rule, s) for s in unwanted)
    )
