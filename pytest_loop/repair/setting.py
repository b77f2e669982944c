"""What a round works with: its order, a folder, files that were edited already, and somebody who listens."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_loop.repair.forks import Forks
from pytest_loop.repair.order import Order, Progress
from pytest_loop.repair.scope import Scope
from pytest_loop.repair.source import Source


@dataclass(frozen=True)
class Setting:
    """`texts` are those of files that were edited, but not on disk; `closing` are descriptors that no trial may use."""

    order: Order
    home: Path
    texts: Mapping[str, str]
    tell: Callable[[Progress], None]
    closing: tuple[int, ...] = ()
    _asked: list[int] = field(default_factory=list)

    def listen(self) -> None:
        """From now on, a signal does not end this process, but is a wish to come to an end."""
        signal.signal(signal.SIGTERM, lambda number, _: self._asked.append(number))

    @property
    def is_asked_to_end(self) -> bool:
        return bool(self._asked)

    def forks(self) -> Forks:
        workers = self.order.workers or min(4, os.cpu_count() or 1)
        return Forks(self.home, workers, closing=self.closing)

    def scope(self, tests: Iterable[Path]) -> Scope:
        return Scope(self.order.folder, self.order.allow, tests)

    def sources(self, paths: Iterable[Path]) -> list[Source]:
        """These files as they are now, each once, without those that cannot be read as Python."""
        return [one for path in dict.fromkeys(paths) if (one := Source.read(path, self.texts)) is not None]
