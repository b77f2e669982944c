"""A bytecode cache for sessions that holds nothing of the project, so that no forged module can stay in it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_loop.session.locations import Locations

BYTECODE_VARIABLE = "PYTHONPYCACHEPREFIX"
# How the bytecode of plugins ends, in which pytest has rewritten the assertions.
_REWRITTEN = f"-pytest-{pytest.__version__}.pyc"


class BytecodeCache:
    """A folder for `PYTHONPYCACHEPREFIX`, cleared before every session.

    Only bytecode of installed modules stays: what this process had loaded when the run began and, in a new run, where
    nothing was edited yet, what the first session compiled.
    """

    def __init__(self, root: Path, *, is_new: bool) -> None:
        self._locations = Locations(root)
        self._is_new = is_new
        self._sessions = 0
        self._loaded = dict(self._read_loaded())
        self._create_folder()

    def _create_folder(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True)
        self._trusted: dict[str, tuple[int, int, int]] = {}
        self._is_full = False

    def prepare(self, *, is_full: bool = True) -> Path:
        """Return the cleared folder; with `is_full`, it holds what a cold session imports."""
        self._sessions += 1
        if self._sessions == 2 and self._is_new:
            self._trust_installed()
        try:
            self._clear(self._folder.name, {str(parent) for path in self._trusted for parent in Path(path).parents})
        except OSError:  # a session has replaced the folder
            self._folder.cleanup()
            self._create_folder()
        if is_full and not self._is_full:
            self._fill()
        return Path(self._folder.name)

    def close(self) -> None:
        self._folder.cleanup()

    def _trust_installed(self) -> None:
        """Keep the bytecode of installed modules that the first session compiled."""
        for folder, _, names in os.walk(self._folder.name):
            source = folder.removeprefix(self._folder.name) or os.sep
            if self._locations.is_installed(os.path.join(source, "")):
                paths = (os.path.join(folder, name) for name in names)
                self._trusted |= {path: _get_signature(path) for path in paths if path not in self._trusted}

    def _clear(self, folder: str, trusted_folders: set[str]) -> None:
        """Delete all but unchanged trusted files; raise `OSError` if a trusted folder became a link."""
        if os.path.islink(folder):
            raise NotADirectoryError(folder)
        os.chmod(folder, 0o700)
        with os.scandir(folder) as entries:
            for entry in list(entries):
                if not entry.is_dir(follow_symlinks=False):
                    if self._trusted.get(entry.path) != _get_signature(entry.path):
                        os.unlink(entry.path)
                elif entry.path in trusted_folders:
                    self._clear(entry.path, trusted_folders)
                else:
                    _remove_folder(entry.path)

    def _read_loaded(self) -> Iterator[tuple[str, bytes]]:
        """Yield the bytecode of installed modules in this process, by its place in the folder."""
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.cached and spec.origin and self._locations.is_installed(spec.origin):
                folder = os.path.dirname(os.path.abspath(spec.origin)).lstrip(os.sep)
                for cached in (spec.cached, spec.cached.removesuffix(".pyc") + _REWRITTEN):
                    with suppress(OSError), open(cached, "rb") as file:
                        yield os.path.join(folder, os.path.basename(cached)), file.read()

    def _fill(self) -> None:
        self._is_full = True
        for place, data in self._loaded.items():
            path = os.path.join(self._folder.name, place)
            with suppress(OSError):  # it exists, or is compiled again
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "xb") as file:  # never follows a link
                    file.write(data)
                self._trusted[path] = _get_signature(path)


def _get_signature(path: str) -> tuple[int, int, int]:
    status = os.lstat(path)
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _remove_folder(folder: str) -> None:
    """Remove a folder, also one without permissions."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder)
