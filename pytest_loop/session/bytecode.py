"""A bytecode cache for sessions, in which no forged module and none of an edited file can stay."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pytest_loop.session.locations import Locations

BYTECODE_VARIABLE = "PYTHONPYCACHEPREFIX"
# How the bytecode of plugins ends, in which pytest has rewritten the assertions.
_REWRITTEN = f"-pytest-{pytest.__version__}.pyc"
# A file written within one tick of the disk's clock may look older than it is.
_CLOCK_TICK = 2_000_000_000

_Signature = tuple[int, int, int]


class BytecodeCache:
    """A folder for `PYTHONPYCACHEPREFIX`, cleared before every session.

    Bytecode of installed modules stays if this process had loaded it when the run began. In a new run nothing was
    edited yet when the first session compiled its modules: their bytecode stays too, for files of the project as long
    as they are not written again.
    """

    def __init__(self, root: Path, *, is_new: bool) -> None:
        self._locations = Locations(root)
        self._is_new = is_new
        self._sessions = 0
        self._started = time.time_ns()
        self._loaded = dict(self._read_loaded())
        self._create_folder()

    def _create_folder(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True)
        self._trusted: dict[str, _Signature] = {}
        self._sources: dict[str, tuple[str, _Signature]] = {}
        self._is_full = False

    def prepare(self, *, is_full: bool = True) -> Path:
        """Return the cleared folder; with `is_full`, it holds what a cold session imports."""
        self._sessions += 1
        if self._sessions == 2 and self._is_new:
            self._trust_first_session()
        self._forget_edited()
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

    def _trust_first_session(self) -> None:
        """Keep the bytecode of installed modules, and of the project's files, that the first session compiled."""
        for folder, _, names in os.walk(self._folder.name):
            source_folder = os.path.join(folder.removeprefix(self._folder.name) or os.sep, "")
            is_installed = self._locations.is_installed(source_folder)
            if not is_installed and not self._locations.is_in_project(source_folder):
                continue
            for name in names:
                path = os.path.join(folder, name)
                if path not in self._trusted and (is_installed or self._add_source(path, source_folder, name)):
                    self._trusted[path] = _get_signature(path)

    def _add_source(self, path: str, folder: str, name: str) -> bool:
        """Remember the source of bytecode, and return whether it was written before the first session."""
        source = folder + name.partition(f".{sys.implementation.cache_tag}")[0] + ".py"
        try:
            status = os.lstat(source)
        except OSError:
            return False
        self._sources[path] = source, _make_signature(status)
        return status.st_ctime_ns < self._started - _CLOCK_TICK

    def _forget_edited(self) -> None:
        """Trust no bytecode of a file that was written since the first session."""
        for path, (source, signature) in self._sources.items():
            try:
                is_same = _get_signature(source) == signature
            except OSError:
                is_same = False
            if not is_same:
                self._trusted.pop(path, None)

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


def _get_signature(path: str) -> _Signature:
    return _make_signature(os.lstat(path))


def _make_signature(status: os.stat_result) -> _Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size


def _remove_folder(folder: str) -> None:
    """Remove a folder, also one without permissions."""
    for path, _, _ in os.walk(folder):
        os.chmod(path, 0o700)
    shutil.rmtree(folder)
