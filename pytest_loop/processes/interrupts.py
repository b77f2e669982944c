"""Signals that end a process: all of them interrupt a run, once."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Other ways to end a process are an interrupt too: the run stays whole, and its children end with it.

    Who asks twice is not heard a second time: what is left to do then is short, and must be done. A signal that was
    ignored stays so: `nohup` means it.
    """
    known = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    numbers = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {}
    with contextlib.suppress(ValueError):  # only the main thread hears signals
        before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException:
        _restore(before)
        raise
    _restore(before)


def _restore(handlers: dict[int, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)
