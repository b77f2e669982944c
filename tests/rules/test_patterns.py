from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from pytest_loop.errors import CheckError
from pytest_loop.rules import deadline, patterns

Run = Callable[..., list[str]]


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"^(a*)*b$"])
def test_patterns_have_a_deadline(run: Run, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.setattr(patterns, "DEADLINE_SECONDS", 0.2)
    started = time.monotonic()
    with pytest.raises(CheckError, match=r"the pattern .* did not end within 0\.2 s"):
        run({"matches": pattern}, "a" * 60 + "!")
    assert time.monotonic() - started < 30


def test_patterns_outside_the_main_thread_run_in_a_subprocess(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Any] = []

    def work() -> None:
        results.append(run({"matches": "^b(.)", "min_matches": 2}, "ab\nbc\nbd"))
        monkeypatch.setattr(patterns, "DEADLINE_SECONDS", 0.5)
        try:
            run({"matches": r"(a+)+$"}, "a" * 60 + "!")
        except CheckError as error:
            results.append(str(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert results == [[], "the pattern '(a+)+$' did not end within 0.5 s"]


def test_an_alarm_of_other_code_keeps_counting() -> None:
    import signal

    alarms: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: alarms.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with deadline.enforce_deadline(0.05, "it"), pytest.raises(deadline.DeadlineError):
            threading.Event().wait(0.2)
        with deadline.enforce_deadline(60, "the outer alarm comes first"):
            while not alarms:
                threading.Event().wait(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert alarms == [1]


@pytest.mark.timeout(0)
def test_a_deadline_leaves_no_alarm_behind() -> None:
    import signal

    with deadline.enforce_deadline(60, "it"):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_deadline_outside_the_main_thread_does_nothing() -> None:
    finished: list[bool] = []

    def work() -> None:
        with deadline.enforce_deadline(0.01, "it"):
            threading.Event().wait(0.05)
            finished.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert finished == [True]
