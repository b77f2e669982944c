"""The request and temporary folder of one search round, and the objects built from them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pytest_loop.repair.editable_files import EditableFiles
from pytest_loop.repair.fork_pool import ForkPool
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.repair_request import RepairRequest, SearchPlan


@dataclass(frozen=True)
class RoundContext:
    """The request and temporary folder of a round; `edited_texts` has the files that earlier rounds edited, by path."""

    request: RepairRequest
    temp_folder: Path
    edited_texts: Mapping[str, str]
    send_plan: Callable[[SearchPlan], None]
    started: float = field(default_factory=time.monotonic)
    _received_signals: list[int] = field(default_factory=list)

    def handle_stop_signal(self) -> None:
        """Treat SIGTERM as a stop request from now on, instead of ending the process."""
        signal.signal(signal.SIGTERM, lambda number, _: self._received_signals.append(number))

    @property
    def is_stop_requested(self) -> bool:
        return bool(self._received_signals)

    def make_fork_pool(self) -> ForkPool:
        return ForkPool(self.temp_folder, self.workers)

    @property
    def workers(self) -> int:
        return self.request.workers or min(4, os.cpu_count() or 1)

    def make_editable_files(self, tests: Iterable[Path]) -> EditableFiles:
        return EditableFiles(self.request.folder, self.request.allow, tests)

    def read_sources(self, paths: Iterable[Path]) -> list[PythonSource]:
        """Read each file once, with its edited text if there is one; skip files that are not valid Python."""
        sources = (PythonSource.read(path, self.edited_texts) for path in dict.fromkeys(paths))
        return [source for source in sources if source is not None]
