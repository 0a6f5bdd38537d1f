"""Imports, and what a name of another module is. One part of the Interpreter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpulint.model.api import canonical
from gpulint.model.syntax import Index, ModuleInfo
from gpulint.model.values import UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from gpulint.model.frame import Env


class Lazy:
    """A name imported from a project module, resolved (and that module run) when first used."""

    __slots__ = ("module", "name", "resolving", "value")

    def __init__(self, module: ModuleInfo, name: str) -> None:
        self.module = module
        self.name = name
        self.value: Value | None = None
        self.resolving = False


class Names:
    index: Index

    def module_env(self, module: ModuleInfo) -> Env:
        raise NotImplementedError

    def imported(self, importer: ModuleInfo, name: str) -> Value:
        """``import a.b.c`` (or its head): a project module, or a name from outside."""
        found = self.index.resolve(importer, tuple(name.split(".")))
        if found is not None:
            return Value(Kind.NAMESPACE, ref=found, const=name)
        return Value(Kind.NAMESPACE, const=canonical(name))

    def imported_from(self, importer: ModuleInfo, package: str, level: int, name: str) -> Value:
        target = tuple(package.split(".")) if package else ()
        found = self.index.resolve(importer, target, level) if (target or level) else None
        if found is not None:
            return Value(Kind.NAMESPACE, ref=Lazy(found, name), const=f"{package}.{name}")
        sub = self.index.resolve(importer, (*target, name), level)
        if sub is not None:
            return Value(Kind.NAMESPACE, ref=sub, const=f"{package}.{name}")
        if level:
            return UNKNOWN
        return Value(Kind.NAMESPACE, const=canonical(f"{package}.{name}"))

    def star(self, importer: ModuleInfo, package: str, level: int) -> Env:
        target = tuple(package.split(".")) if package else ()
        found = self.index.resolve(importer, target, level)
        if found is not None and found is not importer:
            importer.stars.append(found)  # looked through when a name is not found otherwise
        return {}

    def starred(self, module: ModuleInfo, name: str) -> Value | None:
        """A name that a star import of the module brings in; only a file whose text binds it is run."""
        for source in module.stars:
            if not source.running and source.may_bind(name):
                value = self.member(source, name)
                if value.kind is not Kind.UNKNOWN:
                    return value
        return None

    def force(self, value: Value) -> Value:
        """Resolve an import that was put off."""
        lazy = value.ref
        if not isinstance(lazy, Lazy):
            return value
        if lazy.resolving:
            return UNKNOWN  # an import cycle
        if lazy.value is None or (lazy.value.kind is Kind.UNKNOWN and not lazy.module.running):
            lazy.resolving = True
            try:
                lazy.value = self.member(lazy.module, lazy.name)
            finally:
                lazy.resolving = False
        return lazy.value

    def member(self, module: ModuleInfo, name: str) -> Value:
        """A name of a project module: what its body leaves, or a submodule."""
        value = self.module_env(module).get(name)
        if value is not None:
            return self.force(value)
        brought = self.starred(module, name)
        if brought is not None:
            return brought
        sub = self.index.resolve(module, (*module.package, name)) if not module.is_package else None
        sub = sub or self.index._by_name.get((*module.name, name))
        if sub is not None:
            return Value(Kind.NAMESPACE, ref=sub, const=name)
        return UNKNOWN
