"""Turn the signals that end a process into one KeyboardInterrupt."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def interrupt_on_signals() -> Iterator[None]:
    """Raise KeyboardInterrupt on SIGINT, SIGTERM or SIGHUP in the block, so that a run ends cleanly.

    After the first signal all are ignored until the process ends: the remaining work is short and must be done. A
    signal that was ignored before stays ignored, as `nohup` intends.
    """
    numbers = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {}
    with contextlib.suppress(ValueError):  # only the main thread can handle signals
        before = {number: signal.signal(number, interrupt) for number in numbers}
    try:
        yield
    except KeyboardInterrupt:
        before.clear()
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
