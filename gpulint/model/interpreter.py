"""The analysis of a project: runs module bodies, follows calls, then runs what nothing called.

A function is interpreted once per distinct set of abstract arguments (a *variant*), so that
`evaluate()` called under ``no_grad`` and a helper called from a step loop in another file are seen
as what they are. Questions about "every step" and "every caller" follow the callers of a variant.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulint.model.api import api
from gpulint.model.binding import Binding
from gpulint.model.classes import Classes
from gpulint.model.containers import element_of
from gpulint.model.effects import Effects
from gpulint.model.expressions import evaluate
from gpulint.model.frame import Env, Frame
from gpulint.model.guess import Guesses
from gpulint.model.heap import Closure, Instance, Loader
from gpulint.model.keep import with_mark
from gpulint.model.names import Names
from gpulint.model.questions import evaluates
from gpulint.model.sites import LoopInfo, Phase, SiteKind, Variant
from gpulint.model.statements import run_block
from gpulint.model.syntax import FunctionInfo, Index, ModuleInfo, dotted
from gpulint.model.values import (
    NONE,
    NUMBER,
    UNKNOWN,
    Device,
    Kind,
    Value,
    join,
    join_all,
)

if TYPE_CHECKING:
    from gpulint.config import Settings

MAX_DEPTH = 16  # of inlined calls
MAX_VARIANTS = 6  # of one function; later calls share one whose arguments are joined
MAX_RUNS = 4  # of one variant


class Interpreter(Effects, Binding, Names, Classes):
    def __init__(self, index: Index, settings: Settings) -> None:
        Effects.__init__(self)
        Guesses.__init__(self)
        Classes.__init__(self)
        self.index = index
        self.settings = settings
        self.infos: dict[ast.AST, FunctionInfo] = {}
        self._variants: dict[tuple[Any, ...], Variant] = {}
        self._shared: dict[FunctionInfo, tuple[Variant, dict[str, Value]]] = {}
        self._count: dict[FunctionInfo, int] = {}
        self._frames: list[Frame] = []
        self.crashes: dict[Path, tuple[str, str, str]] = {}
        self.module_variants: dict[ModuleInfo, Variant] = {}
        self._roots: dict[Variant, tuple[Closure, dict[str, Value]]] = {}
        self.element_of = element_of
        self.join_all = join_all

    # ---- modules -----------------------------------------------------------------------------------

    def module_env(self, module: ModuleInfo) -> Env:
        if module.env is None and not module.running:
            self.run_module(module)
        return module.env if module.env is not None else {}

    def run_module(self, module: ModuleInfo) -> None:
        """Interpret a module's body. A file that does not parse has an empty environment."""
        if module.env is not None or module.running:
            return
        module.running = True
        module.env = {}
        try:
            tree = module.tree
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            module.running = False
            return
        variant = Variant(None, module, True)
        self.module_variants[module] = variant
        self.variants.append(variant)
        frame = Frame(self, variant, {})
        env = module.env
        end = run_block(frame, tree.body, env)
        if end is not None:
            module.env = end
        module.running = False

    # ---- functions ---------------------------------------------------------------------------------

    def function_info(self, node: Any, frame: Frame) -> FunctionInfo:
        info = self.infos.get(node)
        if info is None:
            outer = frame.info.qualname + "." if frame.info else ""
            cls = frame.info.cls if frame.info is not None and isinstance(node, ast.Lambda) else None
            info = FunctionInfo(node, frame.module, outer + getattr(node, "name", "<lambda>"), cls)
            self.infos[node] = info
        return info

    def define_function(self, frame: Frame, node: Any, env: Env) -> Value:
        info = self.function_info(node, frame)
        for decorator in node.decorator_list:
            evaluate(frame, decorator, env)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                evaluate(frame, default, env)
        return frame.closure_for(info, env)

    def invoke(
        self,
        closure: Closure,
        positional: list[Value],
        keywords: dict[str, Value],
        frame: Frame,
        node: ast.AST,
        exact: bool = True,
    ) -> Value:
        """Call project code: interpret the body for these arguments, or recall what it gave."""
        info = closure.info
        if len(self._frames) >= MAX_DEPTH:
            return UNKNOWN
        bound = self._bind(closure, [*closure.partial, *positional], keywords, frame, exact)
        grad = self._gradient_mode(info, frame.grad if closure.grad is None else closure.grad, frame)
        variant = self._variant(info, bound, grad)
        if not info.is_generator:
            self.add_caller(variant, frame, node)
        self.run_variant(variant, closure, bound)
        if info.is_generator:
            element = variant.yields if variant.yields is not None else UNKNOWN
            return Value(Kind.CONTAINER, element=self.freshen(element, frame, info), ref=variant)
        return self.freshen(variant.result, frame, info)

    def _gradient_mode(self, info: FunctionInfo, grad: bool | None, frame: Frame) -> bool | None:
        for decorator in info.decorators:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            name = dotted(call)
            if name is None:
                continue
            value = self._decorator(info, name)
            if api().has("contexts.no_grad", value):
                return False
            if api().has("contexts.enable_grad", value):
                return True
            if api().has("contexts.set_grad", value) and isinstance(decorator, ast.Call) and decorator.args:
                given = decorator.args[0]
                return bool(given.value) if isinstance(given, ast.Constant) else None
            if value.rpartition(".")[2] in ("no_grad", "inference_mode"):
                return False
        return grad

    def _decorator(self, info: FunctionInfo, name: str) -> str:
        head, _, rest = name.partition(".")
        env = info.module.env or {}
        value = env.get(head)
        if value is not None and value.kind is Kind.NAMESPACE:
            from gpulint.model.api import canonical

            return canonical(f"{value.const}.{rest}" if rest else str(value.const))
        return name

    def decorated_with(self, info: FunctionInfo, names: frozenset[str]) -> bool:
        return any(
            self._decorator(info, dotted(d.func if isinstance(d, ast.Call) else d) or "") in names
            for d in info.decorators
        )

    def _variant(self, info: FunctionInfo, bound: dict[str, Value], grad: bool | None) -> Variant:
        key = (info, grad, tuple((name, _key(value)) for name, value in bound.items()))
        variant = self._variants.get(key)
        if variant is not None:
            return variant
        count = self._count.get(info, 0)
        if count >= MAX_VARIANTS:
            return self._widened(info, bound, grad)
        self._count[info] = count + 1
        variant = self._variants[key] = self._new_variant(info, grad)
        return variant

    def _new_variant(self, info: FunctionInfo, grad: bool | None) -> Variant:
        variant = Variant(info, info.module, grad)
        variant.step_function = self.hook_phase(info)
        self.variants.append(variant)
        return variant

    def _widened(self, info: FunctionInfo, bound: dict[str, Value], grad: bool | None) -> Variant:
        """The variant that all further calls share: its arguments are joined over them."""
        self.statistics["widened calls"] += 1
        shared = self._shared.get(info)
        if shared is None:
            variant = self._new_variant(info, grad)
            self._shared[info] = (variant, dict(bound))
            return variant
        variant, arguments = shared
        grown = False
        for name, value in list(bound.items()):
            old = arguments.get(name)
            new = value if old is None else join(old, value)
            if new != old:
                arguments[name], grown = new, True
            bound[name] = arguments[name]
        if grad is not variant.grad:
            variant.grad, grown = (
                (None if variant.grad is not None else variant.grad),
                grown or variant.grad is not None,
            )
        if grown and variant.runs < MAX_RUNS:
            variant.runs = min(variant.runs, MAX_RUNS - 1)
            variant.seen[_STALE] = -1
        return variant

    def run_variant(self, variant: Variant, closure: Closure, bound: dict[str, Value]) -> None:
        """Interpret the body unless it ran already and nothing that it read has changed since."""
        if variant.running:
            return
        if variant.runs and (variant.runs >= MAX_RUNS or all(obj.version == v for obj, v in variant.seen.items())):
            return
        info = closure.info
        info.reached = True
        variant.running = True
        variant.runs += 1
        variant.seen = {}
        frame = Frame(self, variant, closure.env)
        frame.self_value = closure.receiver
        env: Env = dict(bound)
        self._frames.append(frame)
        try:
            for value in bound.values():
                if isinstance(value.ref, Instance):
                    variant.seen.setdefault(value.ref, value.ref.version)
            end = run_block(frame, info.body, env)
        finally:
            self._frames.pop()
            variant.running = False
        result = frame.returned
        if end is not None and not isinstance(info.node, ast.Lambda):
            result = NONE if result is None else join(result, NONE)
        variant.result = result if result is not None else NONE

    def yielded(self, frame: Frame, value: Value) -> None:
        old = frame.variant.yields
        frame.variant.yields = value if old is None else join(old, value)

    def remember_evaluation(self, frame: Frame, node: ast.AST, result: Value) -> Value:
        """Mark what an evaluating function's module gives, to see whether it reaches a backward pass."""
        if frame.grad is True and any(f.info is not None and evaluates(f.variant) for f in self._frames):
            return with_mark(result, self.mark("forward", node, frame.module))
        return result

    def inside_forward(self, info: LoopInfo) -> bool:
        functions = [frame.info for frame in self._frames]
        if info.function not in functions:
            return False
        outer = functions[: functions.index(info.function) + 1]
        return any(f is not None and f.name == "forward" and f.cls is not None for f in outer)

    def special_method(
        self,
        frame: Frame,
        owner: Value,
        name: str,
        args: list[Value],
        node: ast.AST,
        keywords: dict[str, Value] | None = None,
    ) -> Value:
        """``owner(...)``, ``owner[...]``: the project class's method."""
        cls = owner.ref.cls if isinstance(owner.ref, Instance) else None
        method = cls.method(name) if cls is not None else None
        if method is None:
            return UNKNOWN
        return self.invoke(Closure(method, {}, owner), args, keywords or {}, frame, node)

    def allowed(self, variant: Variant) -> bool:
        """Whether the function is decorated with a name that the configuration allows to synchronise."""
        names = frozenset(self.settings.allowed_sync)
        return bool(names) and variant.info is not None and self.decorated_with(variant.info, names)

    # ---- contexts ------------------------------------------------------------------------------------

    def context(self, frame: Frame, node: ast.expr, value: Value, env: Env) -> tuple[str, Any]:
        """The qualified name of a `with` item and the gradient mode it sets (Ellipsis: none)."""
        if isinstance(node, ast.IfExp):
            body = self.context(frame, node.body, value, env)
            other = self.context(frame, node.orelse, value, env)
            return body[0] or other[0], body[1] if body[1] is other[1] else (
                ... if body[1] is ... and other[1] is ... else None
            )
        call = node.func if isinstance(node, ast.Call) else node
        target = evaluate(frame, call, env)
        name = str(target.const) if target.kind is Kind.NAMESPACE else (dotted(call) or "")
        if target.kind is Kind.FUNCTION and isinstance(target.ref, Closure):
            info = target.ref.info
            name = ".".join((*info.module.name, info.qualname))
        if api().has("contexts.no_grad", name):
            return name, False
        if api().has("contexts.enable_grad", name):
            return name, True
        if api().has("contexts.set_grad", name) and isinstance(node, ast.Call) and node.args:
            mode = evaluate(frame, node.args[0], env)
            return name, mode.const if isinstance(mode.const, bool) else None
        return name, ...

    def gradient_switch(self, frame: Frame, node: ast.Call, env: Env) -> Any:
        """``torch.set_grad_enabled(flag)`` as a statement: the mode from there on (Ellipsis: none)."""
        site = frame.variant.sites.get((SiteKind.CALL, node))
        if site is None or not api().has("contexts.set_grad", site.name):
            return ...
        return site.args[0].const if site.args and isinstance(site.args[0].const, bool) else None

    def entered(self, value: Value) -> Value:
        return value if value.kind in (Kind.LOADER, Kind.CONTAINER, Kind.OBJECT, Kind.INSTANCE) else UNKNOWN

    # ---- whole project ---------------------------------------------------------------------------------

    def root_frame(self, module: ModuleInfo) -> Frame:
        variant = self.module_variants.get(module) or Variant(None, module, True)
        return Frame(self, variant, {})

    def run_root(self, info: FunctionInfo, receiver: Value | None) -> None:
        """Run a function that no code calls: parameters by annotation, use and name."""
        frame = self.root_frame(info.module)
        closure = Closure(info, {}, receiver)
        phase = self.hook_phase(info)
        positional = self.hook_arguments(info, receiver, phase, frame)
        bound = self._bind(closure, positional, {}, frame, True)
        grad = self._gradient_mode(info, phase is not Phase.EVALUATION, frame)
        variant = self._variant(info, bound, grad)
        variant.root = True
        self._roots[variant] = (closure, bound)
        for _ in range(2):  # the second run sees what the first left on the objects
            self.run_variant(variant, closure, bound)

    def abandon(self) -> None:
        """After an exception: no variant is running any more."""
        self._frames.clear()
        for variant in self.variants:
            variant.running = False
        for module in self.index.modules.values():
            module.running = False

    def rerun_if_stale(self, variant: Variant) -> None:
        """What a hook read may have been written by a hook that ran later."""
        if variant in self._roots:
            self.run_variant(variant, *self._roots[variant])

    def new_loader(self, frame: Frame, node: ast.Call, args: Any, foreign: bool) -> Value:
        super().new_loader(frame, node, args, foreign)
        loader = self.loaders[node]
        self._inspect(frame, node, loader)
        return self.loader_value(loader)

    def _inspect(self, frame: Frame, node: ast.Call, loader: Loader) -> None:
        """Run the dataset's ``__getitem__`` and the ``collate_fn``: do they give GPU tensors?"""
        dataset = loader.dataset
        if isinstance(dataset.ref, Instance) and dataset.ref.cls is not None:
            method = dataset.ref.cls.method("__getitem__")
            if method is not None and "__item__" not in dataset.ref.attrs:
                item = self.invoke(Closure(method, {}, dataset), [NUMBER], {}, self.root_frame(method.module), node)
                dataset.ref.set("__item__", item)
        collate = loader.options.get("collate_fn")
        if collate is not None and isinstance(collate.ref, Closure) and "__collated__" not in loader.options:
            loader.options["__collated__"] = UNKNOWN
            loader.options["__collated__"] = self.invoke(collate.ref, [Value(Kind.CONTAINER)], {}, frame, node)

    def device_of(self, frame: Frame, parameters: Value) -> Device:
        inner = element_of(parameters) if parameters.kind is Kind.CONTAINER else parameters
        device = inner.where if inner.kind is Kind.MODULE else inner.device
        return device if device is not Device.UNKNOWN else self.chosen_device(frame)


_STALE = Instance(None, None)


def _key(value: Value) -> Value:
    """A value as part of a variant's key: constants that no branch tests are dropped."""
    const = value.const
    if (
        const is not None
        and not isinstance(const, bool)
        and value.kind is not Kind.NAMESPACE
        and value.kind is not Kind.OBJECT
    ):
        value = value._replace(const=None)
    if value.items is not None:
        value = value._replace(items=tuple(_key(v) for v in value.items))
    if value.element is not None:
        value = value._replace(element=_key(value.element))
    return value
