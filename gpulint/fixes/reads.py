"""A value read on the host: the whole chain (`float(loss.detach().cpu().item())`) and the tensor in it."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from gpulint.finding import Edit
from gpulint.fixes.names import scope_of, uses
from gpulint.fixes.text import atom, dot_of
from gpulint.model import Graph, Kind, Model, Site
from gpulint.model.syntax import dotted

_TO_HOST = ("item", "cpu", "numpy", "tolist")
_SAME = ("detach", "clone", "cpu", "view", "view_as", "reshape", "flatten", "squeeze", "unsqueeze", "contiguous", "t")
_TRUTHS = (
    "eq", "ne", "gt", "lt", "ge", "le", "logical_and", "logical_or", "logical_not", "isnan", "isinf", "isfinite",
    "long", "int", "bool", "argmax", "argmin", "equal",
)  # fmt: skip
_HALF = re.compile(r"bfloat16|float16|\bbf16\b|\bfp16\b|\.half\(")


@dataclass(frozen=True, slots=True)
class Read:
    """The expression that is a number (or array) on the host, and the tensor that it is made of."""

    node: ast.expr
    base: ast.expr
    dot: int | None  # where the methods after the base begin, in the source
    scalar: bool
    detached: bool


def read_of(model: Model, site: Site) -> Read | None:
    """The chain of host reads around a finding's call, without what would compute with the number."""
    if not isinstance(site.node, ast.Call):
        return None
    inner: ast.expr | None = site.node
    if isinstance(site.node.func, ast.Name):
        conversion = site.node.func.id in ("float", "int") and len(site.node.args) == 1 and not site.node.keywords
        inner = site.node.args[0] if conversion else None
    if inner is None:
        return None
    base, dot, detach = _strip(model, inner)
    if base is site.node:
        return None
    node: ast.expr = site.node
    scalar = _is_scalar(node)
    while True:
        parent = model.parent(node)
        outer = model.parent(parent) if isinstance(parent, ast.Attribute) else parent
        if not isinstance(outer, ast.Call) or outer.keywords:
            break
        if (
            isinstance(parent, ast.Attribute) and parent.attr in _TO_HOST and outer.func is parent and not outer.args
        ) or (isinstance(outer.func, ast.Name) and outer.func.id in ("float", "int") and outer.args == [node]):
            node = outer
        else:
            break
        scalar = scalar or _is_scalar(node)
    text = model.text(node)
    if "#" in text or (isinstance(site.node.func, ast.Name) and site.node.func.id == "int" and not counts(model, base)):
        return None
    value = model.read_value(site)
    attached = value.graph is not Graph.DETACHED or detach
    return Read(node, base, dot, scalar or (value.scalar and value.kind is Kind.TENSOR), not attached)


def _strip(model: Model, node: ast.expr) -> tuple[ast.expr, int | None, bool]:
    """The tensor below `.detach().cpu().item()`, where its methods begin, and whether it was detached."""
    dot: int | None = None
    detach = False
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _leaves_device(node, node.func.attr):
            attribute = node.func
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            attribute = node
        else:
            return node, dot, detach
        detach = detach or attribute.attr in ("detach", "data")
        dot = dot_of(model, attribute)
        node = attribute.value


def _leaves_device(call: ast.Call, method: str) -> bool:
    """A method that copies to the host, or that only drops the graph."""
    given = [*call.args, *(k.value for k in call.keywords)]
    if method == "to":
        return len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value == "cpu"
    return method in (*_TO_HOST, "detach") and not given


def _is_scalar(node: ast.expr) -> bool:
    func = node.func if isinstance(node, ast.Call) else None
    return (isinstance(func, ast.Name) and func.id in ("float", "int")) or (
        isinstance(func, ast.Attribute) and func.attr == "item"
    )


def kept_on_device(model: Model, read: Read, *, suffix: str = "") -> Edit:
    """The edit that leaves the tensor where it is: without its graph, and without a read."""
    span = model.span(read.node)
    tail = ("" if read.detached else ".detach()") + suffix
    if read.dot is None:
        plain = not tail and not isinstance(model.parent(read.node), ast.BinOp)
        body = model.text(read.base) if plain else atom(model, read.base)
        return Edit(span.start, span.end, body + tail)
    top = _first_call(read.node)
    start = model.span(top).start
    body = model.source.text[start : read.dot]
    if start != span.start:
        return Edit(span.start, span.end, body.rstrip() + tail)
    cut = read.dot if tail else start + len(body.rstrip())
    return Edit(cut, span.end, tail)


def _first_call(node: ast.expr) -> ast.expr:
    """The chain of methods inside `float(...)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) == 1:
        node = node.args[0]
    return node


def fresh(model: Model, read: Read) -> bool:
    """Whether nothing else changes the tensor in place later: it was just computed, and no ``+=`` follows."""
    base = read.base
    if isinstance(base, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare):
        return True
    scope = scope_of(model, base)
    if not isinstance(base, ast.Name) or scope is None:
        return False
    found = uses(scope, base.id)
    made = False
    for store in found.stores:
        parent = model.parent(store)
        if isinstance(parent, ast.AugAssign):
            return False
        statement = model.statement(store)
        made |= isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call | ast.BinOp | ast.UnaryOp)
    in_place = any(
        isinstance(parent := model.parent(load), ast.Attribute)
        and parent.attr.endswith("_")
        and not parent.attr.endswith("__")
        for load in found.loads
    )
    return made and not in_place


# ---- types of the numbers ------------------------------------------------------------------------------


def counts(model: Model, node: ast.expr, depth: int = 3) -> bool:
    """Whether a tensor surely holds integers because it counts: ``(a == b).sum()``."""
    node = _definition(model, node) if isinstance(node, ast.Name) and depth else node
    if not isinstance(node, ast.Call) or any(k.arg == "dtype" for k in node.keywords):
        return False
    if isinstance(node.func, ast.Attribute):
        owner, attr = node.func.value, node.func.attr
        if dotted(node.func) in ("torch.sum", "torch.count_nonzero") and node.args:
            return attr == "count_nonzero" or _discrete(model, node.args[0], depth)
        if attr in ("sum", "count_nonzero"):
            return attr == "count_nonzero" or _discrete(model, owner, depth)
        if attr in _SAME and depth:
            return counts(model, owner, depth - 1)
    return False


def _discrete(model: Model, node: ast.expr, depth: int) -> bool:
    """Truths or whole numbers."""
    if isinstance(node, ast.Name) and depth:
        found = _definition(model, node)
        return not isinstance(found, ast.Name) and _discrete(model, found, depth - 1)
    if isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert)):
        return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        return True
    if isinstance(node, ast.Attribute) and node.attr == "data":
        return _discrete(model, node.value, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in _TRUTHS:
            return True
        return node.func.attr in _SAME and _discrete(model, node.func.value, depth)
    return False


def _definition(model: Model, node: ast.Name) -> ast.expr:
    """What the name was set to, where only one plain assignment sets it."""
    scope = scope_of(model, node)
    stores = uses(scope, node.id).stores if scope is not None else []
    statement = model.statement(stores[0]) if len(stores) == 1 else None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and statement.targets[0] is stores[0]:
        return statement.value
    return node


def floats(model: Model, site: Site, base: ast.expr) -> bool:
    """Whether the tensor surely holds floating point numbers: it has a gradient, or a loss or mean made it."""
    value = model.read_value(site)
    if value.attached:
        return True
    node = _definition(model, base) if isinstance(base, ast.Name) else base
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in ("mean", "float", "double", "norm", "cross_entropy", "mse_loss", "nll_loss", "clip_grad_norm_"):
            return True
        if any(s.func.kind is Kind.LOSS for s in model.call(node)):
            return True
    return isinstance(base, ast.Name) and "loss" in base.id.lower()


def widened(model: Model, base: ast.expr) -> str:
    """Half precision would lose small addends: add up in float32."""
    if isinstance(base, ast.Call) and isinstance(base.func, ast.Attribute) and base.func.attr in ("float", "double"):
        return ""
    return ".float()" if _HALF.search(model.source.text) else ""
