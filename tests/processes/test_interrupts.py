"""Signals as interrupts."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from pytest_loop.processes.interrupts import interrupt_on_signals

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[list[object]]:
    """Return the handlers before a test, and restore them after it."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield list(before.values())
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_interrupts_once_and_later_ones_are_ignored(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), interrupt_on_signals():
        os.kill(os.getpid(), number)
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN] * 3


@pytest.mark.parametrize("error", [None, ValueError])
def test_handlers_are_restored_without_a_signal(handlers: list[object], error: type[Exception] | None) -> None:
    def work() -> None:
        with interrupt_on_signals():
            if error:
                raise error

    if error:
        with pytest.raises(error):
            work()
    else:
        work()
    assert [signal.getsignal(number) for number in SIGNALS] == handlers


def test_an_ignored_signal_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with interrupt_on_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_another_thread_handles_no_signals(handlers: list[object]) -> None:
    def work() -> None:
        with interrupt_on_signals():
            pass

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert [signal.getsignal(number) for number in SIGNALS] == handlers
