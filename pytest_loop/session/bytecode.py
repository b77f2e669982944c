"""A bytecode cache for sessions that keeps neither forged nor outdated bytecode."""

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
# pytest gives this suffix to the bytecode of plugins with rewritten assertions.
_REWRITTEN_SUFFIX = f"-pytest-{pytest.__version__}.pyc"
# A file written within one tick of the disk's clock may look older than it is.
_CLOCK_TICK = 2_000_000_000

_Signature = tuple[int, int, int]


class BytecodeCache:
    """A folder for `PYTHONPYCACHEPREFIX`, cleared of untrusted bytecode before every session.

    The cache trusts the bytecode of installed modules that this process had loaded when the run began. In a new run, it
    also trusts the bytecode that the first session compiled, because no agent had edited anything yet; once a file of
    the project is written again, its bytecode is no longer trusted.
    """

    def __init__(self, root: Path, *, is_new_run: bool) -> None:
        self._locations = Locations(root)
        self._is_new_run = is_new_run
        self._session_count = 0
        self._started = time.time_ns()
        self._installed_bytecode = dict(self._read_installed_bytecode())
        self._create_folder()

    def _create_folder(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True)
        self._trusted: dict[str, _Signature] = {}
        self._sources: dict[str, tuple[str, _Signature]] = {}
        self._is_filled = False

    def prepare(self, *, is_cold: bool = True) -> Path:
        """Clear the folder and return it; for a cold session, also add the bytecode of installed modules."""
        self._session_count += 1
        if self._session_count == 2 and self._is_new_run:
            self._trust_first_session()
        self._forget_edited()
        try:
            self._clear(self._folder.name, {str(parent) for path in self._trusted for parent in Path(path).parents})
        except OSError:  # a session has replaced the folder
            self._folder.cleanup()
            self._create_folder()
        if is_cold and not self._is_filled:
            self._add_installed_bytecode()
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
        """Remember the source file of bytecode; return whether it was written before the first session."""
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

    def _read_installed_bytecode(self) -> Iterator[tuple[str, bytes]]:
        """Yield relative path and bytecode of each installed module in this process."""
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.cached and spec.origin and self._locations.is_installed(spec.origin):
                folder = os.path.dirname(os.path.abspath(spec.origin)).lstrip(os.sep)
                for cached in (spec.cached, spec.cached.removesuffix(".pyc") + _REWRITTEN_SUFFIX):
                    with suppress(OSError), open(cached, "rb") as file:
                        yield os.path.join(folder, os.path.basename(cached)), file.read()

    def _add_installed_bytecode(self) -> None:
        self._is_filled = True
        for place, data in self._installed_bytecode.items():
            path = os.path.join(self._folder.name, place)
            with suppress(OSError):  # without the file, Python compiles the module again
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(path, "xb") as file:  # `x` follows no link that a session left
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
