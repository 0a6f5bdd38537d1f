"""``gpulint new-rule GROUP/NAME``: the files of a new rule. It edits no existing file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

BANDS = {"sync": 1, "transfer": 2, "memory": 3, "distributed": 4, "precision": 5}  # group → GPUn00

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CODE = re.compile(r"""\bcode\s*=\s*["'](GPU\d{3})["']""")
_RULE_NAME = re.compile(r"""\bname\s*=\s*["']([a-z0-9-]+)["']""")


class NewRuleError(Exception):
    """Why no rule was made, in one sentence."""


@dataclass(frozen=True, slots=True)
class NewRule:
    """What was made: the rule's code and its files, the one to open first in front."""

    code: str
    files: tuple[Path, ...]


def create(where: str, since: str, code: str | None = None, start: Path | None = None) -> NewRule:
    """Write the stub and fixtures of a rule named ``GROUP/NAME`` in the checkout around ``start``."""
    group, slash, name = where.partition("/")
    if not slash or group not in BANDS:
        raise NewRuleError(f"{where!r} is not of the form GROUP/NAME with a group of {', '.join(BANDS)}")
    if not _NAME.fullmatch(name):
        raise NewRuleError(f"a rule's name is lower-case words joined by dashes, unlike {name!r}")
    root = _checkout(start or Path.cwd())
    taken = _taken(root)
    if name in taken.values():
        raise NewRuleError(f"there is a rule named {name} already")
    code = _next_code(group, taken) if code is None else _checked_code(code, group, taken)

    words = name.replace("-", "_")
    fixtures = root / "fixtures" / name
    files = {
        root / "rules" / group / f"{words}.py": _RULE.format(code=code, name=name, group=group, since=since),
        fixtures / "basic.py": _REPORTED.format(code=code),
        fixtures / "basic_ok.py": _SILENT,
    }
    for path in files:
        if path.exists():
            raise NewRuleError(f"{path} is there already")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    page = _page(root, root / "rules" / group / f"{words}.py")
    return NewRule(code, (*files, page))


def _page(root: Path, stub: Path) -> Path:
    """Write the page that the stub makes; `make docs` writes it anew from what the stub becomes."""
    from importlib.util import module_from_spec, spec_from_file_location

    from gpulint import pages

    spec = spec_from_file_location("gpulint_new_rule_stub", stub)
    if spec is None or spec.loader is None:
        raise NewRuleError(f"{stub} can't be imported")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    page = root / "docs" / "rules" / pages.page_name(module.RULE)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(pages.markdown(module.RULE), encoding="utf-8")
    return page


def _checkout(start: Path) -> Path:
    """The checkout of gpulint around a folder: rules are written there, not in an installed copy."""
    for folder in (start, *start.parents):
        if (folder / "rules" / "__init__.py").is_file() and (folder / "gpulint" / "rule.py").is_file():
            return folder
    raise NewRuleError("new rules are made in a checkout of gpulint, and the current folder is in none")


def _taken(root: Path) -> dict[str, str]:
    """Code → name of the rules in a checkout, read as text so that a broken rule doesn't stop us."""
    taken: dict[str, str] = {}
    for path in sorted((root / "rules").glob("*/*.py")):
        text = path.read_text(encoding="utf-8")
        code, name = _CODE.search(text), _RULE_NAME.search(text)
        if code:
            taken[code[1]] = name[1] if name else path.stem.replace("_", "-")
    return taken


def _next_code(group: str, taken: dict[str, str]) -> str:
    """One past the highest of the band: a code that was once given away is not given twice."""
    first = BANDS[group] * 100
    numbers = [n for n in (int(code[3:]) for code in taken) if first < n < first + 100]
    number = max(numbers, default=first) + 1
    if number >= first + 100:
        raise NewRuleError(f"all codes of the group {group} are taken")
    return f"GPU{number}"


def _checked_code(code: str, group: str, taken: dict[str, str]) -> str:
    band = f"GPU{BANDS[group]}"
    if not re.fullmatch(rf"{band}(?!00)\d\d", code):
        raise NewRuleError(f"a code of the group {group} is {band}01 to {band}99, not {code}")
    if code in taken:
        raise NewRuleError(f"{code} is the code of {taken[code]}")
    return code


_RULE = '''\
from __future__ import annotations

from collections.abc import Iterator

from gpulint.finding import Finding, Severity
from gpulint.model import Model
from gpulint.rule import Example, Rule


def check(model: Model) -> Iterator[Finding]:
    """What is wasted or wrong, in one sentence.

    What it costs and why, with the page of the PyTorch documentation that says so.

    ## When it stays silent

    Where the code is right as it is.
    """
    # Ask the model (`model.calls`, `model.loops`, `model.step` ...) and yield a Finding for each place.
    yield from ()


BEFORE = """\\
import torch
"""

AFTER = """\\
import torch
"""

RULE = Rule(
    code="{code}",
    name="{name}",
    group="{group}",
    since="{since}",
    severity=Severity.SLOW,
    check=check,
    example=Example(BEFORE, AFTER),
)
'''

_REPORTED = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())  # expect: {code}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
"""

_SILENT = """\
import torch


def train(model, loader, criterion, optimizer):
    model.cuda()
    for x, y in loader:
        loss = criterion(model(x.cuda(non_blocking=True)), y.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


torch.manual_seed(0)
"""
