"""Cheap looks at text: could any rule have something to say about a file, or about a function?

A file that fails `relevant` is checked for syntax and not interpreted, unless a relevant one imports
it. Of what nothing calls, only functions that pass `worth_running` are interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Set

from gpulint.model.api import api

_LIBRARIES = re.compile(r"\btorch\b|\blightning\b|\btransformers\b|\baccelerate\b|\bignite\b|\bapex\b")

# A step, a loader, an evaluation, a wrapper: what alone makes a function worth a run.
_STEP = (
    r"backward\(|\.step\(|zero_grad|[Ll]oader\b|_iter\b|\.eval\(|no_grad|inference_mode|DataParallel|data_parallel"
    r"|\bamp\b|GradScaler|autocast"
)
# Something is read, copied, made on the host, logged or kept.
_READ = (
    r"\.(?:item|tolist|cpu|numpy|cuda|type_as|to)\(|\b(?:float|bool|print|isnan|isfinite|isinf|equal|allclose)\("
    r"|\bint\((?:\w+(?:\.\w+)*[.\[(]|[a-z]\w*\))|logg(?:er|ing)\.|self\.[\w.]+(?:\.append\(|\s*\+=)|f\""
)
# The truth of a tensor: a branch on a comparison or reduction.
_TRUTH = r"\b(?:if|while|assert|and|or|not|min|max|sorted)\b[^\n]*(?:\.(?:sum|max|min|mean|any|all|norm|abs)\(|[<>])"

_FILE = re.compile(f"{_STEP}|{_READ}|{_TRUTH}")
_HOOK = re.compile(rf"\.(?:item|tolist|cpu|numpy|cuda|type_as|to|any|all)\(|{_READ}|{_TRUTH}|{_STEP}")
_ANY_STEP = re.compile(_STEP)
_LOOP = re.compile(r"\b(?:for|while)\b")
_ANY_READ = re.compile(r"\.(?:item|tolist|cpu|numpy|cuda|to)\(|\b(?:float|print)\(|logg|f\"|append\(\w*loss")
_SETUP = frozenset(
    [
        "reset_parameters",
        "init_weights",
        "_init_weights",
        "reset_classifier",
        "set_grad_checkpointing",
        "get_classifier",
        "set_input_size",
        "load_state_dict",
        "state_dict",
        "extra_repr",
        "no_weight_decay",
        "group_matcher",
        "load_pretrained",
    ]
)


HOOK_NAMES = frozenset(name for phases in api().hooks.values() for names in phases.values() for name in names)


def relevant(text: str, hooks: Set[str] = HOOK_NAMES) -> bool:
    """Whether the file uses torch (or a framework on it) and has anything to find.

    A file that defines a hook counts as well: its class may have its base from another file of the project.
    """
    if _FILE.search(text) is None:
        return False
    return _LIBRARIES.search(text) is not None or any(f"def {hook}(" in text for hook in hooks)


def relevant_statement(text: str) -> bool:
    """Whether a statement at a file's top level has anything to find."""
    return _FILE.search(text) is not None and not text.startswith(("import ", "from "))


def steps(text: str) -> bool:
    """Whether the text takes a step, draws from a loader, or evaluates."""
    return _ANY_STEP.search(text) is not None


def worth_running(name: str, text: str, hook: bool) -> bool:
    """Whether interpreting a function that nothing calls can lead to a finding.

    A hook (a module's ``forward``) runs on every step by itself, so it must read or make something;
    any other function must hold a step, a loader or an evaluation, or a loop that reads.
    """
    if hook:
        return _HOOK.search(text) is not None
    if name in _SETUP:
        return False
    return steps(text) or (_LOOP.search(text) is not None and _ANY_READ.search(text) is not None)
