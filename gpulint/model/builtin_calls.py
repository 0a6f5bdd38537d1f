"""Calls of Python's builtins: the ones that draw, wrap, convert or print tensors."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpulint.model.attributes import Super
from gpulint.model.frame import Env, Frame
from gpulint.model.heap import Closure, Instance
from gpulint.model.sites import SiteKind, Variant
from gpulint.model.values import NUMBER, TEXT, UNKNOWN, Kind, Value, container, join_all, mapping, sequence

if TYPE_CHECKING:
    from gpulint.model.calls import Arguments

Handler = Callable[[Frame, ast.Call, "Arguments", Env], Value]


def call_builtin(frame: Frame, node: ast.Call, name: str, args: Arguments, env: Env) -> Value:
    handler = _HANDLERS.get(name)
    if handler is not None:
        return handler(frame, node, args, env)
    return UNKNOWN


def _first(args: Arguments) -> Value:
    return args.positional[0] if args.positional else UNKNOWN


def _element(frame: Frame, value: Value) -> Value:
    return frame.interpreter.element_of(value)


def _formats(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    for arg, value in zip(node.args, args.positional):
        if value.is_tensor:
            frame.record(SiteKind.FORMAT, arg, receiver=value, name="print")
        frame.interpreter.consume(value, "format", frame, arg)
    return TEXT


def _number(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    """`float(t)` reads the tensor: its result is a host number that remembers the fetch."""
    return frame.interpreter.fetched(frame, node, _first(args), Value(Kind.NUMBER))


def _len(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    return Value(Kind.NUMBER, loop=_first(args).loop)


def _host(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    return NUMBER


def _range(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    return container(NUMBER)


def _enumerate(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    inner = _first(args)
    return Value(Kind.CONTAINER, element=sequence((NUMBER, _element(frame, inner))), ref=inner.ref)


def _zip(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    ref = next(
        (v.ref for v in args.positional if v.ref is not None and v.kind in (Kind.LOADER, Kind.CONTAINER)),
        None,
    )
    return Value(Kind.CONTAINER, element=sequence(tuple(_element(frame, v) for v in args.positional)), ref=ref)


def _next(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    if isinstance(_first(args).ref, Variant):
        frame.interpreter.add_caller(_first(args).ref, frame, node)
    element = _element(frame, _first(args))
    if element.kind is Kind.MODULE:
        return element
    return frame.interpreter.drawn(frame, element)


def _list(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    if not args.positional:
        return Value(Kind.CONTAINER)
    value = _first(args)
    if value.is_tensor and not value.opaque:
        frame.record(SiteKind.ITERATE, node, receiver=value)
    if value.kind is Kind.CONTAINER:
        return value._replace(keys=None)
    return container(_element(frame, value))


def _dict(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    base: dict[str, Value] = {}
    if args.positional:
        value = _first(args)
        if value.keys is None or value.items is None:
            if value.element is not None and value.element.items is not None and len(value.element.items) == 2:
                return container(value.element.items[1])
            return container(value.element) if value.kind is Kind.CONTAINER and value.element else UNKNOWN
        base.update(zip(value.keys, value.items))
    if not args.exact:
        return container(join_all(tuple(args.keywords.values())))
    base.update(args.keywords)
    return mapping(tuple(base), tuple(base.values()))


def _fold(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    """`sum(ts)` adds on the device; `max(a, b)` of tensors takes their truth, one comparison each."""
    from gpulint.model.combine import arithmetic

    values = args.positional if len(args.positional) > 1 else [_element(frame, _first(args))]
    name = node.func.id if isinstance(node.func, ast.Name) else "sum"
    if name == "sum":
        return arithmetic(frame, values[:1])
    tensors = [v for v in values if v.is_tensor and not v.opaque]
    if tensors:
        frame.record(SiteKind.TEST, node, receiver=arithmetic(frame, tensors, detached=True), name=name)
    return arithmetic(frame, values)


def _sorted(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    element = _element(frame, _first(args))
    if element.is_tensor and not element.opaque and "key" not in args.keywords:
        frame.record(SiteKind.TEST, node, receiver=element, name="sorted")
    return container(element)


def _reversed(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    value = _first(args)
    return value._replace(items=None, keys=None) if value.kind is Kind.CONTAINER else container(_element(frame, value))


def _truth_of(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    """`any(ts)`: the truth of one element after the other."""
    element = _element(frame, _first(args))
    if element.is_tensor and not element.opaque:
        frame.record(SiteKind.TEST, node, receiver=element, name="any")
    return NUMBER


def _super(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    if frame.self_value is None or frame.info is None or frame.info.cls is None:
        return UNKNOWN
    return Value(frame.self_value.kind, ref=Super(frame.self_value, frame.info.cls))


def _getattr(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    owner = _first(args)
    name = args.positional[1].const if len(args.positional) > 1 else None
    default = args.positional[2] if len(args.positional) > 2 else None
    if isinstance(name, str) and isinstance(owner.ref, Instance):
        found: Value | None = owner.ref.get(name)
        if found is not None:
            return found
    return default if default is not None and default.kind is not Kind.NONE else UNKNOWN


def _map(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    if len(args.positional) < 2:
        return UNKNOWN
    function, *rest = args.positional
    elements = [_element(frame, v) for v in rest]
    if function.kind is Kind.FUNCTION and isinstance(function.ref, Closure):
        result = frame.interpreter.invoke(function.ref, elements, {}, frame, node)
        items = rest[0].items
        if items is not None and len(items) <= 8:
            return Value(Kind.CONTAINER, element=result, items=tuple(result for _ in items))
        return container(result)
    if function.kind is Kind.NAMESPACE and function.const in ("builtins.float", "builtins.int"):
        return container(frame.interpreter.fetched(frame, node, elements[0], NUMBER))
    return container(UNKNOWN)


def _filter(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    return container(_element(frame, args.positional[1])) if len(args.positional) > 1 else UNKNOWN


def _abs(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    from gpulint.model.combine import arithmetic

    return arithmetic(frame, args.positional) if args.positional else UNKNOWN


def _iter(frame: Frame, node: ast.Call, args: Arguments, env: Env) -> Value:
    return _first(args)


_HANDLERS: dict[str, Handler] = {
    "print": _formats,
    "str": _formats,
    "repr": _formats,
    "format": _formats,
    "float": _number,
    "int": _number,
    "bool": _number,
    "len": _len,
    "isinstance": _host,
    "issubclass": _host,
    "hasattr": _host,
    "callable": _host,
    "id": _host,
    "hash": _host,
    "range": _range,
    "enumerate": _enumerate,
    "zip": _zip,
    "iter": _iter,
    "next": _next,
    "list": _list,
    "tuple": _list,
    "set": _list,
    "dict": _dict,
    "sum": _fold,
    "max": _fold,
    "min": _fold,
    "sorted": _sorted,
    "reversed": _reversed,
    "any": _truth_of,
    "all": _truth_of,
    "super": _super,
    "getattr": _getattr,
    "map": _map,
    "filter": _filter,
    "abs": _abs,
    "round": _abs,
    "pow": _abs,
}
