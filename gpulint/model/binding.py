"""Arguments to parameters: what a call gives, else defaults, annotations, use and name."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from gpulint.model.conditions import Rarity, rarity
from gpulint.model.expressions import evaluate
from gpulint.model.frame import Env, Frame
from gpulint.model.guess import Guesses
from gpulint.model.heap import Closure
from gpulint.model.sites import Variant
from gpulint.model.values import (
    UNKNOWN,
    Kind,
    Value,
    join_all,
)

if TYPE_CHECKING:
    pass


class Binding(Guesses):
    """One part of the Interpreter."""

    def _bind(
        self, closure: Closure, positional: list[Value], keywords: dict[str, Value], frame: Frame, exact: bool
    ) -> dict[str, Value]:
        """Parameters to arguments; defaults, annotations and conventions for what is not given."""
        args = closure.info.node.args
        names = [a.arg for a in (*args.posonlyargs, *args.args)]
        values = list(positional)
        if closure.receiver is not None:
            values.insert(0, closure.receiver)
        bound: dict[str, Value] = dict(zip(names, values))
        if args.vararg is not None:
            rest = values[len(names) :]
            bound[args.vararg.arg] = (
                Value(Kind.CONTAINER, items=tuple(rest), element=join_all(tuple(rest)))
                if rest
                else Value(Kind.CONTAINER)
            )
        known = {*names, *(a.arg for a in args.kwonlyargs)}
        extra = {k: v for k, v in keywords.items() if k not in known}
        bound.update({k: v for k, v in keywords.items() if k in known})
        if args.kwarg is not None:
            if exact:
                bound[args.kwarg.arg] = Value(
                    Kind.CONTAINER,
                    keys=tuple(extra),
                    items=tuple(extra.values()),
                    element=join_all(tuple(extra.values())),
                )
            else:
                bound[args.kwarg.arg] = Value(Kind.CONTAINER, element=join_all(tuple(extra.values())))
        annotations = {a.arg: a.annotation for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)}
        defaults = dict(zip(reversed(names), reversed(args.defaults)))
        defaults.update({a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults) if d is not None})
        inner = self._definition_frame(closure, frame)
        for name, annotation in annotations.items():
            value = bound.get(name)
            if value is None and name in defaults:
                value = evaluate(inner, defaults[name], {})
                if value.kind is Kind.NONE:
                    promised = self.annotated(inner, annotation, name)
                    value = promised if promised.kind is not Kind.UNKNOWN else value
                bound[name] = value
            elif value is None or (value.kind is Kind.UNKNOWN and not value.on_gpu):
                promised = self.annotated(inner, annotation, name)
                if promised.kind is Kind.UNKNOWN:
                    promised = self.refine(inner, value or UNKNOWN, name)
                elif value is not None:
                    promised = promised._replace(loop=value.loop, marks=value.marks)
                bound[name] = promised
        return bound

    def _definition_frame(self, closure: Closure, frame: Frame) -> Frame:
        variant = Variant(closure.info, closure.info.module, True)
        return Frame(self, variant, closure.env)  # type: ignore[arg-type]

    def call_rarity(self, frame: Frame, node: ast.Call, env: Env) -> Rarity:
        """A predicate of the project that returns a guard's condition is a guard."""
        target = evaluate(frame, node.func, env)
        if target.kind is Kind.FUNCTION and isinstance(target.ref, Closure):
            body = target.ref.info.body
            statements = [s for s in body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
            inner = self._definition_frame(target.ref, frame)
            if len(statements) == 1 and isinstance(statements[0], ast.Return) and statements[0].value is not None:
                return rarity(inner, statements[0].value, {})
            if len(statements) == 2 and _answers(statements[1], False) and isinstance(statements[0], ast.If):
                # `if step % n == 0: …; return True` and then `return False`
                return (
                    rarity(inner, statements[0].test, {}) if _answers(statements[0].body[-1], True) else Rarity.UNKNOWN
                )
        return Rarity.UNKNOWN


def _answers(statement: ast.stmt, answer: bool) -> bool:
    return (
        isinstance(statement, ast.Return)
        and isinstance(statement.value, ast.Constant)
        and statement.value.value is answer
    )
