"""`torch.zeros(n).to(device)` becomes `torch.zeros(n, device=device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from gpulint.edits import Edits, remove_statement, set_keyword
from gpulint.finding import Applicability, Edit, Fix
from gpulint.fixes.names import block_of, scope_of, uses
from gpulint.fixes.target import target_of
from gpulint.fixes.text import dot_of
from gpulint.model import Kind, Model, Site
from gpulint.model.api import api

# fmt: off
_SHAPES = frozenset((
    "unsqueeze", "squeeze", "view", "reshape", "expand", "repeat", "transpose", "permute", "t", "flatten", "contiguous",
    "clone", "detach", "T",
))
_VALUES = frozenset((
    "float", "long", "int", "bool", "double", "half", "fill_", "zero_", "mul_", "add_", "div_", "sub_", "neg", "abs",
    "tril", "triu", "mul", "add", "sub", "div", "clamp",
))
_DRAWS = frozenset((
    "normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_", "cauchy_", "geometric_",
))
# fmt: on
_REFUSED = ("requires_grad", "out", "generator", "pin_memory", "names", "layout")
TITLE = "Create it on the device"


def create_on_device(model: Model, site: Site, moved: ast.AST) -> Fix:
    """Give the creation the device, and take the move away; in words where that cannot be proven to be the same."""
    edits = _edits(model, site, moved)
    if edits is None:
        return Fix(TITLE, Applicability.MANUAL, sketch=_sketch(model, site))
    draws = model.is_random(site) or any(isinstance(n, ast.Attribute) and n.attr in _DRAWS for n in ast.walk(moved))
    return Fix(TITLE, Applicability.UNSAFE if draws else Applicability.SAFE, edits)


def _sketch(model: Model, site: Site) -> str:
    node = site.node
    if not isinstance(node, ast.Call) or api().has("create.legacy", site.name):
        return "torch.empty(..., device=device)"
    arguments = ", ".join(model.short(a) for a in (*node.args, *node.keywords))
    return f"{model.short(node.func)}({arguments}{', ' if arguments else ''}device=device)"


def _edits(model: Model, site: Site, moved: ast.AST) -> Edits | None:
    creation = site.node
    if not isinstance(creation, ast.Call) or not isinstance(moved, ast.Call):
        return None
    if not isinstance(moved.func, ast.Attribute) or api().has("create.legacy", site.name) or not _plain(creation):
        return None
    wanted = target_of(model, moved, moved.func.attr)
    if wanted is None:
        return None
    owner = moved.func.value
    steps = list(_chain(model, owner, creation))
    if steps and steps[-1] is creation:
        return _in_place(model, creation, moved, wanted, direct=steps == [creation])
    if isinstance(owner, ast.Name):
        return _later(model, creation, moved, owner, wanted)
    return None


def _plain(creation: ast.Call) -> bool:
    """Whether the creation takes `device=` and nothing speaks against another device."""
    for keyword in creation.keywords:
        if keyword.arg is None or keyword.arg in _REFUSED:
            return False
        if keyword.arg == "device" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value == "cpu"):
            return False
    return not any(isinstance(n, ast.Starred) for n in creation.args if n is not creation.args[0])


def _chain(model: Model, node: ast.expr, creation: ast.Call) -> Iterator[ast.expr]:
    """From a moved expression down to its creation, through what is the same on every device."""
    while True:
        yield node
        if node is creation:
            return
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            attr = node.func.attr
            plain = all(isinstance(a, ast.Constant | ast.UnaryOp) or _is_number(model, node, a) for a in node.args)
            if not (attr in _SHAPES or ((attr in _VALUES or attr in _DRAWS) and plain)):
                return
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "T":
            node = node.value
        elif isinstance(node, ast.BinOp):
            left, right = isinstance(node.left, ast.Constant), isinstance(node.right, ast.Constant)
            if left is right:
                return
            node = node.right if left else node.left
        else:
            return


def _is_number(model: Model, call: ast.Call, argument: ast.expr) -> bool:
    position = call.args.index(argument)
    sites = model.call(call)
    return bool(sites) and all(len(s.args) > position and s.args[position].kind is Kind.NUMBER for s in sites)


def _keywords(model: Model, creation: ast.Call, wanted: dict[str, str]) -> Edits | None:
    """One edit for all keywords: a second would fall on the same place."""
    known = {k.arg for k in creation.keywords}
    if len(wanted) > 1 and known & set(wanted):
        if "device" in known:
            return None
        edits = set_keyword(model.source.text, model.span(creation), "dtype", wanted["dtype"])
        more = set_keyword(model.source.text, model.span(creation), "device", wanted["device"])
        dtype = next(k for k in creation.keywords if k.arg == "dtype")
        if not edits or not more or model.span(dtype.value).end == more[0].start:
            return None
        return (*edits, *more)
    name, *rest = wanted
    value = ", ".join([wanted[name], *(f"{other}={wanted[other]}" for other in rest)])
    return set_keyword(model.source.text, model.span(creation), name, value)


def _without_move(model: Model, moved: ast.Call) -> Edit | None:
    dot = dot_of(model, moved.func) if isinstance(moved.func, ast.Attribute) else None
    end = model.span(moved).end
    text = model.source.text
    if dot is None or "#" in text[dot:end]:
        return None
    start = len(text[:dot].rstrip())
    return Edit(start if "\n" not in text[start:dot] or _bracketed(text, start, end) else dot, end, "")


def _bracketed(text: str, start: int, end: int) -> bool:
    return text[end:].lstrip().startswith((")", ",", "]")) or start == end


def _in_place(
    model: Model, creation: ast.Call, moved: ast.Call, wanted: dict[str, str], *, direct: bool
) -> Edits | None:
    if not direct and "dtype" in wanted:
        return None  # a conversion between the creation and the move would be lost
    keywords, rest = _keywords(model, creation, wanted), _without_move(model, moved)
    return (*keywords, rest) if keywords and rest is not None else None


def _later(model: Model, creation: ast.Call, moved: ast.Call, owner: ast.Name, wanted: dict[str, str]) -> Edits | None:
    """`h = torch.zeros(n)` and, further down the same block, `h = h.to(device)`."""
    first, second = model.statement(creation), model.statement(moved)
    scope = scope_of(model, creation)
    if not isinstance(first, ast.Assign) or second is None or scope is None or first is second:
        return None
    steps = list(_chain(model, first.value, creation))
    target = first.targets[0]
    here, there = block_of(model, first), block_of(model, second)
    if len(first.targets) != 1 or not isinstance(target, ast.Name) or target.id != owner.id or steps[-1:] != [creation]:
        return None
    if here is None or there is None or here[0] is not there[0] or here[1] >= there[1]:
        return None
    if "dtype" in wanted and steps != [creation]:
        return None
    start, end = model.span(first).end, model.span(moved).start
    found = uses(scope, owner.id)
    others = [n for n in found.loads if n is not owner and model.span(n).start >= start]
    if found.captured or any(_same_value(model, n, second, end) for n in others):
        return None
    if any(start <= model.span(s).start < end for s in found.stores if s is not target and not _sets(second, s)):
        return None
    arguments = (*moved.args, *(k.value for k in moved.keywords))
    names = {n.id for a in arguments for n in ast.walk(a) if isinstance(n, ast.Name)}
    begin = model.span(first).start
    for name in names:
        if any(begin <= model.span(s).start < end for s in uses(scope, name).stores if hasattr(s, "lineno")):
            return None
    keywords = _keywords(model, creation, wanted)
    whole = isinstance(second, ast.Assign) and second.value is moved and len(second.targets) == 1
    if whole and isinstance(second, ast.Assign) and _is(second.targets[0], owner.id):
        removed = remove_statement(model.source.text, model.span(second))
        return (*keywords, *removed) if keywords and removed else None
    rest = _without_move(model, moved)
    return (*keywords, rest) if keywords and rest is not None else None


def _same_value(model: Model, load: ast.Name, second: ast.stmt, end: int) -> bool:
    """Whether a use may see the tensor on the host: before the move, or after one that does not rebind the name."""
    if model.span(load).start < end:
        return True
    return not (isinstance(second, ast.Assign) and any(_is(t, load.id) for t in second.targets))


def _sets(statement: ast.stmt, store: ast.AST) -> bool:
    return isinstance(statement, ast.Assign) and store in statement.targets


def _is(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name
