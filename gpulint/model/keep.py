"""What outlives a pass: `x += v`, `xs.append(v)`, `d[k] = v`, and the marks that follow the value."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpulint.model.heap import Instance
from gpulint.model.sites import SiteKind
from gpulint.model.syntax import ModuleInfo, dotted
from gpulint.model.values import UNKNOWN, Kind, Value, container, few, join, mapping

if TYPE_CHECKING:
    from gpulint.model.frame import Env, Frame
    from gpulint.model.sites import Region, Variant


@dataclass(eq=False, slots=True)
class Mark:
    """A tag that a value carries from where it was kept, or fetched to the host, to where it is used.

    ``uses`` gathers (how, name, node, module): ``backward``, ``branch``, ``format``, ``index``,
    ``call``, ``host`` (moved to the host), ``return``.
    """

    kind: str  # "keep" or "fetch"
    node: ast.AST
    module: ModuleInfo
    uses: dict[tuple[str, str], tuple[ast.AST, ModuleInfo]] = field(default_factory=dict)
    places: dict[tuple[str, str], list[tuple[Variant, Region]]] = field(default_factory=dict)

    def used_for(self, how: str) -> bool:
        return any(use == how for use, _ in self.uses)


def augment(frame: Frame, node: ast.AugAssign, env: Env) -> None:
    """`target op= value`: an arithmetic update, or a list that grows."""
    from gpulint.model.combine import arithmetic
    from gpulint.model.expressions import assign, evaluate

    value = evaluate(frame, node.value, env)
    old = evaluate(frame, node.target, env)
    path = dotted(node.target) or ""
    mark = frame.interpreter.mark("keep", node, frame.module)
    if old.kind is Kind.TEXT or value.kind is Kind.TEXT:
        from gpulint.model.expressions import formatted

        formatted(frame, node.value, value)
        assign(frame, node.target, old, env)
        return
    if old.kind is Kind.CONTAINER and not value.is_tensor:
        element = value.element if value.kind is Kind.CONTAINER else value
        kept = with_mark(element or UNKNOWN, mark)
        frame.record(SiteKind.KEEP, node, receiver=old, args=(element or UNKNOWN,), result=kept, path=path)
        assign(frame, node.target, container(kept if old.element is None else join(old.element, kept)), env)
        return
    operands = [old, value] if old.kind is not Kind.UNKNOWN or not value.is_tensor else [value]
    result = arithmetic(frame, operands, detached=isinstance(node.op, ast.BitAnd | ast.BitOr))
    if result.kind is Kind.NUMBER:
        result = result._replace(loop=None)
    site = frame.record(SiteKind.AUGMENT, node, receiver=old, args=(value,), result=result, path=path)
    site.name = type(node.op).__name__
    if isinstance(node.target, ast.Subscript):
        store_item(frame, node.target, with_mark(result, mark), env, updated=True)
    else:
        assign(frame, node.target, with_mark(result, mark), env)


def accumulated(frame: Frame, node: ast.Assign, operation: ast.BinOp, value: Value, env: Env) -> Value:
    """`x = x + v` is `x += v` in other words."""
    path = dotted(node.targets[0])
    if path is None or dotted(operation.left) != path:
        return value
    if value.kind is Kind.CONTAINER:
        mark = frame.interpreter.mark("keep", node, frame.module)
        old = frame.evaluate(operation.left, env)
        added = frame.evaluate(operation.right, env)
        if added.element is None:
            return value
        kept = with_mark(added.element, mark)
        frame.record(SiteKind.KEEP, node, receiver=old, args=(added.element,), result=kept, path=path)
        return container(kept if old.element is None else join(old.element, kept))
    if not value.is_tensor:
        return value._replace(loop=None) if value.kind is Kind.NUMBER else value
    old = frame.evaluate(operation.left, env)
    added = frame.evaluate(operation.right, env)
    site = frame.record(SiteKind.AUGMENT, node, receiver=old, args=(added,), result=value, path=path)
    site.name = type(operation.op).__name__
    return with_mark(value, frame.interpreter.mark("keep", node, frame.module))


def with_mark(value: Value, mark: Mark) -> Value:
    """The value, and whatever is in it, with the mark."""
    if value.kind in (Kind.TENSOR, Kind.UNKNOWN, Kind.CONTAINER) and mark not in value.marks:
        value = value._replace(marks=few(value.marks | {mark}, value.marks))
        if value.kind is Kind.CONTAINER:
            value = value._replace(
                items=tuple(with_mark(v, mark) for v in value.items) if value.items is not None else None,
                element=with_mark(value.element, mark) if value.element is not None else None,
            )
    return value


def grow(frame: Frame, node: ast.Call, target: ast.expr, old: Value, value: Value, env: Env) -> None:
    """`target.append(value)` and its like: the container's new value goes back to where it came from."""
    mark = frame.interpreter.mark("keep", node, frame.module)
    kept = with_mark(value, mark)
    frame.record(SiteKind.KEEP, node, receiver=old, args=(value,), result=kept, path=dotted(target) or _text(target))
    # a list of known members becomes one of unknown length
    new = Value(
        Kind.CONTAINER,
        element=kept if old.element is None else join(old.element, kept),
        marks=old.marks,
        const=old.const,
    )
    write_back(frame, target, new, env)


def write_back(frame: Frame, target: ast.expr, value: Value, env: Env) -> None:
    """Store a changed container into the variable, attribute or container that it is reached by."""
    from gpulint.model.expressions import evaluate

    if isinstance(target, ast.Name):
        if target.id in env or target.id not in frame.closure:
            env[target.id] = value
        else:
            frame.closure[target.id] = value
        if frame.info is not None and target.id not in env and frame.module.env is not None:
            frame.module.env[target.id] = value
    elif isinstance(target, ast.Attribute):
        path = dotted(target)
        if path is not None:
            frame.knows(path)
            env[path] = value
        owner = evaluate(frame, target.value, env)
        if isinstance(owner.ref, Instance):
            owner.ref.set(target.attr, value)
    elif isinstance(target, ast.Subscript):
        base = evaluate(frame, target.value, env)
        key = evaluate(frame, target.slice, env)
        if base.kind is Kind.CONTAINER:
            write_back(frame, target.value, with_member(base, key, value), env)
    elif isinstance(target, ast.Call) and isinstance(target.func, ast.Attribute):
        # `d.setdefault(k, []).append(v)`
        base = evaluate(frame, target.func.value, env)
        if base.kind is Kind.CONTAINER:
            write_back(frame, target.func.value, with_member(base, UNKNOWN, value), env)


def with_member(base: Value, key: Value, value: Value) -> Value:
    """The container after ``base[key] = value``."""
    if isinstance(key.const, str) and (base.keys is not None or base.items is None) and base.element is None:
        return mapping((key.const,), (value,))
    if isinstance(key.const, str) and base.keys is not None and base.items is not None:
        members = dict(zip(base.keys, base.items))
        members[key.const] = value
        return mapping(tuple(members), tuple(members.values()))
    return Value(
        Kind.CONTAINER,
        element=value if base.element is None else join(base.element, value),
        marks=base.marks,
    )


def store_item(frame: Frame, target: ast.Subscript, value: Value, env: Env, updated: bool = False) -> None:
    """`base[key] = value`: on a tensor it copies, on a container it keeps; `updated` for `base[key] += value`."""
    from gpulint.model.containers import subscript_path
    from gpulint.model.expressions import evaluate

    base = evaluate(frame, target.value, env)
    key = evaluate(frame, target.slice, env)
    path = subscript_path(target)
    if base.kind is Kind.CONTAINER or (base.kind is Kind.UNKNOWN and not base.on_gpu):
        mark = frame.interpreter.mark("keep", target, frame.module)
        kept = with_mark(value, mark) if not isinstance(target.slice, ast.Constant) else value
        frame.record(
            SiteKind.KEEP,
            target,
            receiver=base,
            args=(value,),
            result=kept,
            path=dotted(target.value) or "",
            name="constant-key" if isinstance(target.slice, ast.Constant) else "updated" if updated else "",
        )
        if base.kind is Kind.CONTAINER:
            write_back(frame, target.value, with_member(base, key, kept), env)
        if path is not None:
            frame.knows(path)
            env[path] = value
    elif base.is_tensor:
        frame.interpreter.stored(frame, target, base, key, value)
        filled(frame, target.value, base, env)
    elif isinstance(base.ref, Instance):
        frame.interpreter.special_method(frame, base, "__setitem__", [key, value], target)


def filled(frame: Frame, target: ast.expr, base: Value, env: Env) -> None:
    """Data was written into the tensor: it is no mere allocation any more."""
    if isinstance(target, ast.Name) and any(mark.kind == "alloc" for mark in base.marks):
        env[target.id] = base._replace(marks=frozenset(m for m in base.marks if m.kind != "alloc"))


def _text(node: ast.expr) -> str:
    return ast.unparse(node) if len(ast.dump(node)) < 400 else ""
