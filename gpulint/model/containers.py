"""Displays, comprehensions and subscripts: what is in a container, and what iterating it yields."""

from __future__ import annotations

import ast
from typing import Any

from gpulint.model.combine import arithmetic
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Instance
from gpulint.model.sites import RegionKind, SiteKind
from gpulint.model.syntax import dotted
from gpulint.model.values import (
    TEXT,
    UNKNOWN,
    Kind,
    Value,
    container,
    join_all,
    mapping,
    sequence,
)

LARGE = 40  # members of a literal that are not looked at one by one


def sequence_display(frame: Frame, node: ast.Tuple | ast.List | ast.Set, env: Env) -> Value:
    values: list[Value] = []
    exact = not isinstance(node, ast.Set)
    for item in node.elts:
        if isinstance(item, ast.Starred):
            inner = frame.evaluate(item.value, env)
            if inner.items is not None and inner.keys is None:
                values.extend(inner.items)
            else:
                exact = False
                values.append(element_of(inner))
        else:
            values.append(frame.evaluate(item, env))
    if not values:
        return Value(Kind.CONTAINER)
    loop = next((v.loop for v in values if v.kind is Kind.NUMBER and v.loop is not None), None)
    if loop is not None and exact and all(v.kind is Kind.NUMBER for v in values):
        return sequence(tuple(values))._replace(loop=loop)  # an index such as `[i, j:k]`
    return sequence(tuple(values)) if exact else container(join_all(tuple(values)))


def dict_display(frame: Frame, node: ast.Dict, env: Env) -> Value:
    known: dict[str, Value] = {}
    exact = True
    if len(node.keys) > LARGE and frame.region.loop is None:
        return container(UNKNOWN)  # a table of constants
    for key, item in zip(node.keys, node.values):
        value = frame.evaluate(item, env)
        if key is None:
            if value.keys is not None and value.items is not None:
                known.update(zip(value.keys, value.items))
            else:
                exact = False
                known["**"] = element_of(value)
            continue
        label = frame.evaluate(key, env)
        if isinstance(label.const, str):
            known[label.const] = value
        else:
            exact = False
            known[f"?{len(known)}"] = value
    if exact:
        return mapping(tuple(known), tuple(known.values()))
    return container(join_all(tuple(known.values())))


def element_of(value: Value) -> Value:
    """What iterating a value yields."""
    if value.kind is Kind.CONTAINER:
        return value.element if value.element is not None else UNKNOWN
    if value.is_tensor:
        return value if value.opaque else value._replace(kind=Kind.TENSOR, pinned=value.pinned, ref=None)
    if value.kind is Kind.LOADER:
        return value.element or UNKNOWN
    if value.kind is Kind.ARRAY:
        return value
    if value.kind is Kind.MODULE:
        members = value.ref.members if isinstance(value.ref, Instance) else []
        return join_all(tuple(members)) or Value(Kind.MODULE, value.device, sure=False)
    if value.kind is Kind.TEXT:
        return TEXT
    return Value(marks=value.marks) if value.marks else UNKNOWN


def iterate(frame: Frame, iterable: Value, node: ast.AST) -> Value:
    """Begin a loop over a value: what each pass draws, tagged with the loop."""
    return frame.interpreter.enter_loop(frame, iterable, node, element_of(iterable))


def comprehension(frame: Frame, node: Any, env: Env) -> Value:
    inner = dict(env)
    result: list[Value] = []
    size: tuple[Value, ...] | None = None

    def descend(depth: int) -> None:
        nonlocal size
        if depth == len(node.generators):
            if isinstance(node, ast.DictComp):
                frame.evaluate(node.key, inner)
                result.append(frame.evaluate(node.value, inner))
            else:
                result.append(frame.evaluate(node.elt, inner))
            return
        part = node.generators[depth]
        iterable = frame.evaluate(part.iter, inner)
        if depth == 0 and len(node.generators) == 1 and not part.ifs and iterable.keys is None:
            size = iterable.items
        with frame.inside(RegionKind.LOOP, part):
            element = iterate(frame, iterable, part)
            frame.record(SiteKind.ITERATE, part, receiver=iterable, result=element)
            from gpulint.model.expressions import assign, truth

            assign(frame, part.target, element, inner)
            for test in part.ifs:
                truth(frame, test, inner)
            descend(depth + 1)

    descend(0)
    element = result[0] if result else UNKNOWN
    if isinstance(node, ast.DictComp):
        return container(element)
    if size is not None and 0 < len(size) <= 8:  # `x, y = (t.to(device) for t in (x, y))`
        return Value(Kind.CONTAINER, element=element, items=tuple(element for _ in size))
    return container(element)


def subscript(frame: Frame, node: ast.Subscript, env: Env) -> Value:
    path = subscript_path(node)
    owner = frame.evaluate(node.value, env)
    index = frame.evaluate(node.slice, env)
    if path is not None and path in env:
        return env[path]
    if owner.kind is Kind.CONTAINER:
        return _member(owner, index, node)
    if owner.is_tensor:
        if owner.opaque:
            return owner
        if index.is_tensor:
            return arithmetic(frame, [owner])._replace(loop=owner.loop or index.loop)
        return owner._replace(kind=Kind.TENSOR, scalar=False, loop=_indexed_loop(owner, index))
    if owner.kind is Kind.NUMBER:  # `x.shape[0]`
        return Value(Kind.NUMBER, loop=owner.loop)
    if owner.kind in (Kind.MODULE, Kind.LOADER, Kind.ARRAY, Kind.TEXT):
        return element_of(owner) if owner.kind is not Kind.LOADER else UNKNOWN
    if owner.kind is Kind.INSTANCE:
        return frame.interpreter.special_method(frame, owner, "__getitem__", [index], node)
    return Value(loop=owner.loop, marks=owner.marks)


def _indexed_loop(owner: Value, index: Value) -> object | None:
    """`source[i : i + n]` is drawn from the loop that counts ``i``."""
    return index.loop if isinstance(index.loop, ast.AST) else owner.loop or index.loop


def _member(owner: Value, index: Value, node: ast.Subscript) -> Value:
    if owner.items is not None:
        if owner.keys is not None and isinstance(index.const, str):
            if index.const in owner.keys:
                return owner.items[owner.keys.index(index.const)]
        elif owner.keys is None and isinstance(index.const, int) and not isinstance(index.const, bool):
            if -len(owner.items) <= index.const < len(owner.items):
                return owner.items[index.const]
    if isinstance(node.slice, ast.Slice):
        return container(owner.element)
    return owner.element if owner.element is not None else UNKNOWN


def subscript_path(node: ast.Subscript) -> str | None:
    """``batch["image"]`` as a key of the environment, where the base is a path and the index a constant."""
    base = dotted(node.value)
    if base is None or not isinstance(node.slice, ast.Constant):
        return None
    return f"{base}.[{node.slice.value!r}]"


def slice_expression(frame: Frame, node: ast.Slice, env: Env) -> Value:
    loop: object | None = None
    for part in (node.lower, node.upper, node.step):
        if part is not None:
            value = frame.evaluate(part, env)
            frame.interpreter.indexed(frame, part, value)
            loop = loop or value.loop
    return Value(Kind.NUMBER, loop=loop)


def concatenated(left: Value, right: Value) -> Value:
    if right.kind is not Kind.CONTAINER:
        return container(left.element)
    if left.items is not None and right.items is not None and left.keys is None and right.keys is None:
        return sequence((*left.items, *right.items))
    return container(join_all(tuple(v for v in (left.element, right.element) if v is not None)))
