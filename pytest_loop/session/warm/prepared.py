"""Modules that were loaded ahead of a session, and the proof that loading them again would change nothing.

A session that was forked finds such a module only where an import would have found the same file, read the same
environment, and left nothing behind but modules. Whatever is in doubt is imported as ever.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import signal
import sys
import threading
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from importlib.abc import Loader
from types import ModuleType
from typing import Any

from pytest_loop.session.locations import Places

# They change what other modules are, so that nothing may be loaded before them.
PATCHING = frozenset({"gevent", "eventlet"})
_HARMLESS = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")
_LOUD = ("subprocess.Popen", "os.system", "os.fork", "os.posix_spawn", "os.exec", "socket.connect", "socket.bind")
Filter = tuple[str, str, str]


@dataclass(frozen=True)
class Root:
    """A module that sessions import, and all that comes with it."""

    name: str
    modules: tuple[str, ...]
    origins: Mapping[str, str]
    variables: Mapping[str, str | None]
    absent: tuple[str, ...]
    filters: tuple[Filter, ...]


# -- rehearsed in a process of its own


def rehearse(name: str, places: Places, since: float) -> Root | None:
    """Import a module and watch; None where that does more than to load modules that were there before the run."""
    watcher = _Watcher(places)
    before = _state()
    known = frozenset(sys.modules)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            filters = len(warnings.filters)
            watcher.is_on = True
            importlib.import_module(name)
            watcher.is_on = False
            added = [_filter(one) for one in warnings.filters[: len(warnings.filters) - filters]]
    except BaseException:  # whatever it is, the session is to see it
        return None
    new = tuple(one for one in sys.modules if one not in known)
    quiet = not warned and not watcher.noise and _state() == before and None not in added
    if not quiet or not all(_is_old(one, places, since) for one in new):
        return None
    tops = {one.partition(".")[0] for one in new}
    return Root(
        name=name,
        modules=new,
        origins={one: _origin(sys.modules[one].__spec__) for one in sorted({name, *tops})},
        variables=watcher.read,
        absent=tuple(sorted(watcher.absent)),
        filters=tuple(one for one in added if one),
    )


def _state() -> tuple[object, ...]:
    """What belongs to the process, and not to a module."""
    handlers = tuple(signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD))
    places = tuple(sys.path), tuple(map(id, sys.meta_path)), tuple(map(id, sys.path_hooks))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    output = tuple(os.fstat(one).st_size for one in (1, 2)), id(sys.stdout), id(sys.stderr)
    return handlers, places, output, dict(os.environ), os.getcwd(), threads()


def threads() -> int:
    """How many there are, also of those that Python does not know."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _is_old(name: str, places: Places, since: float) -> bool:
    """Whether a module is a part of Python, or was installed before the run began: nobody can have planted it."""
    if name.partition(".")[0] in PATCHING:
        return False
    spec = getattr(sys.modules[name], "__spec__", None)
    parent = name.rpartition(".")[0]
    if spec is None:  # made by another module, and not loaded from anywhere
        return parent in sys.modules and _is_old(parent, places, since)
    if spec.origin in ("built-in", "frozen"):
        return True
    paths = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    return bool(paths) and all(places.is_installed(path) and os.stat(path).st_ctime < since for path in paths)


def _origin(spec: importlib.machinery.ModuleSpec | None) -> str:
    """Where a module comes from, and who loads it: pytest loads plugins in its own way."""
    return f"{type(spec.loader).__name__} {spec.origin}" if spec else ""


def _filter(one: Any) -> Filter | None:
    """What `warnings.simplefilter` can be told again."""
    action, message, category, module, line = one
    if message is not None or module is not None or line:
        return None
    return str(action), category.__module__, category.__qualname__


class _Watcher:
    """Notes what an import reads and does while it is on; the process it lives in ends afterwards."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.is_on = False
        self.noise = False
        self.read: dict[str, str | None] = {}
        self.absent: set[str] = set()
        sys.addaudithook(self._audit)
        sys.meta_path.append(self)
        environment = type(os.environ)
        get, every = environment.__getitem__, environment.__iter__

        def one(this: Any, key: str) -> str:
            found: str | None = None
            try:
                found = get(this, key)
            finally:
                if self.is_on:
                    self.read[key] = found
            return found

        def all_of_them(this: Any) -> Any:
            self.noise = self.noise or self.is_on
            return every(this)

        environment.__getitem__ = one  # type: ignore[method-assign]
        environment.__iter__ = all_of_them  # type: ignore[method-assign]

    def find_spec(self, name: str, *_: object) -> None:
        """Asked last: nobody has found this module."""
        if self.is_on:
            self.absent.add(name)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if event == "open" and isinstance(args[0], (str, bytes)):
            path = os.path.abspath(os.fsdecode(args[0]))
            self.noise = self.noise or not (path.startswith(_HARMLESS) or self._is_known(path))
        elif event in _LOUD:
            self.noise = True

    def _is_known(self, path: str) -> bool:
        cached = f"{sys.pycache_prefix}{os.sep}" if sys.pycache_prefix else ""
        return self.places.is_installed(path) or (bool(cached) and path.startswith(cached))


# -- kept by the server, found by a session


@dataclass
class Prepared:
    """The modules that are ready, and the finder that gives them out."""

    roots: dict[str, Root] = field(default_factory=dict)
    modules: dict[str, ModuleType] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    _hidden: set[str] = field(default_factory=set)

    def load(self, root: Root) -> list[ModuleType]:
        """Import what was rehearsed, and take it out of sight again."""
        known = frozenset(sys.modules)
        self._show(self.modules)
        with warnings.catch_warnings():
            importlib.import_module(root.name)
        new = {name: module for name, module in sys.modules.items() if name not in known}
        self.modules |= new
        self.roots[root.name] = root
        self._hide()
        return list(new.values())

    def offer(self) -> None:
        """From now on, in this process."""
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Asked before all others."""
        root = self.roots.get(name)
        if root is None or not self._fits(root):
            self.asked.append(name)
            return self._native(name)
        self._show(root.modules)
        for action, module, category in root.filters:
            warnings.simplefilter(action, getattr(sys.modules[module], category))  # type: ignore[arg-type]
        return importlib.machinery.ModuleSpec(name, _Given(sys.modules.pop(name)))

    def _native(self, name: str) -> importlib.machinery.ModuleSpec | None:
        """A module that is no Python code can be loaded only once in a process, and brings modules of its own."""
        module = self.modules.get(name)
        loader = getattr(module, "__loader__", None)
        if module is None or not isinstance(loader, importlib.machinery.ExtensionFileLoader):
            return None
        if name in sys.modules or self._found(name) != _origin(module.__spec__):
            return None
        own = [one for one in self.modules if one.startswith(f"{name}.") and self.modules[one].__spec__ is None]
        self._show([name, *own])
        return importlib.machinery.ModuleSpec(name, _Given(sys.modules.pop(name)))

    def _fits(self, root: Root) -> bool:
        """Whether an import would come to the same."""
        return (
            all(os.environ.get(name) == value for name, value in root.variables.items())
            and all(sys.modules.get(name, self.modules[name]) is self.modules[name] for name in root.modules)
            and all(self._found(one) == origin for one, origin in root.origins.items())
            and not any(self._found(name) for name in root.absent)
        )

    def _found(self, name: str) -> str:
        """Where an import would lead."""
        parent = sys.modules.get(name.rpartition(".")[0])
        path = getattr(parent, "__path__", None)
        others = (finder for finder in sys.meta_path if finder is not self)
        return _origin(next(filter(None, (finder.find_spec(name, path) for finder in others)), None))

    def _show(self, names: Collection[str]) -> None:
        sys.modules.update((name, self.modules[name]) for name in names)
        for name in self._hidden.intersection(names):
            parent, _, leaf = name.rpartition(".")
            if parent in sys.modules:
                setattr(sys.modules[parent], leaf, self.modules[name])

    def _hide(self) -> None:
        """Also from the packages that they are parts of: `import xml` alone does not give `xml.etree`."""
        for name, module in self.modules.items():
            parent, _, leaf = name.rpartition(".")
            if parent and (place := sys.modules.get(parent)) and vars(place).get(leaf) is module:
                delattr(place, leaf)
                self._hidden.add(name)
        for name in self.modules:
            sys.modules.pop(name, None)


class _Given(Loader):
    """A loader for a module that is loaded already."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, _spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
