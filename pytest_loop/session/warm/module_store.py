"""Hold modules that were loaded before a session, and serve them to its imports.

A module is served only if importing it now would find the same file and read the same environment. Otherwise, Python
imports it as usual.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import sys
import warnings
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib.abc import Loader
from types import ModuleType

from pytest_loop.session.warm.import_trial import ImportTrace, get_origin


@dataclass
class ModuleStore:
    """Loaded modules that are hidden from `sys.modules` until a session imports them.

    `missed` are the names of modules that a session imported, and that were not loaded.
    """

    traces: dict[str, ImportTrace] = field(default_factory=dict)
    modules: dict[str, ModuleType] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    _hidden_attributes: set[str] = field(default_factory=set)

    def load(self, trace: ImportTrace) -> list[ModuleType]:
        """Import a module and hide it; return all modules that are new."""
        before = frozenset(sys.modules)
        self._show(self.modules)
        with warnings.catch_warnings():
            importlib.import_module(trace.name)
        new = {name: module for name, module in sys.modules.items() if name not in before}
        self.modules |= new
        self.traces[trace.name] = trace
        self._hide()
        return list(new.values())

    def install_finder(self) -> None:
        """Serve modules in this process from now on."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        trace = self.traces.get(name)
        if trace is not None and self._is_valid(trace):
            self._show(trace.modules)
            return importlib.machinery.ModuleSpec(name, _LoadedModule(sys.modules.pop(name)))
        self.missed.append(name)
        return self._find_extension(name)

    def _find_extension(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """Serve a loaded extension module: a process can load it only once, so it cannot be imported again."""
        module = self.modules.get(name)
        loader = getattr(module, "__loader__", None)
        if module is None or not isinstance(loader, importlib.machinery.ExtensionFileLoader):
            return None
        if name in sys.modules or self._find_origin(name) != get_origin(module.__spec__):
            return None
        prefix = f"{name}."
        created = [part for part in self.modules if part.startswith(prefix) and self.modules[part].__spec__ is None]
        self._show([name, *created])
        return importlib.machinery.ModuleSpec(name, _LoadedModule(sys.modules.pop(name)))

    def _is_valid(self, trace: ImportTrace) -> bool:
        """Return whether importing the module now would have the same result."""
        return (
            all(os.environ.get(name) == value for name, value in trace.variables.items())
            and all(sys.modules.get(name, self.modules[name]) is self.modules[name] for name in trace.modules)
            and all(self._find_origin(name) == origin for name, origin in trace.origins.items())
            and not any(self._find_origin(name) for name in trace.absent)
        )

    def _find_origin(self, name: str) -> str:
        """Return the file and type of loader that the other finders give a module; empty if they find none."""
        parent = sys.modules.get(name.rpartition(".")[0])
        path = getattr(parent, "__path__", None)
        finders = (finder for finder in sys.meta_path if finder is not self)
        return get_origin(next(filter(None, (finder.find_spec(name, path) for finder in finders)), None))

    def _show(self, names: Collection[str]) -> None:
        sys.modules.update((name, self.modules[name]) for name in names)
        for name in self._hidden_attributes.intersection(names):
            parent, _, attribute = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], attribute, self.modules[name])

    def _hide(self) -> None:
        """Remove the modules, also as attributes of their packages: `import xml` must not give `xml.etree`."""
        for name, module in self.modules.items():
            parent, _, attribute = name.rpartition(".")
            package = sys.modules.get(parent)
            if package is not None and vars(package).get(attribute) is module:
                delattr(package, attribute)
                self._hidden_attributes.add(name)
        for name in self.modules:
            sys.modules.pop(name, None)


class _LoadedModule(Loader):
    """A loader that returns a loaded module."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, _spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
