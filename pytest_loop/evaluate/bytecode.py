"""Compiled modules for one session: those of the project are made anew, so that nobody can leave a forged one."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

VARIABLE = "PYTHONPYCACHEPREFIX"


class Bytecode:
    """Folders that Python keeps compiled modules in.

    What lies outside of the project is compiled once: what this process has loaded, and what the first session needs.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self._known = tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True)
        self._is_known = False
        for module in list(sys.modules.values()):
            spec = getattr(module, "__spec__", None)
            if spec is not None and spec.cached and spec.origin:
                self._take(Path(spec.cached), Path(spec.origin).resolve().parent)

    @contextmanager
    def fresh(self) -> Iterator[Path]:
        """A folder for one session."""
        with tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True) as folder:
            shutil.copytree(self._known.name, folder, dirs_exist_ok=True)
            yield Path(folder)
            if not self._is_known:
                self._learn(Path(folder))

    def close(self) -> None:
        """The run is over."""
        self._known.cleanup()

    def _learn(self, folder: Path) -> None:
        self._is_known = True
        for path in folder.rglob("*.pyc"):
            self._take(path, Path(folder.anchor, path.parent.relative_to(folder)))

    def _take(self, compiled: Path, source: Path) -> None:
        """Keep a compiled module whose source lies in this folder, if that belongs to the interpreter."""
        if not any(source.is_relative_to(prefix) for prefix in self._prefixes):
            return
        place = Path(self._known.name, source.relative_to(source.anchor))
        with suppress(OSError):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(compiled, place / compiled.name)

    @cached_property
    def _prefixes(self) -> list[Path]:
        """Where the interpreter and its environment keep their modules; an environment may lie inside the project."""
        found = {Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)}
        return [prefix for prefix in found if not self._root.is_relative_to(prefix)]
