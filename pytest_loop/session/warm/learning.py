"""What the server learns from sessions: which modules they import from outside of the project."""

from __future__ import annotations

import gc
import json
import os
import select
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from types import ModuleType

from pytest_loop.session.locations import Places
from pytest_loop.session.warm.prepared import PATCHING, Prepared, Root, rehearse

LONGEST_REHEARSAL = 20.0
IDLE = 0.2
MOST_LESSONS = 16


@dataclass
class _Lesson:
    """What one process asked for, from first to last; what came along with something before is `covered`."""

    names: dict[str, None]
    covered: set[str] = field(default_factory=set)


@dataclass
class Learning:
    """Loads modules ahead while nobody asks for a session; only what was there before the run, `since`.

    `read` knows what to do with rule files.
    """

    places: Places
    since: float
    read: Callable[[Mapping[str, str]], None]
    prepared: Prepared = field(default_factory=Prepared)
    _heard: list[_Lesson] = field(default_factory=list)
    _rules: dict[str, str] = field(default_factory=dict)
    _refused: set[str] = field(default_factory=set)

    def hear(self, names: Iterable[object]) -> None:
        """A session has imported these, in this order."""
        lesson = _Lesson(dict.fromkeys(map(str, names)))
        if lesson.names and not PATCHING & lesson.names.keys():
            self._heard = [*self._heard, lesson][-MOST_LESSONS:]

    def hear_rules(self, files: Mapping[str, str]) -> None:
        """A session has read these rule files, each in its project."""
        self._rules |= {str(path): str(root) for path, root in files.items()}

    def go_on(self, driver: socket.socket, clear: Callable[[], None]) -> list[ModuleType]:
        """Load one after the other, until somebody speaks; gives the modules that are new."""
        new: list[ModuleType] = []
        if not (self._heard or self._rules) or _speaks(driver, IDLE):
            return new
        self.read(self._rules)
        self._rules.clear()
        with self._own_bytecode():
            while self._heard and not _speaks(driver):
                lesson = self._heard[0]
                name = next(iter(lesson.names))
                root = self.prepared.roots.get(name)
                if root is None and name not in lesson.covered and self._refused.isdisjoint(_packages(name)):
                    root = self._rehearsed(name, driver)
                    clear()
                    if root:
                        new += self.prepared.load(root)
                    elif _speaks(driver):
                        break
                    else:
                        self._refused.add(name)
                lesson.covered.update(root.modules if root else ())
                del lesson.names[name]
                if not lesson.names:
                    self._heard.pop(0)
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


def _speaks(driver: socket.socket, within: float = 0.0) -> bool:
    return bool(select.select([driver], [], [], within)[0])


def _packages(name: str) -> list[str]:
    """The module, and the packages that it is a part of."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
