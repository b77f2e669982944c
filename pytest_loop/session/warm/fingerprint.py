"""What a process that sessions are forked from depends on, and whether that is still as it was."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import ModuleType

from pytest_loop.session.locations import Places

Signature = tuple[object, ...]


class Fingerprint:
    """Files by time, size and number: modules that are loaded, places to look for modules, settings of pytest."""

    def __init__(self, places: Places, settings: Iterable[str]) -> None:
        self._places = places
        self._files = {path: _signature(path) for path in settings}
        self._folders = {folder: self._folder(folder) for folder in sys.path if folder}
        for folder in self._folders:
            points = [os.path.join(name, "entry_points.txt") for name in _distributions(folder)]
            for name in (*points, *(name for name in _names(folder) if name.endswith(".pth"))):
                path = os.path.join(folder, name)
                self._files[path] = _signature(path)

    def add(self, modules: Iterable[ModuleType]) -> None:
        """These are loaded too."""
        for module in modules:
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and path not in self._files:
                self._files[path] = _signature(path)

    def changed(self) -> str:
        """The first thing that is not as it was; empty where all is."""
        for path, known in self._files.items():
            if _signature(path) != known:
                return path
        return next((folder for folder, known in self._folders.items() if self._folder(folder) != known), "")

    def _folder(self, path: str) -> Signature:
        """A folder with modules; in one of the project only what pytest finds plugins by matters."""
        return tuple(_distributions(path) if self._places.is_own(path) else _names(path))


def _signature(path: str) -> Signature:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def _distributions(folder: str) -> list[str]:
    return [name for name in _names(folder) if name.endswith((".dist-info", ".egg-info"))]


def _names(folder: str) -> list[str]:
    try:
        found = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in found if name.endswith(".pth") or not name.startswith((".", "__pycache__")))
