"""What values point to: objects that can change while the program runs, one per place that makes them."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpulint.model.values import UNKNOWN, Device, Pin, Value, join

if TYPE_CHECKING:
    from gpulint.model.sites import Variant
    from gpulint.model.syntax import ClassInfo, FunctionInfo, ModuleInfo


class Instance:
    """An object of a class: its attributes, joined over every assignment that was seen.

    ``device`` is where an ``nn.Module`` was moved to; moving to the GPU sticks, since a later
    ``.cpu()`` serves to save or to export. ``version`` counts changes, so that a function that
    read the attributes earlier is known to be stale.
    """

    __slots__ = ("attrs", "cls", "device", "frozen", "members", "node", "sure", "version")

    def __init__(self, cls: ClassInfo | None, node: ast.AST | None, device: Device = Device.HOST) -> None:
        self.cls = cls
        self.node = node
        self.attrs: dict[str, Value] = {}
        self.members: list[Value] = []  # the modules of a container or wrapper
        self.device = device
        self.sure = True
        self.frozen = False
        self.version = 0

    def get(self, name: str) -> Value | None:
        return self.attrs.get(name)

    def set(self, name: str, value: Value) -> None:
        old = self.attrs.get(name)
        new = value if old is None else join(old, value)
        if new != old:
            self.attrs[name] = new
            self.version += 1

    def move(self, device: Device, sure: bool = True) -> None:
        if device is not Device.HOST and self.device is not Device.GPU and device is not self.device:
            self.device, self.sure = device, sure
            self.version += 1
            for member in (*self.attrs.values(), *self.members):
                if isinstance(member.ref, Instance) and member.ref is not self:
                    member.ref.move(device, sure)


@dataclass(eq=False, slots=True)
class Loader:
    """A ``DataLoader`` call: what it was given and what becomes of its batches."""

    node: ast.Call
    module: ModuleInfo
    variant: Variant
    options: dict[str, Value]
    complete: bool  # False where options arrive by a ** that cannot be seen
    pinned: Pin
    foreign: bool = False
    dataset: Value = UNKNOWN
    moved: list[tuple[Any, bool, ModuleInfo]] = field(default_factory=list)  # (site, sure) of copies to the GPU
    prepared: bool = False  # handed to a framework that places its batches


@dataclass(eq=False, slots=True)
class Closure:
    """A function value: the definition and what it captured."""

    info: FunctionInfo
    env: dict[str, Value]
    receiver: Value | None = None  # bound `self`
    partial: tuple[Value, ...] = ()
    grad: bool | None = None  # False where wrapped by no_grad(...)


def join_loaders(a: Any, b: Any) -> Any:
    """The loaders that a batch may come from; any other two objects that differ are unknown."""
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return a | b
    if isinstance(a, frozenset) or isinstance(b, frozenset):
        return a if isinstance(a, frozenset) else b
    if isinstance(a, Instance) and isinstance(b, Instance):
        if a.cls is None and a.node is None:
            return b  # nothing is known of a but its name
        return a if b.cls is None and b.node is None else None
    if isinstance(a, Closure) and isinstance(b, Closure) and a.info is b.info:
        return a
    return None
