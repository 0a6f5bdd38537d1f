"""GPU programs: which files of a project have tensors on an accelerator.

Evidence is text that only such a program has (``.cuda()``, ``"cuda"``, a framework that places the
model). It spreads along imports to those who import the file and to those whom it imports, and not
from one script through a shared helper to another script.
"""

from __future__ import annotations

import re
from functools import cache

from gpulint.model.api import api
from gpulint.model.syntax import Index, ModuleInfo

_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\(?[^#\n]*)|import[ \t]+([\w., \t]+))", re.M)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.M)
_SELECTED = re.compile(r"map_location\s*=\s*[^,)\n]*|is_available\(\)")


@cache
def _texts() -> re.Pattern[str]:
    table = api()
    texts = [re.escape(t) for t in sorted(table.names("evidence.texts"))]
    packages = "|".join(sorted(table.names("evidence.packages")))
    return re.compile(
        "|".join(texts)
        + rf"|^[ \t]*(?:from|import)[ \t]+(?:{packages})\b|\bTrainingArguments\b|import[^\n]*\bTrainer\b",
        re.M,
    )


def has_evidence(text: str) -> bool:
    if "torch" not in text and "lightning" not in text and "accelerate" not in text and "transformers" not in text:
        return False
    match = _texts().search(text)
    if match is None:
        return False
    # a mention in a comment, or only as a place to load a checkpoint to, is none
    cleaned = _SELECTED.sub("", _COMMENT.sub("", text))
    return _texts().search(cleaned) is not None


def imports(module: ModuleInfo, index: Index) -> list[ModuleInfo]:
    """The project modules that a file imports, by a look at its text: no parse."""
    found: list[ModuleInfo] = []

    def add(target: ModuleInfo | None) -> None:
        if target is not None and target is not module and target not in found:
            found.append(target)

    text = module.source.text
    for match in _IMPORT.finditer(text):
        dots, package, names, plain = match.groups()
        if plain is not None:
            for name in plain.split(","):
                parts = tuple(name.split()[0].split(".")) if name.split() else ()
                add(index.resolve(module, parts))
            continue
        target = tuple(package.split(".")) if package else ()
        level = len(dots)
        if target or level:
            add(index.resolve(module, target, level))
        if names.startswith("("):
            closing = text.find(")", match.start())
            names = text[match.start() + match.group(0).index("(") : closing if closing > 0 else None]
        for name in re.findall(r"\w+", re.sub(r"\bas\s+\w+", "", names)):
            add(index.resolve(module, (*target, name), level))
    return found


def mark_gpu_programs(index: Index, mode: str) -> None:
    """Set ``gpu`` on the modules of GPU programs."""
    modules = list(index.modules.values())
    if mode != "auto":
        for module in modules:
            module.gpu = mode == "always"
        return
    for module in spread(index, [m for m in modules if has_evidence(m.source.text)]):
        module.gpu = True


def spread(index: Index, evident: list[ModuleInfo]) -> set[ModuleInfo]:
    """The files that have evidence, those that import them and those that they import, however far."""
    if index.imports is None:
        index.imports = {m: imports(m, index) for m in index.modules.values()}
    forward = index.imports
    backward: dict[ModuleInfo, list[ModuleInfo]] = {}
    for module, targets in forward.items():
        for target in targets:
            backward.setdefault(target, []).append(module)
    reached: set[ModuleInfo] = set()
    for edges in (forward, backward):
        seen = set(evident)
        stack = list(evident)
        while stack:
            for other in edges.get(stack.pop(), ()):
                if other not in seen:
                    seen.add(other)
                    stack.append(other)
        reached |= seen
    return reached
