"""Interrupt work in this process: patterns and queries of users must not hang a session."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pytest_loop.errors import CheckError

DEADLINE_SECONDS = 5.0


class DeadlineError(CheckError):
    """The work took too long."""


def can_interrupt() -> bool:
    """Return whether `enforce_deadline` works here: in the main thread of a system with SIGALRM."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextmanager
def enforce_deadline(seconds: float, work: str) -> Iterator[None]:
    """Raise `DeadlineError` in the block after `seconds`, unless `can_interrupt()` is false or an alarm is due earlier.

    `work` names in the error what took too long. `re` checks for signals while it matches, so the deadline ends any
    pattern. Restore a later alarm after the block.
    """
    outer, interval = signal.getitimer(signal.ITIMER_REAL) if can_interrupt() else (0.0, 0.0)
    if not can_interrupt() or 0 < outer <= seconds:
        yield
        return

    def expire(_signal: int, _frame: FrameType | None) -> None:
        raise DeadlineError(f"{work} did not end within {seconds:g} s")

    started = time.monotonic()
    handler = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            remaining = outer - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(remaining, 1e-6), interval)
