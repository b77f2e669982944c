"""Ends work inside this process when its time is up: patterns and queries that a user wrote cannot hang the run."""

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
    """The work did not end in time."""


def can_interrupt() -> bool:
    """Only the main thread of a system with SIGALRM can be interrupted in the middle of a match."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextmanager
def enforce_deadline(seconds: float, what: str) -> Iterator[None]:
    """Raise `DeadlineError` inside the block after `seconds`; an alarm set by somebody else goes on counting.

    `re` looks for signals while it matches, so that this ends even a pattern that would take years.
    """
    if not can_interrupt():
        yield
        return
    outer, interval = signal.getitimer(signal.ITIMER_REAL)
    if 0 < outer <= seconds:
        yield
        return

    def expired(_signal: int, _frame: FrameType | None) -> None:
        raise DeadlineError(f"{what} did not end within {seconds:g} s")

    started = time.monotonic()
    handler = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if outer:
            left = outer - (time.monotonic() - started)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), interval)
