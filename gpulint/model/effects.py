"""What running code does: draws, moves, fetches, keeps, steps. One part of the Interpreter."""

from __future__ import annotations

import ast
from collections import Counter
from typing import TYPE_CHECKING, Any

from gpulint.model.frame import Env, Frame, Made
from gpulint.model.heap import Loader
from gpulint.model.keep import Mark
from gpulint.model.sites import Event, LoopInfo, SiteKind, Variant
from gpulint.model.syntax import FunctionInfo, ModuleInfo
from gpulint.model.values import Device, Fresh, Graph, Kind, Pin, Value, few, join

if TYPE_CHECKING:
    from gpulint.config import Settings
    from gpulint.model.calls import Arguments


class Effects:
    """Records of loops, marks, events and moves, shared by all frames."""

    settings: Settings

    def __init__(self) -> None:
        self.loops: dict[ast.AST, LoopInfo] = {}
        self.marks: dict[tuple[str, ast.AST], Mark] = {}
        self.loaders: dict[ast.AST, Loader] = {}
        self.statistics: Counter[str] = Counter()
        self.memo: dict[Any, Any] = {}  # answers that all files of the project share
        self.running_modules: set[FunctionInfo] = set()  # functions that call modules
        self.variants: list[Variant] = []
        self._made: dict[ast.AST, Made] = {}
        self.default_device = Device.HOST

    # ---- loops -----------------------------------------------------------------------------------

    def made(self, loop: ast.AST) -> Made:
        return self._made.setdefault(loop, Made(loop))

    def enter_loop(self, frame: Frame, iterable: Value, node: ast.AST, element: Value) -> Value:
        info = self.loops.get(node)
        if info is None:
            info = self.loops[node] = LoopInfo(node, frame.module, frame.info)
        info.iterates = iterable if info.iterates == Value() else join(info.iterates, iterable)
        if isinstance(iterable.ref, Variant):
            self.add_caller(iterable.ref, frame, node)
        if iterable.items is not None and iterable.keys is None:
            return element  # `for net in (g, d)`: the members are no data drawn from the loop
        return self.tag(element, node, strong=iterable.kind is Kind.LOADER)

    def tag(self, value: Value, loop: object, strong: bool = False) -> Value:
        """Say of a value that each pass of the loop draws a new one, unless an outer loop drew it."""
        if value.kind in (Kind.MODULE, Kind.LOSS, Kind.OPTIMIZER, Kind.FUNCTION, Kind.CLASS, Kind.INSTANCE):
            return value
        keep = (
            not strong and value.loop is not None and value.loop is not Fresh.FRESH and not isinstance(value.loop, Made)
        )
        return value._replace(
            loop=value.loop if keep else loop,
            items=tuple(self.tag(v, loop, strong) for v in value.items) if value.items is not None else None,
            element=self.tag(value.element, loop, strong) if value.element is not None else None,
        )

    def freshen(self, value: Value, frame: Frame, callee: object) -> Value:
        """A callee's result: what it made, in a loop of its own or none, the caller's loop makes."""
        if value.loop is Fresh.FRESH or (value.loop is not None and self._made_by(value.loop, callee)):
            value = value._replace(loop=frame.made_here)
        if value.items is not None or value.element is not None:
            value = value._replace(
                items=tuple(self.freshen(v, frame, callee) for v in value.items) if value.items is not None else None,
                element=self.freshen(value.element, frame, callee) if value.element is not None else None,
            )
        return value

    def _made_by(self, loop: object, callee: object) -> bool:
        node = loop.loop if isinstance(loop, Made) else loop
        info = self.loops.get(node) if isinstance(node, ast.AST) else None
        return info is not None and info.function is callee

    def drawn(self, frame: Frame, element: Value) -> Value:
        """``next(iterator)``: a new one on every pass of the loop around the call."""
        loop = frame.region.loop
        tagged = self.tag(element, loop.node if loop is not None else Fresh.FRESH, strong=True)
        return tagged._replace(loop=tagged.loop)

    def carried(self, frame: Frame, node: ast.AST, before: Env, head: Env) -> None:
        """Which accumulations the body adds that the loop's head still holds: they survive from pass to pass."""
        info = self.loops.get(node)
        if info is not None:
            marks: set[Any] = set(info.carried)
            for name, value in head.items():
                if before.get(name) is not value:
                    self._gather(value, marks)
            info.carried = frozenset(marks)

    def _gather(self, value: Value, into: set[Any]) -> None:
        into |= value.marks
        if value.element is not None:
            self._gather(value.element, into)
        if value.items is not None:
            for item in value.items:
                self._gather(item, into)

    # ---- marks -----------------------------------------------------------------------------------

    def mark(self, kind: str, node: ast.AST, module: ModuleInfo) -> Mark:
        found = self.marks.get((kind, node))
        if found is None:
            found = self.marks[kind, node] = Mark(kind, node, module)
        return found

    def consume(self, value: Value, how: str, frame: Frame, node: ast.AST, name: str = "") -> None:
        """Note a use on every mark that the value carries."""
        for mark in value.marks:
            mark.uses.setdefault((how, name), (node, frame.module))
            places = mark.places.setdefault((how, name), [])
            if len(places) < 8 and (frame.variant, frame.region) not in places:
                places.append((frame.variant, frame.region))
        if value.kind is Kind.CONTAINER:
            for inner in value.items or ((value.element,) if value.element is not None else ()):
                if inner is not None:
                    self.consume(inner, how, frame, node, name)

    def indexed(self, frame: Frame, node: ast.AST, value: Value) -> None:
        self.consume(value, "index", frame, node)
        if value.is_tensor and not value.opaque:
            frame.record(SiteKind.CONVERT, node, receiver=value, name="slice")

    def fetched(self, frame: Frame, node: ast.AST, source: Value, result: Value) -> Value:
        """The host gets a copy of ``source``; from here on it is a host value that remembers where."""
        self.consume(source, "host", frame, node)
        if source.kind is Kind.TENSOR or source.on_gpu:
            marks = source.marks
            if source.device is not Device.HOST:
                marks = few(marks | {self.mark("fetch", node, frame.module)}, marks)
            return result._replace(marks=marks, loop=result.loop or source.loop)
        return result._replace(marks=source.marks, loop=source.loop)

    # ---- moves and stores --------------------------------------------------------------------------

    def moved(self, frame: Frame, node: ast.AST, source: Value, sure: bool) -> None:
        """A copy to the GPU; a batch tells its loaders, a mere allocation its creation."""
        if source.device is not Device.GPU:
            for mark in source.marks:
                if mark.kind == "alloc":
                    mark.uses.setdefault(("moved", ""), (node, frame.module))
        if isinstance(source.ref, frozenset):
            for loader in source.ref:
                if isinstance(loader, Loader):
                    loader.moved.append((node, sure, frame.module))

    def stored(self, frame: Frame, node: ast.Subscript, base: Value, key: Value, value: Value) -> None:
        """`tensor[key] = value`: a GPU value written into a host tensor is a copy to the host."""
        if base.device is Device.HOST and value.on_gpu and value.kind is Kind.TENSOR:
            frame.record(SiteKind.CONVERT, node, receiver=value, name="store")
        if value.attached and base.kind is Kind.TENSOR:
            self.consume(value, "store", frame, node)

    # ---- steps -------------------------------------------------------------------------------------

    def event(self, frame: Frame, node: ast.AST, name: str) -> None:
        if not any(e.node is node for e in frame.variant.events):
            frame.variant.events.append(Event(name, node, frame.region, frame.module))

    def backward(self, frame: Frame, node: ast.AST, value: Value, name: str) -> None:
        """Gradients flow: whatever was accumulated into the value needs its graph."""
        self.consume(value, "backward", frame, node)
        frame.variant.uses_gradients = True
        if name != "torch.autograd.grad":
            self.event(frame, node, "backward")

    def forward_pass(self, frame: Frame, node: ast.Call, target: Value, args: Arguments) -> None:
        """A module is called: on data drawn from a loop, that loop evaluates (or trains)."""
        if target.kind is not Kind.MODULE and not target.on_gpu:
            return
        site = frame.variant.sites.get((SiteKind.CALL, node))
        if site is not None:
            site.name = "forward"
        if frame.info is not None and frame.grad is True:
            self.running_modules.add(frame.info)
        for value in args.all:
            for inner in self.flatten(value):
                if not (inner.is_tensor or inner.kind is Kind.UNKNOWN):
                    continue
                if isinstance(inner.loop, Made):
                    self._evaluates(inner.loop.loop, frame, node, weak=True)
                elif inner.loop is Fresh.FRESH:
                    self.event(frame, node, "forward")
                elif isinstance(inner.loop, ast.AST):
                    self._evaluates(inner.loop, frame, node, weak=False)

    def _evaluates(self, loop: ast.AST, frame: Frame, node: ast.AST, weak: bool) -> None:
        info = self.loops.get(loop)
        if info is None or self.inside_forward(info):
            return
        if weak and info.evaluation is None:
            info.weak_evaluation = info.weak_evaluation or node
            info.evaluation_module = info.evaluation_module or frame.module
        elif not weak and (info.evaluation is None):
            info.evaluation, info.evaluation_module = node, frame.module

    def inside_forward(self, info: LoopInfo) -> bool:
        """A loop inside a forward pass runs over layers, levels or time: it is part of the step."""
        raise NotImplementedError

    def flatten(self, value: Value) -> list[Value]:
        """The members of containers, else the value itself."""
        if value.kind is not Kind.CONTAINER:
            return [value]
        if value.items is not None:
            return [v for item in value.items for v in self.flatten(item)]
        return self.flatten(value.element) if value.element is not None else []

    def add_caller(self, callee: Variant, frame: Frame, node: ast.AST) -> None:
        entry = (frame.variant, frame.region, node)
        if entry not in callee.callers:
            callee.callers.append(entry)

    # ---- loaders -------------------------------------------------------------------------------------

    def new_loader(self, frame: Frame, node: ast.Call, args: Arguments, foreign: bool) -> Value:
        from gpulint.model.loaders import pin_of

        options = dict(args.keywords)
        names = (
            "dataset",
            "batch_size",
            "shuffle",
            "sampler",
            "batch_sampler",
            "num_workers",
            "collate_fn",
            "pin_memory",
        )
        options.update(zip(names, args.positional))
        dataset = options.get("dataset", Value())
        loader = self.loaders.get(node)
        if loader is None:
            loader = self.loaders[node] = Loader(
                node, frame.module, frame.variant, options, args.exact, Pin.UNKNOWN, foreign, dataset
            )
        else:
            for name, value in options.items():
                loader.options[name] = join(loader.options[name], value) if name in loader.options else value
            loader.dataset = join(loader.dataset, dataset)
            loader.complete &= args.exact
        loader.pinned = pin_of(loader)
        return self.loader_value(loader)

    def loader_value(self, loader: Loader) -> Value:
        from gpulint.model.loaders import yields_gpu

        device = Device.GPU if yields_gpu(self, loader) or loader.prepared else Device.HOST
        batch = Value(Kind.TENSOR, device, Graph.DETACHED, opaque=True, pinned=loader.pinned, ref=frozenset([loader]))
        return Value(Kind.LOADER, element=batch, ref=frozenset([loader]))

    def foreign_loader(self, frame: Frame, node: ast.Call) -> Value:
        """A loader that an unknown call gives: its batches are on the host, its options unknown."""
        return Value(Kind.LOADER, element=unseen_batch())


def unseen_batch() -> Value:
    """A batch of a loader that cannot be seen: host, or wherever a framework placed it."""
    return Value(Kind.TENSOR, Device.UNKNOWN, Graph.DETACHED, sure=False, opaque=True)
