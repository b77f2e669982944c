"""Compiled modules for sessions: those of the project are made anew, so that nobody can leave a forged one."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from pytest_loop.evaluate.places import Places

VARIABLE = "PYTHONPYCACHEPREFIX"


class Bytecode:
    """A folder that Python keeps compiled modules in.

    What belongs to the interpreter stays in it: what this process has loaded, and what the first session needed.
    Everything else that a session has written there, or changed, is gone before the next one begins.
    """

    def __init__(self, root: Path) -> None:
        self._places = Places(root)
        self._folder = tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True)
        self._known: dict[str, tuple[int, int, int]] = {}
        self._sessions = 0
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.cached and spec.origin and self._places.is_installed(spec.origin):
                self._take(Path(spec.cached), Path(spec.origin).resolve().parent)

    def fresh(self) -> Path:
        """The folder, for another session."""
        self._sessions += 1
        for path, is_installed in self._found():
            signature = _signature(path)
            if self._sessions == 2 and is_installed and path not in self._known:
                self._known[path] = signature
            elif self._known.get(path) != signature:
                with suppress(OSError):
                    os.unlink(path)
        return Path(self._folder.name)

    def close(self) -> None:
        """The run is over."""
        self._folder.cleanup()

    def _found(self) -> list[tuple[str, bool]]:
        """The compiled modules that are there, and whether their source belongs to the interpreter."""
        found = []
        for folder, _, names in os.walk(self._folder.name):
            source = folder.removeprefix(self._folder.name) or os.sep
            is_installed = self._places.is_installed(os.path.join(source, ""))
            found += [(os.path.join(folder, name), is_installed) for name in names]
        return found

    def _take(self, compiled: Path, source: Path) -> None:
        """Keep a compiled module whose source lies in this folder."""
        place = Path(self._folder.name, source.relative_to(source.anchor))
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            kept = str(shutil.copyfile(compiled, place / compiled.name))
            self._known[kept] = _signature(kept)


def _signature(path: str) -> tuple[int, int, int]:
    found = os.lstat(path)
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size
