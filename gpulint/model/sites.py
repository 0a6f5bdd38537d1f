"""What the analysis records: where code runs (regions, loops), and what is seen there (sites)."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from gpulint.model.values import NONE, UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from gpulint.model.heap import Instance
    from gpulint.model.syntax import FunctionInfo, ModuleInfo


class RegionKind(Enum):
    BODY = "body"  # a function's or module's
    LOOP = "loop"
    GUARD = "guard"  # a branch taken rarely
    BRANCH = "branch"  # any other branch
    ALLOWED = "allowed"  # a context that the configuration allows to synchronise
    CONTEXT = "context"  # any other `with`; `note` is the qualified name where known


@dataclass(eq=False, slots=True)
class Region:
    """One level of the nesting that code stands in, within its function; ``parent`` is further out."""

    kind: RegionKind
    node: ast.AST | None
    parent: Region | None
    note: str = ""
    holds_step: bool = False  # a guard around the training step itself guards nothing

    def outward(self) -> list[Region]:
        result: list[Region] = []
        region: Region | None = self
        while region is not None:
            result.append(region)
            region = region.parent
        return result

    @property
    def loop(self) -> Region | None:
        """The innermost loop of this function around the region."""
        return next((r for r in self.outward() if r.kind is RegionKind.LOOP), None)


class Phase(Enum):
    TRAINING = "training"
    EVALUATION = "evaluation"


@dataclass(eq=False, slots=True)
class LoopInfo:
    """What is known of one loop of the source, over all ways in which it is reached."""

    node: ast.AST
    module: ModuleInfo
    function: FunctionInfo | None
    iterates: Value = UNKNOWN
    training: ast.AST | None = None  # the node that makes it a training step loop
    training_module: ModuleInfo | None = None
    evaluation: ast.AST | None = None  # the module call on data drawn from it
    evaluation_module: ModuleInfo | None = None
    weak_evaluation: ast.AST | None = None  # a module call on data merely made in the loop
    outer: bool = False  # stands around another step loop
    carried: frozenset[Any] = frozenset()  # accumulations that survive from pass to pass

    @property
    def is_step(self) -> bool:
        """Data merely made in the loop does not make an epoch loop around a step loop one itself."""
        return (
            self.training is not None
            or (
                self.evaluation is not None
                and (self.iterates.kind is Kind.LOADER or not isinstance(self.node, ast.comprehension))
            )
            or (self.weak_evaluation is not None and not self.outer and not isinstance(self.node, ast.comprehension))
        )

    @property
    def reason(self) -> ast.AST | None:
        return self.training or self.evaluation or self.weak_evaluation

    @property
    def phase(self) -> Phase:
        return Phase.TRAINING if self.training is not None else Phase.EVALUATION


class SiteKind(Enum):
    CALL = "call"
    TEST = "test"  # an expression whose truth is taken
    FORMAT = "format"  # a value formatted by an f-string or %
    AUGMENT = "augment"  # `x += value`
    KEEP = "keep"  # `xs.append(value)`, `xs[k] = value`, `xs += [value]`, `self.x = value` that carries
    ITERATE = "iterate"  # a for loop or comprehension over a value
    CONVERT = "convert"  # min/max/sorted/float(...) over tensors


@dataclass(eq=False, slots=True)
class Site:
    """One place of the source as one variant of its function sees it."""

    kind: SiteKind
    node: ast.AST
    variant: Variant
    region: Region
    receiver: Value = UNKNOWN  # of a method call; the old value of an augmented target
    func: Value = UNKNOWN
    name: str = ""  # method name, or qualified name of the function
    args: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)
    result: Value = UNKNOWN
    grad: bool | None = True
    path: str = ""  # the access path that is kept or augmented

    @property
    def module(self) -> ModuleInfo:
        return self.variant.module

    @property
    def line(self) -> int:
        return int(getattr(self.node, "lineno", 1))


@dataclass(eq=False)
class Event:
    """Something that makes a loop a step loop: ``loss.backward()``, ``optimizer.step()``."""

    name: str
    node: ast.AST
    region: Region
    module: ModuleInfo


class Variant:
    """One function (or module body) under one set of arguments: its sites, callers and result."""

    def __init__(self, info: FunctionInfo | None, module: ModuleInfo, grad: bool | None) -> None:
        self.info = info
        self.module = module
        self.grad = grad
        self.body = Region(RegionKind.BODY, info.node if info else module.tree, None)
        self.sites: dict[tuple[SiteKind, ast.AST], Site] = {}
        self.regions: dict[tuple[ast.AST, str], Region] = {}
        self.callers: list[tuple[Variant, Region, ast.AST]] = []
        self.events: list[Event] = []
        self.result: Value = NONE
        self.yields: Value | None = None
        self.yield_loops: list[Region] = []
        self.running = False
        self.runs = 0
        self.root = False  # analysed without a caller
        self.step_function: Phase | None = None
        self.seen: dict[Instance, int] = {}  # versions of the objects it read
        self.eval_mode = False  # calls `.eval()` on a module
        self.modes: set[tuple[int, str]] = set()  # (line, "eval" or "train") of mode switches
        self.uses_gradients = False
        self.trains: bool | None = None  # it or what it calls takes a step; asked after the analysis

    @property
    def name(self) -> str:
        return self.info.name if self.info else "<module>"

    def region(self, kind: RegionKind, node: ast.AST, parent: Region, note: str = "", part: str = "") -> Region:
        key = (node, f"{kind.value}:{part}")
        region = self.regions.get(key)
        if region is None or region.parent is not parent:
            region = self.regions[key] = Region(kind, node, parent, note)
        return region
