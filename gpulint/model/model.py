"""The questions that rules ask of one file."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpulint.finding import Applicability, Confidence, Edit, Evidence, Fix, Span
from gpulint.model.api import api
from gpulint.model.conditions import resets
from gpulint.model.heap import Closure, Loader
from gpulint.model.keep import Mark
from gpulint.model.loaders import Cost, cost, yields_gpu
from gpulint.model.questions import (
    Kept,
    callees,
    evaluation_root,
    from_parameter,
    holds,
    is_attached,
    kept_expression,
    kept_values,
    names_evaluation,
    tensors_in,
    trains,
)
from gpulint.model.sites import LoopInfo, Phase, Region, RegionKind, Site, SiteKind, Variant
from gpulint.model.syntax import FunctionInfo, ModuleInfo, dotted
from gpulint.model.values import Device, Kind, Value

if TYPE_CHECKING:
    from gpulint.model.interpreter import Interpreter


@dataclass(frozen=True, slots=True)
class Step:
    """Why code runs on every step: its step loop, or the step function that it stands in."""

    phase: Phase
    loop: LoopInfo | None
    variant: Variant

    @property
    def training(self) -> bool:
        return self.phase is Phase.TRAINING


class Model:
    """One file as the analysis understands it."""

    def __init__(self, interpreter: Interpreter, module: ModuleInfo, sites: list[Site]) -> None:
        self._interpreter = interpreter
        self._module = module
        self.source = module.source
        self.path: Path = module.path
        self.gpu = module.gpu
        self._by_kind: dict[SiteKind, dict[ast.AST, list[Site]]] = defaultdict(lambda: defaultdict(list))
        for site in sites:
            self._by_kind[site.kind][site.node].append(site)
        self._parents: dict[ast.AST, ast.AST] | None = None

    @property
    def tree(self) -> ast.Module:
        return self._module.tree

    # ---- sites -----------------------------------------------------------------------------------

    def sites(self, *kinds: SiteKind) -> Iterator[list[Site]]:
        """Per place in source order: how each variant of the function around it sees it."""
        groups = [group for kind in kinds for group in self._by_kind[kind].values()]
        yield from sorted(groups, key=lambda g: (g[0].line, getattr(g[0].node, "col_offset", 0)))

    def calls(self, *names: str) -> Iterator[list[Site]]:
        """Calls by method name or qualified name."""
        for group in self.sites(SiteKind.CALL):
            if group[0].name in names or any(s.name in names for s in group):
                yield group

    def call(self, node: ast.AST) -> list[Site]:
        return self._by_kind[SiteKind.CALL].get(node, [])

    # ---- steps -----------------------------------------------------------------------------------

    def step(self, site: Site) -> Step | None:
        """The step loop or step function on whose every pass the site runs, else None."""
        return self._interpreter_step(site.region, site.variant, set())

    def _interpreter_step(self, region: Region, variant: Variant, visited: set[int]) -> Step | None:
        current: Region | None = region
        found: Step | None = None
        while current is not None:
            if current.kind is RegionKind.GUARD and not current.holds_step:
                return found
            if current.kind is RegionKind.ALLOWED:
                return None
            if current.kind is RegionKind.LOOP and current.node is not None:
                info = self._interpreter.loops.get(current.node)
                if info is not None and info.is_step:
                    here = Step(info.phase, info, variant)
                    if info.training or info.evaluation:
                        return here
                    found = found or here  # weak evidence: look for better further out
            current = current.parent
        if self._interpreter.allowed(variant):
            return None
        if variant.step_function is not None:
            return Step(variant.step_function, None, variant)
        if id(variant) in visited:
            return found
        visited.add(id(variant))
        for caller, call_region, _ in variant.callers:
            step = self._interpreter_step(call_region, caller, visited)
            if step is not None and (found is None or step.training or not found.training):
                found = step
                if step.training:
                    break
        return found

    @property
    def loops(self) -> list[LoopInfo]:
        return [info for info in self._interpreter.loops.values() if info.module is self._module]

    @property
    def loaders(self) -> list[Loader]:
        return [loader for loader in self._interpreter.loaders.values() if loader.module is self._module]

    def loop_info(self, node: ast.AST | None) -> LoopInfo | None:
        return self._interpreter.loops.get(node) if node is not None else None

    @property
    def marks(self) -> dict[tuple[str, ast.AST], object]:
        return self._interpreter.marks  # type: ignore[return-value]

    # ---- kept values, evaluations, loaders ---------------------------------------------------------

    @property
    def trains(self) -> bool:
        """Whether the file belongs to a program that trains."""
        return self._module.trains

    def kept_graphs(self) -> Iterator[Kept]:
        """Values in the autograd graph that are kept over steps and never reach a backward pass."""
        yield from self._kept(lambda values: any(is_attached(v) for v in values), graphs=True)

    def kept_outputs(self) -> Iterator[Kept]:
        """Outputs on the GPU that are collected over steps and used on the host afterwards."""
        yield from self._kept(
            lambda values: any(v.on_gpu and v.bulk and not is_attached(v) for v in values), graphs=False
        )

    def _kept(self, wanted: Callable[[list[Value]], bool], graphs: bool) -> Iterator[Kept]:
        seen: set[ast.AST] = set()
        for site, mark in kept_values(self._interpreter):
            values = tensors_in(self._interpreter, site.args[0])
            if not wanted(values) or mark.used_for("backward") or site.receiver.const == "bounded":
                continue
            if not graphs and (site.kind is not SiteKind.KEEP or not mark.used_for("host")):
                continue
            if site.name == "constant-key":
                continue
            step = self.step(site)
            if step is None or not self._persists(site, mark, step):
                continue
            if graphs and not step.training and evaluation_root(site) is not None:
                continue  # GPU301 names the cause
            for node, value, module in self._where_to_edit(site):
                if module is self._module and node not in seen:
                    seen.add(node)
                    chosen = [v for v in values if v.on_gpu] or values
                    yield Kept(node, value, site, step, self._kept_confidence(chosen, graphs))

    @staticmethod
    def _kept_confidence(values: list[Value], graphs: bool) -> Confidence:
        if graphs:
            return Confidence.CERTAIN if all(v.sure for v in values) else Confidence.LIKELY
        return max(confidence_of(v) for v in values)

    def _persists(self, site: Site, mark: Mark, step: Step) -> bool:
        """Whether what the site adds to is found again on the next step."""
        if not holds(site.receiver, mark):
            return False
        root = site.path.partition(".")[0].partition("[")[0]
        info = site.variant.info
        if step.loop is not None and step.loop.node is not None:
            if self._flushed(site, step.loop.node, root):
                return False
            if mark in step.loop.carried:
                return True
            inside = any(r.node is step.loop.node for r in site.region.outward())
            if inside:
                return root == "self" or "." in site.path
        return root == "self" or (info is None) or not self._local(info, root)

    def _flushed(self, site: Site, loop: ast.AST, root: str) -> bool:
        """Whether the loop, the function that keeps, or a method called there empties the container."""
        scopes = [loop]
        if site.variant.info is not None and not any(r.node is loop for r in site.region.outward()):
            scopes.append(site.variant.info.node)  # the loop calls the function that keeps
        cls = site.variant.info.cls if site.variant.info is not None else None
        for scope in list(scopes):
            for node in ast.walk(scope):
                name = dotted(node.func) or "" if isinstance(node, ast.Call) else ""
                method = cls.method(name[5:]) if cls is not None and name.startswith("self.") else None
                if method is not None:
                    scopes.append(method.node)
        return any(resets(scope, site.path) or resets(scope, root) for scope in scopes)

    @staticmethod
    def _local(info: FunctionInfo, name: str) -> bool:
        return any(
            isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in ast.walk(info.node)
        )

    def _where_to_edit(self, site: Site) -> Iterator[tuple[ast.AST, ast.AST, ModuleInfo]]:
        """The kept expression; for a meter's method, the call in the step that hands the value over."""
        parameter = from_parameter(site)
        if parameter is None or not site.variant.callers:
            yield site.node, kept_expression(site), site.module
            return
        for caller, region, node in site.variant.callers:
            if not isinstance(node, ast.Call) or self._interpreter_step(region, caller, set()) is None:
                continue
            call = caller.sites.get((SiteKind.CALL, node))
            argument = next(
                (
                    a
                    for a, v in zip(node.args, call.args if call else ())
                    if any(is_attached(t) for t in tensors_in(self._interpreter, v))
                ),
                None,
            )
            yield node, argument or node, caller.module

    def evaluations_with_gradients(self) -> Iterator[tuple[Site, Confidence, FunctionInfo | None]]:
        """The first forward pass of each evaluating function that runs with gradients on."""
        graph = callees(self._interpreter)
        done: set[object] = set()
        for group in self.sites(SiteKind.CALL):
            for site in group:
                if not self._runs_module(site) or self._inside_module(site):
                    continue
                root = evaluation_root(site)
                inline = self.inline_evaluation(site)
                if inline is not None and inline not in done and (root is None or trains(graph, root)):
                    done.add(inline)
                    yield site, Confidence.CERTAIN, site.variant.info
                    break
                if root is None or (root.info or root) in done or trains(graph, root):
                    continue
                mark = self._interpreter.marks.get(("forward", site.node))
                if mark is not None and mark.used_for("backward"):
                    continue
                confidence = self._evaluation_confidence(site, root)
                done.add(root.info or root)
                yield site, confidence, root.info
                break

    def _runs_module(self, site: Site) -> bool:
        """A module is called, or a method of one that calls modules."""
        if site.name == "forward":
            return True
        closure = site.func.ref
        if not isinstance(closure, Closure) or closure.receiver is None or closure.receiver.kind is not Kind.MODULE:
            return False
        return closure.info in self._interpreter.running_modules

    def _inside_module(self, site: Site) -> bool:
        """A module called by a method of another: the outer call is the one to guard."""
        info = site.variant.info
        return (
            info is not None
            and info.cls is not None
            and bool(site.variant.callers)
            and self._interpreter.is_module(info.cls)
            and not names_evaluation(info.name)
        )

    def inline_evaluation(self, site: Site) -> ast.AST | None:
        """The evaluation loop, after ``.eval()``, of a function that also trains, with gradients on."""
        loop = site.region.loop
        info = self.loop_info(loop.node) if loop is not None else None
        if site.grad is not True or info is None or info.training is not None or info.evaluation is None:
            return None
        modes = [m for m in site.variant.modes if m[0] < site.line]
        return info.node if modes and max(modes)[1] == "eval" else None

    def _evaluation_confidence(self, site: Site, root: Variant) -> Confidence:
        step = self.step(site)
        if root.eval_mode or any(v.eval_mode for v, _, _ in root.callers):
            return Confidence.CERTAIN if step is not None or root.info is not None else Confidence.LIKELY
        if step is not None and step.loop is not None and step.loop.evaluation is not None:
            return Confidence.LIKELY
        return Confidence.LIKELY if root.callers else Confidence.POSSIBLE

    def evidence_of_evaluation(self, site: Site, info: FunctionInfo | None) -> list[Evidence]:
        links = [self.evidence_at(site.node, "a module is called here with autograd on")]
        if info is not None:
            links.append(
                self.evidence_at(info.node, f"`{info.qualname}` evaluates: nothing in it uses gradients", info.module)
            )
        return links

    def yields_gpu(self, loader: Loader) -> bool:
        return yields_gpu(self._interpreter, loader)

    def reads_items(self, loader: Loader) -> bool:
        return cost(loader.dataset) is Cost.READS

    def serves_framework(self, loader: Loader) -> bool:
        """Whether a framework fetches the loader from a hook: ``train_dataloader``."""
        info = loader.variant.info
        return info is not None and info.cls is not None and info.name.endswith("dataloader")

    def step_over(self, loader: Loader) -> LoopInfo | None:
        """A step loop that draws its batches from the loader."""
        for info in self._interpreter.loops.values():
            ref = info.iterates.ref
            if isinstance(ref, frozenset) and loader in ref and info.is_step:
                return info
        return None

    # ---- allocations -------------------------------------------------------------------------------

    def sites_of_allocation(self) -> Iterator[list[Site]]:
        for group in self.sites(SiteKind.CALL):
            if ("alloc", group[0].node) in self._interpreter.marks:
                yield group

    def moved_after(self, site: Site) -> tuple[ast.AST, ModuleInfo] | None:
        mark = self._interpreter.marks[("alloc", site.node)]
        return mark.uses.get(("moved", ""))

    def allocated_in_step(self, mark: Mark) -> bool:
        return any(
            self.step(site) is not None
            for variant in self._interpreter.variants
            for site in variant.sites.values()
            if site.node is mark.node
        )

    @staticmethod
    def is_random(site: Site) -> bool:
        return api().has("create.random", site.name)

    def seeds_host(self) -> bool:
        return "manual_seed" in self.source.text

    # ---- names -------------------------------------------------------------------------------------

    def deprecated_amp(self) -> Iterator[tuple[ast.AST, str]]:
        """Uses of deprecated AMP names, outside shims."""
        for group in self.sites(SiteKind.CALL):
            site = group[0]
            name = str(site.func.const) if site.func.kind is Kind.NAMESPACE else ""
            if (
                name.startswith(("torch.cuda.amp.", "torch.cpu.amp.", "apex.amp."))
                and not any(r.note == "except" for r in site.region.outward())
                and not self._version_checked(site.node)
            ):
                yield site.node, name

    def _version_checked(self, node: ast.AST) -> bool:
        """Whether the code stands in a branch on a version, or in an ``except``: a shim."""
        current: ast.AST | None = node
        while current is not None:
            if isinstance(current, ast.If) and re.search(r"version|hasattr", ast.unparse(current.test), re.I):
                return True
            if isinstance(current, ast.ExceptHandler):
                return True
            current = self.parent(current)
        return False

    # ---- fixes -------------------------------------------------------------------------------------

    def fix_keyword(
        self,
        call: ast.AST,
        name: str,
        value: str,
        title: str,
        applicability: Applicability = Applicability.SAFE,
    ) -> Fix | None:
        """Give a call a keyword argument."""
        from gpulint.edits import set_keyword

        edits = set_keyword(self.source.text, self.span(call), name, value)
        return Fix(title, applicability, tuple(edits)) if edits else None

    def fix_detach(self, value: ast.AST) -> Fix | None:
        """Append ``.detach()`` to an expression."""
        if not isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            return None
        end = self.span(value).end
        return Fix("Detach what is kept", Applicability.SAFE, (Edit(end, end, ".detach()"),))

    # ---- values read on the host -------------------------------------------------------------------

    @staticmethod
    def read_value(site: Site) -> Value:
        """The tensor whose value a site reads: a method's receiver, else the first argument."""
        converted = site.name.startswith(("builtins.", "math."))
        return site.args[0] if converted and site.args else site.receiver

    @staticmethod
    def read_node(site: Site) -> ast.AST:
        node = site.node
        if isinstance(node, ast.Call):
            if site.name.startswith(("builtins.", "math.")) and node.args:
                return node.args[0]
            if isinstance(node.func, ast.Attribute):
                return node.func.value
        return node

    def confidence(self, value: Value) -> Confidence:
        """Without evidence of a GPU in the program, a finding about waiting is only possible."""
        return confidence_of(value) if self.gpu else Confidence.POSSIBLE

    def over_parameters(self, site: Site) -> bool:
        """Whether the site runs once per parameter of a module: a cause of its own."""
        loop = site.region.loop
        node = loop.node if loop is not None else None
        iterable = node.iter if isinstance(node, ast.For | ast.comprehension) else None
        return iterable is not None and "parameters" in ast.unparse(iterable)

    def nested(self, site: Site, step: Step) -> bool:
        """Whether a further loop stands between the site and its step loop: once per image, per element."""
        loop = site.region.loop
        return loop is not None and (step.loop is None or loop.node is not step.loop.node)

    def cannot_wait(self, site: Site, step: Step) -> bool:
        """Whether the host must have the value within the step: an action, a matcher's input, a stop token."""
        mark = self._interpreter.marks.get(("fetch", site.node))
        if mark is None:
            return False
        table = api()
        if "distributed.rpc" in self.source.text:
            return True
        for (how, name), places in mark.places.items():
            if not any(self._interpreter_step(region, variant, set()) for variant, region in places):
                continue  # used after the loop: it can wait
            if how == "index" and not step.training:
                return True
            if how == "branch" and not step.training and self._generates(step):
                return True
            if how == "call" and (
                table.starts("host_needs.packages", name) or name in table.names("host_needs.methods")
            ):
                return True
        return False

    @staticmethod
    def _generates(step: Step) -> bool:
        return step.loop is not None and step.loop.evaluation is None

    def fetched_before(self, site: Site) -> bool:
        """Whether the same unchanged tensor was fetched just before, with no GPU work in between."""
        node = self.read_node(site)
        text = ast.unparse(node) if isinstance(node, ast.expr) else ""
        for other in site.variant.sites.values():
            if (
                other.node is site.node
                or other.kind is not SiteKind.CALL
                or other.name not in ("item", "tolist", "cpu", "builtins.float", "builtins.int")
            ):
                continue
            earlier = (other.line, other.node.col_offset) < (site.line, site.node.col_offset)  # type: ignore[attr-defined]
            if not earlier or other.region is not site.region:
                continue
            first = self.read_node(other)
            if isinstance(first, ast.expr) and ast.unparse(first) == text and not self._work_between(other, site, text):
                return True
        return False

    def _work_between(self, first: Site, second: Site, text: str) -> bool:
        head = text.partition(".")[0].partition("[")[0]
        for node in ast.walk(second.variant.body.node or self.tree):
            line = getattr(node, "lineno", 0)
            if first.line < line < second.line or (line in (first.line, second.line) and first.line != second.line):
                if (
                    isinstance(node, ast.Name)
                    and node.id == head
                    and isinstance(node.ctx, ast.Store)
                    and line > first.line
                ):
                    return True
                if isinstance(node, ast.Call) and first.line < line < second.line:
                    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                    sites = second.variant.sites.get((SiteKind.CALL, node))
                    if name in ("backward", "step") or (sites is not None and sites.name == "forward"):
                        return True
        return False

    # ---- places ----------------------------------------------------------------------------------

    def span(self, node: ast.AST) -> Span:
        """Character offsets of a node that has a position."""
        start = self.source.offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]
        end = self.source.offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]
        return Span(start, end)

    def text(self, node: ast.AST) -> str:
        span = self.span(node)
        return self.source.text[span.start : span.end]

    def short(self, node: ast.AST, limit: int = 60) -> str:
        """The source of a node on one line, shortened: for messages."""
        text = " ".join(self.text(node).split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def parent(self, node: ast.AST) -> ast.AST | None:
        if self._parents is None:
            self._parents = {c: p for p in ast.walk(self.tree) for c in ast.iter_child_nodes(p)}
        return self._parents.get(node)

    def statement(self, node: ast.AST) -> ast.stmt | None:
        current: ast.AST | None = node
        while current is not None and not isinstance(current, ast.stmt):
            current = self.parent(current)
        return current

    # ---- evidence --------------------------------------------------------------------------------

    def evidence_at(self, node: ast.AST, message: str, module: ModuleInfo | None = None) -> Evidence:
        owner = module or self._module
        line = getattr(node, "lineno", 1)
        column = getattr(node, "col_offset", 0)
        source = owner.source
        return Evidence(owner.path, line, source.position(source.offset(line, column))[1], message)

    def evidence_of_step(self, step: Step) -> list[Evidence]:
        """The links that show why the site runs on every step."""
        links: list[Evidence] = []
        if step.loop is not None:
            loop, phase = step.loop, step.phase.value
            at = loop.node if hasattr(loop.node, "lineno") else getattr(loop.node, "target", loop.node)
            links.append(self.evidence_at(at, f"this loop is {_a(phase)} step loop", loop.module))
            reason = loop.reason
            if reason is not None:
                owner = loop.training_module if loop.training is not None else loop.evaluation_module
                what = (
                    "the step is taken here"
                    if loop.training is not None
                    else "a module is called here on data of the loop"
                )
                links.append(self.evidence_at(reason, what, owner or loop.module))
        else:
            info = step.variant.info
            if info is not None:
                links.append(
                    self.evidence_at(
                        info.node, f"`{info.qualname}` is a step function: it runs once per step", info.module
                    )
                )
        return links

    def evidence_of_value(self, node: ast.AST, value: Value) -> Evidence:
        where = {
            Device.GPU: "on the GPU",
            Device.HOST: "on the host",
            Device.UNKNOWN: "on an unknown device",
        }[value.device]
        graph = ", attached to the graph" if value.attached else ""
        sure = "" if value.sure else " (by use and name; no code that was seen makes it)"
        return self.evidence_at(
            node,
            f"`{self.short(node, 40)}` is {'a tensor ' if value.kind is Kind.TENSOR else ''}{where}{graph}{sure}",
        )


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"


def confidence_of(value: Value) -> Confidence:
    """How sure a finding about a value can be: a device not known gives a possibility at most."""
    if not value.on_gpu:
        return Confidence.POSSIBLE
    return Confidence.CERTAIN if value.sure else Confidence.LIKELY
