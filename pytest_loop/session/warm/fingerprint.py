"""A fingerprint of everything that a fork server has loaded, to detect changes."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from types import ModuleType

from pytest_loop.session.locations import Locations

Signature = tuple[object, ...]


class Fingerprint:
    """Times, sizes and inodes of loaded modules, import folders, entry points and pytest's settings."""

    def __init__(self, locations: Locations, settings: Iterable[str]) -> None:
        self._locations = locations
        self._files = {path: _get_signature(path) for path in settings}
        self._folders = {folder: self._list_relevant(folder) for folder in sys.path if folder}
        for folder in self._folders:
            entry_points = [os.path.join(name, "entry_points.txt") for name in _list_distributions(folder)]
            for name in (*entry_points, *(name for name in _list_names(folder) if name.endswith(".pth"))):
                path = os.path.join(folder, name)
                self._files[path] = _get_signature(path)

    def add_modules(self, modules: Iterable[ModuleType]) -> None:
        for module in modules:
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and path not in self._files:
                self._files[path] = _get_signature(path)

    def find_change(self) -> str:
        """Return the first path that has changed; empty if none has."""
        for path, signature in self._files.items():
            if _get_signature(path) != signature:
                return path
        return next((folder for folder, names in self._folders.items() if self._list_relevant(folder) != names), "")

    def _list_relevant(self, folder: str) -> list[str]:
        """List a folder of modules; in the project, only the metadata by which pytest finds plugins."""
        return _list_distributions(folder) if self._locations.is_in_project(folder) else _list_names(folder)


def _get_signature(path: str) -> Signature:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def _list_distributions(folder: str) -> list[str]:
    return [name for name in _list_names(folder) if name.endswith((".dist-info", ".egg-info"))]


def _list_names(folder: str) -> list[str]:
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in names if name.endswith(".pth") or not name.startswith((".", "__pycache__")))
