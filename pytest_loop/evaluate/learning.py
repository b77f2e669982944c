"""What the server learns from sessions: which modules they import from outside of the project."""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import ModuleType

from pytest_loop.evaluate.places import Places
from pytest_loop.evaluate.prepared import PATCHING, Prepared, Root, rehearse

LONGEST_REHEARSAL = 20.0
IDLE = 0.2


@dataclass
class Learning:
    """Loads modules ahead while nobody asks for a session; only what was there before the run, `since`."""

    places: Places
    since: float
    prepared: Prepared = field(default_factory=Prepared)
    _wanted: dict[str, None] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def hear(self, names: Iterable[object]) -> None:
        """A session has imported these."""
        self._wanted.update((name, None) for name in map(str, names))
        if PATCHING & self._wanted.keys():
            self._wanted.clear()

    def go_on(self, driver: socket.socket, clear: Callable[[], None]) -> list[ModuleType]:
        """Load one after the other, until somebody speaks; gives the modules that are new."""
        new: list[ModuleType] = []
        with self._own_bytecode():
            while self._wanted and not select.select([driver], [], [], IDLE)[0]:
                name = next(iter(self._wanted))
                if name not in self.prepared.roots and self._refused.isdisjoint(_packages(name)):
                    root = self._rehearsed(name, driver)
                    clear()
                    if root:
                        new += self.prepared.load(root)
                    elif select.select([driver], [], [], 0)[0]:
                        break
                    else:
                        self._refused.add(name)
                del self._wanted[name]
        if new:
            gc.collect()
            gc.freeze()
        return new

    def _rehearsed(self, name: str, driver: socket.socket) -> Root | None:
        """Tried out in another process; given up as soon as a session is asked for."""
        ours, theirs = os.pipe()
        if os.fork() == 0:
            with suppress(BaseException):
                said = os.memfd_create("pytest-loop")
                for descriptor in (1, 2):
                    os.dup2(said, descriptor)
                found = rehearse(name, self.places, self.since)
                os.write(theirs, json.dumps(asdict(found) if found else None).encode())
            os._exit(0)
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            ready = select.select([ours, driver.fileno()], [], [], LONGEST_REHEARSAL)[0]
            data = pipe.read() if ours in ready else b""
        answer = json.loads(data or b"null")
        return Root(**answer) if answer else None

    @contextmanager
    def _own_bytecode(self) -> Iterator[None]:
        """What a session left as a compiled module is not believed."""
        before = sys.pycache_prefix, sys.dont_write_bytecode
        with tempfile.TemporaryDirectory(prefix="pytest-loop-", ignore_cleanup_errors=True) as folder:
            sys.pycache_prefix, sys.dont_write_bytecode = folder, False
            try:
                yield
            finally:
                sys.pycache_prefix, sys.dont_write_bytecode = before


def _packages(name: str) -> list[str]:
    """The module, and the packages that it is a part of."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
