"""Compiled modules for sessions: those of the project are made anew, so that nobody can leave a forged one."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_loop.session.locations import Places

VARIABLE = "PYTHONPYCACHEPREFIX"


class Bytecode:
    """A folder that Python keeps compiled modules in.

    What belongs to the interpreter stays in it: what this process has loaded, as it was when the run began, and, where
    the run is new, so that nobody has edited anything yet, what its first session needed. Everything else that a
    session has left there is gone before the next one begins.
    """

    def __init__(self, root: Path, *, is_new: bool) -> None:
        self._places = Places(root)
        self._is_new = is_new
        self._sessions = 0
        self._loaded = dict(self._compiled())
        self._begin()

    def _begin(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True)
        self._known: dict[str, tuple[int, int, int]] = {}
        self._is_full = False

    def fresh(self, *, is_full: bool = True) -> Path:
        """The folder, for another session; full for one that has to load everything."""
        self._sessions += 1
        if self._sessions == 2 and self._is_new:
            self._learn()
        try:
            self._clear(self._folder.name, {str(parent) for path in self._known for parent in Path(path).parents})
        except OSError:  # a session has put something else in its place
            self._folder.cleanup()
            self._begin()
        if is_full and not self._is_full:
            self._fill()
        return Path(self._folder.name)

    def close(self) -> None:
        """The run is over."""
        self._folder.cleanup()

    def _learn(self) -> None:
        """Keep what the first session has compiled of the interpreter."""
        for folder, _, names in os.walk(self._folder.name):
            source = folder.removeprefix(self._folder.name) or os.sep
            if self._places.is_installed(os.path.join(source, "")):
                paths = (os.path.join(folder, name) for name in names)
                self._known |= {path: _signature(path) for path in paths if path not in self._known}

    def _clear(self, folder: str, kept: set[str]) -> None:
        """Leave nothing but what is known, as it is known, in folders that it needs, which are folders themselves."""
        if os.path.islink(folder):
            raise NotADirectoryError(folder)
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            found = list(entries)
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                if entry.path in kept:
                    self._clear(entry.path, kept)
                else:
                    _remove(entry.path)
            elif self._known.get(entry.path) != _signature(entry.path):
                os.unlink(entry.path)

    def _compiled(self) -> Iterator[tuple[str, bytes]]:
        """What this process has loaded of the interpreter, by the place that it has in such a folder."""
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.cached and spec.origin and self._places.is_installed(spec.origin):
                place = os.path.join(os.path.dirname(os.path.abspath(spec.origin)), os.path.basename(spec.cached))
                with suppress(OSError), open(spec.cached, "rb") as file:
                    yield place.lstrip(os.sep), file.read()

    def _fill(self) -> None:
        """Put what this process has loaded where an interpreter finds it, beside what was learned."""
        self._is_full = True
        for place, data in self._loaded.items():
            path = os.path.join(self._folder.name, place)
            with suppress(OSError):  # it is there, or is compiled once more
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "xb") as file:  # never through a link
                    file.write(data)
                self._known[path] = _signature(path)


def _signature(path: str) -> tuple[int, int, int]:
    found = os.lstat(path)
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size


def _remove(folder: str) -> None:
    """A folder with all that is in it, also where it does not let itself be looked into."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder)
