"""Try an import in a forked process, to find out whether it only loads modules."""

from __future__ import annotations

import importlib
import importlib.machinery
import os
import signal
import sys
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pytest_loop.session.locations import Locations

# Packages that patch other modules at import: they are never loaded in advance.
PATCHING_PACKAGES = frozenset({"gevent", "eventlet"})
_HARMLESS_PATHS = ("/proc/", "/sys/", "/dev/", "/etc/", "/usr/")
_SIDE_EFFECTS = (
    "subprocess.Popen",
    "os.system",
    "os.fork",
    "os.posix_spawn",
    "os.exec",
    "socket.connect",
    "socket.bind",
)


@dataclass(frozen=True)
class ImportTrace:
    """An import that only loads modules, and what it depended on.

    `origins` are the files of modules, `variables` the environment variables that were read, `absent` the names of
    modules that were looked for in vain.
    """

    name: str
    modules: tuple[str, ...]
    origins: Mapping[str, str]
    variables: Mapping[str, str | None]
    absent: tuple[str, ...]


def trace_import(name: str, locations: Locations, installed_before: float) -> ImportTrace | None:
    """Import a module; return None unless that only loads modules installed before a time.

    The process is changed by the import and must exit afterwards.
    """
    watcher = _Watcher(locations)
    state = _get_process_state()
    loaded = frozenset(sys.modules)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            filters = list(warnings.filters)
            watcher.is_active = True
            importlib.import_module(name)
            watcher.is_active = False
            has_warned = bool(caught) or list(warnings.filters) != filters
    except BaseException:  # the session is to see any error itself
        return None
    modules = tuple(module for module in sys.modules if module not in loaded)
    if has_warned or watcher.has_side_effects or _get_process_state() != state:
        return None
    if not all(_is_trusted(module, locations, installed_before) for module in modules):
        return None
    packages = {module.partition(".")[0] for module in modules}
    return ImportTrace(
        name=name,
        modules=modules,
        origins={module: get_origin(sys.modules[module].__spec__) for module in sorted({name, *packages})},
        variables=watcher.variables,
        absent=tuple(sorted(watcher.absent)),
    )


def get_origin(spec: importlib.machinery.ModuleSpec | None) -> str:
    """Return a module's file and its type of loader: pytest loads plugins with its own."""
    return f"{type(spec.loader).__name__} {spec.origin}" if spec else ""


def count_threads() -> int:
    """Return the number of threads, including those that Python does not know."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return threading.active_count()


def _get_process_state() -> tuple[object, ...]:
    """Return the state of the process that an import must not change."""
    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD)
    handlers = tuple(signal.getsignal(number) for number in signals)
    import_paths = tuple(sys.path), tuple(map(id, sys.meta_path)), tuple(map(id, sys.path_hooks))
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    output = tuple(os.fstat(number).st_size for number in (1, 2)), id(sys.stdout), id(sys.stderr)
    return handlers, import_paths, output, dict(os.environ), os.getcwd(), count_threads()


def _is_trusted(name: str, locations: Locations, installed_before: float) -> bool:
    """Return whether a module is part of Python, or was installed too early for a session to have planted it."""
    if name.partition(".")[0] in PATCHING_PACKAGES:
        return False
    spec = getattr(sys.modules[name], "__spec__", None)
    if spec is None:  # made by another module
        parent = name.rpartition(".")[0]
        return parent in sys.modules and _is_trusted(parent, locations, installed_before)
    if spec.origin in ("built-in", "frozen"):
        return True
    paths = [spec.origin] if spec.origin else list(spec.submodule_search_locations or ())
    return bool(paths) and all(
        locations.is_installed(path) and os.stat(path).st_ctime < installed_before for path in paths
    )


class _Watcher:
    """Record what imports read and do while active; its hooks stay until the process ends."""

    def __init__(self, locations: Locations) -> None:
        self.locations = locations
        self.is_active = False
        self.has_side_effects = False
        self.variables: dict[str, str | None] = {}
        self.absent: set[str] = set()
        sys.addaudithook(self._audit)
        sys.meta_path.append(self)
        environment = type(os.environ)
        get_item, iterate = environment.__getitem__, environment.__iter__

        def record_item(mapping: Any, key: str) -> str:
            value: str | None = None
            try:
                value = get_item(mapping, key)
            finally:
                if self.is_active:
                    self.variables[key] = value
            return value

        def record_iteration(mapping: Any) -> Any:
            self.has_side_effects = self.has_side_effects or self.is_active
            return iterate(mapping)

        environment.__getitem__ = record_item  # type: ignore[method-assign]  # until the trial ends
        environment.__iter__ = record_iteration  # type: ignore[method-assign]  # until the trial ends

    def find_spec(self, name: str, *_: object) -> None:
        """Record a module that no other finder has found."""
        if self.is_active:
            self.absent.add(name)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.is_active:
            return
        if event in _SIDE_EFFECTS:
            self.has_side_effects = True
        elif event == "open" and isinstance(args[0], (str, bytes)):
            path = os.path.abspath(os.fsdecode(args[0]))
            if not path.startswith(_HARMLESS_PATHS) and not self._is_expected(path):
                self.has_side_effects = True

    def _is_expected(self, path: str) -> bool:
        is_bytecode = sys.pycache_prefix is not None and path.startswith(f"{sys.pycache_prefix}{os.sep}")
        return is_bytecode or self.locations.is_installed(path)
