"""Requests of other processes to the process of a run: to stop, to pause, or to change its limits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pytest_loop.core.model.vocabulary import Reason
from pytest_loop.store import disk


class Requests:
    """The files of requests in the folder of a run."""

    def __init__(self, folder: Path) -> None:
        self._stop = folder / "stop.request"
        self._pause = folder / "pause.request"
        self._limits = folder / "limit.request"

    def ask_to_stop(self, reason: str) -> None:
        disk.write_atomically(self._stop, reason.encode("utf-8", "replace"))

    def read_stop_reason(self) -> str | None:
        """Return the reason of a request to stop, or None without a request."""
        with suppress(OSError):
            reason = disk.read_file(self._stop)
            return None if reason is None else reason.decode("utf-8", "replace") or Reason.USER_STOP.value
        return None

    def ask_to_pause(self) -> None:
        disk.write_atomically(self._pause, b"")

    @property
    def has_pause(self) -> bool:
        """Whether there is a request to pause."""
        return disk.path_exists(self._pause)

    def ask_for_limits(self, limits: Mapping[str, float]) -> None:
        """Ask the process of the run to replace these limits."""
        disk.write_atomically(self._limits, json.dumps({**self._read_limits(), **limits}).encode())

    def take_limits(self) -> dict[str, float]:
        """Return the limits that were asked for since the last call."""
        if limits := self._read_limits():
            disk.remove_file(self._limits)
        return limits

    def _read_limits(self) -> dict[str, float]:
        with suppress(OSError, ValueError):
            data = json.loads(disk.read_file(self._limits) or b"{}")
            return data if isinstance(data, dict) else {}
        return {}

    @property
    def can_continue(self) -> bool:
        """Whether there is no request to stop or to pause."""
        return not self.has_pause and self.read_stop_reason() is None

    def clear(self) -> None:
        """Remove the requests to stop and to pause."""
        disk.remove_file(self._stop)
        disk.remove_file(self._pause)
