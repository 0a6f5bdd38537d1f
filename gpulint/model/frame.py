"""The state while one variant of a function is interpreted, and how names are looked up and bound."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from gpulint.model.heap import Closure, Instance
from gpulint.model.sites import Region, RegionKind, Site, SiteKind, Variant
from gpulint.model.syntax import FunctionInfo, ModuleInfo, dotted
from gpulint.model.values import UNKNOWN, Fresh, Graph, Kind, Value, join

if TYPE_CHECKING:
    from gpulint.model.interpreter import Interpreter

Env = dict[str, Value]


class Jumps:
    """Environments that left a loop by ``break`` and ``continue``."""

    __slots__ = ("breaks", "continues")

    def __init__(self) -> None:
        self.breaks: Env | None = None
        self.continues: Env | None = None


class Made:
    """The loop of a value created inside it (not drawn from what it iterates): weaker evidence."""

    __slots__ = ("loop",)

    def __init__(self, loop: ast.AST) -> None:
        self.loop = loop


def join_env(a: Env | None, b: Env | None) -> Env | None:
    """Join where paths meet. Unbound on one side is *bottom*: the other side's value survives."""
    if a is None:
        return b
    if b is None or a is b:
        return a
    out = dict(b)
    for name, value in a.items():
        other = b.get(name)
        if other is None:
            out[name] = value
        elif other is not value and other != value:
            out[name] = join(value, other)
    return out


class Frame:
    """One activation: variant, closure, gradient mode, region, and the pending jumps."""

    def __init__(self, interpreter: Interpreter, variant: Variant, closure: Env) -> None:
        self.interpreter = interpreter
        self.variant = variant
        self.module: ModuleInfo = variant.module
        self.info: FunctionInfo | None = variant.info
        self.closure = closure
        self.grad: bool | None = variant.grad
        self.region: Region = variant.body
        self.jumps: list[Jumps] = []
        self.returned: Value | None = None
        self.final: Env | None = None
        self.globals: set[str] = set()
        self.paths: set[str] = set()  # names below which the environment may know a path: `x.y`
        self.self_name = ""
        self.self_value: Value | None = None

    def evaluate(self, node: ast.expr, env: Env) -> Value:
        return _evaluate()(self, node, env)

    # ---- regions ---------------------------------------------------------------------------------

    @contextmanager
    def inside(self, kind: RegionKind, node: ast.AST, note: str = "", part: str = "") -> Iterator[Region]:
        outer = self.region
        self.region = self.variant.region(kind, node, outer, note, part)
        try:
            yield self.region
        finally:
            self.region = outer

    @contextmanager
    def gradients(self, grad: bool | None) -> Iterator[None]:
        outer, self.grad = self.grad, grad
        try:
            yield
        finally:
            self.grad = outer

    @property
    def made_here(self) -> object:
        """The loop tag of a value that the present code creates."""
        loop = self.region.loop
        return self.interpreter.made(loop.node) if loop is not None and loop.node is not None else Fresh.FRESH

    # ---- sites -----------------------------------------------------------------------------------

    def record(self, kind: SiteKind, node: ast.AST, **facts: Any) -> Site:
        site = Site(kind, node, self.variant, self.region, grad=self.grad, **facts)
        self.variant.sites[kind, node] = site
        return site

    # ---- names -----------------------------------------------------------------------------------

    def lookup(self, name: str, env: Env) -> Value:
        value = env.get(name)
        if value is None:
            value = self.closure.get(name)
        if value is None and self.module.env is not None:
            value = self.module.env.get(name)
        if value is None:
            value = BUILTINS.get(name)
            if value is None and self.module.stars:
                value = self.interpreter.starred(self.module, name)
            return value if value is not None else UNKNOWN
        return self.interpreter.force(value)

    def uses(self, path: str) -> set[str]:
        """What is asked of an access path in this function, or of ``self.x`` in the whole class."""
        found: set[str] = set()
        if self.info is not None:
            found = self.info.uses.get(path, found)
            if path.startswith("self.") and self.info.cls is not None:
                found = found | self.info.cls.uses.get(path, set())
        else:
            found = self.interpreter.module_uses(self.module).get(path, found)
        return found

    def bind(self, name: str, value: Value, env: Env) -> None:
        """Assign a local name; what was known of paths below it is gone."""
        if value.kind is Kind.UNKNOWN:
            value = self.interpreter.refine(self, value, name)
        elif value.kind is Kind.TENSOR and value.graph is Graph.UNKNOWN and self.grad and "backward" in self.uses(name):
            value = value._replace(graph=Graph.ATTACHED, sure=False)
        elif value.opaque and value.kind is Kind.TENSOR and ("backward" in self.uses(name) or _LOSS.fullmatch(name)):
            value = value._replace(opaque=False, scalar=True, bulk=False)  # one of the things a model returned
        if name in self.paths:
            prefix = name + "."
            for key in [key for key in env if key.startswith(prefix)]:
                del env[key]
        env[name] = value
        if name in self.globals and self.module.env is not None and self.module.env is not env:
            old = self.module.env.get(name)
            self.module.env[name] = value if old is None else join(old, value)

    def bind_attribute(self, target: ast.Attribute, owner: Value, value: Value, env: Env) -> None:
        """Assign ``owner.attr``: strongly on the path in this function, weakly on the heap."""
        path = dotted(target)
        if value.kind is Kind.UNKNOWN and path is not None:
            value = self.interpreter.refine(self, value, path)
        if path is not None and path.count(".") <= 3:
            prefix = path + "."
            for key in [key for key in env if key.startswith(prefix)]:
                del env[key]
            self.knows(path)
            env[path] = value
        if isinstance(owner.ref, Instance):
            owner.ref.set(target.attr, value)
        elif isinstance(owner.ref, ModuleInfo) and owner.ref.env is not None:
            owner.ref.env.setdefault(target.attr, value)

    def knows(self, path: str) -> None:
        """The environment gets an entry for a path: assigning a name above it must drop the entry."""
        self.paths.add(path.partition(".")[0])

    def forget(self, path: str | None, env: Env) -> None:
        """A method of ``path`` ran and may have changed its attributes: the heap knows them now."""
        if path is not None:
            prefix = path + "."
            for key in [key for key in env if key.startswith(prefix)]:
                del env[key]

    def returns(self, value: Value) -> None:
        self.returned = value if self.returned is None else join(self.returned, value)

    def closure_for(self, info: FunctionInfo, env: Env) -> Value:
        captured = {**self.closure, **env} if self.info is not None else self.closure
        return Value(Kind.FUNCTION, ref=Closure(info, captured))


@cache
def _evaluate() -> Callable[[Frame, ast.expr, Env], Value]:
    """The evaluator, imported late: expressions, calls and frames need one another."""
    from gpulint.model.expressions import evaluate

    return evaluate


_LOSS = re.compile(r"(\w+_)?loss(?!_(scale|weight|dict|fn|func|type|name|coef|history|meter|list|sum))(_\w+)?|\w*Loss")
BUILTINS: dict[str, Value] = {
    name: Value(Kind.NAMESPACE, const=f"builtins.{name}")
    for name in [
        "print",
        "len",
        "range",
        "enumerate",
        "zip",
        "iter",
        "next",
        "list",
        "tuple",
        "dict",
        "set",
        "frozenset",
        "sorted",
        "reversed",
        "sum",
        "max",
        "min",
        "abs",
        "round",
        "float",
        "int",
        "bool",
        "str",
        "repr",
        "format",
        "isinstance",
        "getattr",
        "setattr",
        "hasattr",
        "type",
        "super",
        "map",
        "filter",
        "any",
        "all",
        "open",
        "id",
        "callable",
        "divmod",
        "pow",
        "vars",
        "dir",
        "hash",
        "issubclass",
        "object",
        "slice",
        "Exception",
        "ValueError",
        "RuntimeError",
    ]
}
BUILTINS["__name__"] = Value(Kind.TEXT)
BUILTINS["__file__"] = Value(Kind.TEXT)
