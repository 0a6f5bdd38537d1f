"""The table of what torch calls do (`torch_api.toml`), read once and asked by qualified name."""

from __future__ import annotations

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Names under which torch exports one thing twice; the right-hand side is what the table lists.
_ALIASES = {
    "torch.nn.modules.loss": "torch.nn",
    "torch.nn.modules": "torch.nn",
    "torch.functional": "torch",
    "torch.special": "torch",
    "torch.Tensor": "torch.Tensor",
    "torch.linalg": "torch",
    "torch.optim.adam": "torch.optim",
    "torch.optim.adamw": "torch.optim",
    "torch.optim.sgd": "torch.optim",
    "torch.nn.parallel.distributed": "torch.nn.parallel",
    "torch.nn.parallel.data_parallel.DataParallel": "torch.nn.DataParallel",
    "torch.nn.utils.clip_grad": "torch.nn.utils",
    "torch.utils.data.dataloader": "torch.utils.data",
    "torch.utils.data.dataset": "torch.utils.data",
}


class Api:
    """Answers "is this name one of those that …" over the table; see its comments for meanings."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._exact: dict[str, frozenset[str]] = {}
        self._patterns: dict[str, re.Pattern[str] | None] = {}
        self.hooks: dict[str, dict[str, frozenset[str]]] = {}
        for section, entries in table.items():
            if section == "hooks":
                self.hooks = {
                    base: {phase: frozenset(names) for phase, names in phases.items()}
                    for base, phases in entries.items()
                }
                continue
            for key, names in entries.items():
                self._add(f"{section}.{key}", names)
        self._memo: dict[tuple[str, str], bool] = {}

    def _add(self, key: str, names: list[str]) -> None:
        self._exact[key] = frozenset(name for name in names if "*" not in name)
        globs = [re.escape(name).replace(r"\*", ".*") for name in names if "*" in name]
        self._patterns[key] = re.compile("|".join(globs)) if globs else None

    def names(self, key: str) -> frozenset[str]:
        """The entries of a list of the table that have no wildcard."""
        return self._exact[key]

    def has(self, key: str, name: str) -> bool:
        """Whether a list of the table covers the name, exactly or by a pattern."""
        memo = self._memo.get((key, name))
        if memo is None:
            pattern = self._patterns[key]
            memo = name in self._exact[key] or (pattern is not None and pattern.fullmatch(name) is not None)
            self._memo[key, name] = memo
        return memo

    def starts(self, key: str, name: str) -> bool:
        """Whether the name begins with an entry of the list."""
        return any(name.startswith(prefix) for prefix in self._exact[key])

    def is_module_class(self, name: str) -> bool:
        return self.has("classes.module", name) and not self.has("classes.not_module", name)

    def takes_tensors(self, name: str) -> bool:
        """Whether a function gives a tensor where its arguments are: the default for torch's own."""
        return self.starts("tensor_packages.prefixes", name) and not self.starts("tensor_packages.except", name)


def canonical(name: str) -> str:
    """The name under which the table lists a qualified name."""
    for alias, target in _ALIASES.items():
        if name.startswith(alias + ".") or name == alias:
            return target + name[len(alias) :]
    return name


@cache
def api() -> Api:
    path = Path(__file__).with_name("torch_api.toml")
    return Api(tomllib.loads(path.read_text(encoding="utf-8")))
