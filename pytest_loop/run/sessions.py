"""Makes the sessions of this process."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from pytest_loop.core.text.wording import PrintLine
from pytest_loop.session.bytecode import Bytecode
from pytest_loop.session.history import Memory
from pytest_loop.session.runner import ChildSession
from pytest_loop.session.warm.client import Warm
from pytest_loop.settings.settings import Settings


@dataclass
class SessionFactory:
    """Makes sessions that share a fork server, a bytecode cache and the results that can be reused."""

    settings: Settings
    print_line: PrintLine
    bytecode: Bytecode | None = None
    _warm: Warm | None = None
    _memory: Memory = field(default_factory=Memory)

    def make(self, arguments: tuple[str, ...], started_at: float) -> ChildSession:
        """Return a session with these arguments, whose output is dropped, for a run that exists since `started_at`."""
        judging = self.settings.judging
        if self._warm is None and judging.session != "cold":
            is_required = judging.session == "warm"
            self._warm = Warm(arguments, self.settings.root, started_at, is_required, self._print)
        return ChildSession(
            arguments,
            self.settings.folder,
            judging.session_timeout,
            os.environ,
            lambda _data: None,
            bytecode=self.bytecode,
            warm=self._warm,
            memory=self._memory,
        )

    def cache_bytecode(self, *, is_new: bool) -> Bytecode:
        """Keep the bytecode of the project in a cache of the run from now on."""
        self.bytecode = Bytecode(self.settings.root, is_new=is_new)
        return self.bytecode

    def _print(self, line: str) -> None:
        self.print_line(line)  # looked up late: a live display may have replaced it

    def close(self) -> None:
        for resource in (self._warm, self.bytecode):
            if resource is not None:
                resource.close()
