"""The fixes of reads on the host, in the order in which they are tried; what is left is said in words."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from gpulint.finding import Applicability, Fix
from gpulint.fixes.accumulate import TITLE, accumulate
from gpulint.fixes.collect import collect_numbers, collect_tensors
from gpulint.fixes.postpone import postpone
from gpulint.fixes.reads import Read, kept_on_device, read_of
from gpulint.model import Model, Site, Step
from gpulint.model.syntax import dotted

_LOGGERS = ("log", "add_scalar", "add_scalars", "set_postfix", "log_metrics", "set_description", "info", "debug")
Attempt = Callable[[Model, Site, Step, Read], Fix | None]
_GUARD = "if step % 100 == 0:\n    "


def read_later(model: Model, site: Site, step: Step) -> Fix:
    """GPU101: a number is read on every step."""
    fix = _first((accumulate, collect_numbers, postpone, _log_tensor), model, site, step)
    return fix if fix is not None else _in_words(model, site)


def copy_later(model: Model, site: Site, step: Step) -> Fix:
    """GPU102: a tensor is copied to the host on every step."""
    fix = _first((accumulate, collect_numbers, collect_tensors, postpone), model, site, step)
    if fix is not None:
        return fix
    if read_of(model, site) is not None and model.read_value(site).bulk:
        return Fix(
            "Reduce on the device (`argmax`, a mean) and copy the result once after the loop",
            Applicability.MANUAL,
        )
    return Fix("Collect on the device and copy once after the loop", Applicability.MANUAL)


def _first(attempts: Iterable[Attempt], model: Model, site: Site, step: Step) -> Fix | None:
    """The first fix that can be made, if the read is one that can wait at all."""
    read = read_of(model, site)
    if read is None:
        return None
    return next((fix for attempt in attempts if (fix := attempt(model, site, step, read)) is not None), None)


def _log_tensor(model: Model, site: Site, step: Step, read: Read) -> Fix | None:
    """Lightning's `self.log` takes tensors, and reads them when it must."""
    call = model.parent(read.node)
    call = model.parent(call) if isinstance(call, ast.keyword) else call
    info = site.variant.info
    if not isinstance(call, ast.Call) or dotted(call.func) != "self.log" or info is None or info.cls is None:
        return None
    lightning = any(name.endswith("LightningModule") for name in info.cls.all_outside)
    if not lightning or info.cls.method("log") is not None or not read.scalar:
        return None
    title = "Log the tensor: Lightning reads it when it writes"
    return Fix(title, Applicability.UNSAFE, (kept_on_device(model, read),))


def _in_words(model: Model, site: Site) -> Fix:
    """What a person should do, by what the value is for."""
    statement = model.statement(site.node)
    if isinstance(statement, ast.AugAssign):
        return Fix(TITLE, Applicability.MANUAL, sketch=_sum_sketch(model, statement, site))
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        func = statement.value.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        if name in _LOGGERS or name == "print":
            return Fix("Log every N steps", Applicability.MANUAL, sketch=_GUARD + model.short(statement, 100))
        if name == "append":
            return Fix("Collect on the device and read together after the loop", Applicability.MANUAL)
        if name == "update":
            return Fix("Give the meter the detached tensor, and let it read once after the loop", Applicability.MANUAL)
    if isinstance(statement, ast.If | ast.While | ast.Assert):
        return Fix("Decide on the device (`torch.where`) or check every N steps", Applicability.MANUAL)
    if isinstance(statement, ast.Return):
        return Fix("Return the detached tensor, and read it after the loop that calls this", Applicability.MANUAL)
    return Fix(TITLE, Applicability.MANUAL)


def _sum_sketch(model: Model, statement: ast.AugAssign, site: Site) -> str:
    target = model.short(statement.target)
    tensor = model.short(model.read_node(site))
    return f"{target} += {tensor}.detach()  # on each step\n{target} = float({target})  # once, after the loop"
