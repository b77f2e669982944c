"""How the tests go before anything is edited: which fail and where, what they execute, how much and how long."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pytest_loop.repair.bench import ENDLESS, Bench, Ran
from pytest_loop.repair.cage import REFUSAL
from pytest_loop.repair.failure import Failure
from pytest_loop.repair.forks import Forks, Job, Say
from pytest_loop.repair.probe import probe
from pytest_loop.repair.scope import Scope
from pytest_loop.repair.suspicion import Line, Spectrum

_FUEL = 300_000
_SECONDS, _LEAST = 15.0, 1.0
_ONCE_MORE = 3.0


class Kind(NamedTuple):
    """What failures of one cause have in common: the exception, and the line of the project that raised it, if any."""

    error: str
    line: Line | None


@dataclass(frozen=True)
class Known:
    """One test as it was."""

    spectrum: Spectrum
    seconds: float
    fuel: int
    failure: Failure = Failure()  # noqa: RUF009 - frozen

    @property
    def is_endless(self) -> bool:
        return self.failure.error == ENDLESS

    @property
    def is_held(self) -> bool:
        """Whether it was kept from doing something that no trial may do, so that nobody knows whether it passes."""
        return self.failure.error == PermissionError.__name__ and self.failure.message.startswith(REFUSAL)

    @property
    def kind(self) -> Kind:
        return Kind(self.failure.error, next(iter(self.spectrum.frames[-1:]), None))


def baseline(bench: Bench, forks: Forks, scope: Scope, order: Sequence[int], seconds: float) -> dict[int, Known]:
    """Run the tests in this order, for so many seconds; where one takes its fork down, the next ones get another."""
    found: dict[int, Known] = {}
    left = list(order)
    until = time.monotonic() + seconds
    while left and time.monotonic() < until:
        asked = tuple(left)
        forks.start(Job(0, partial(record, bench, scope, asked, until), _within(until)))
        while not forks.is_idle:
            for one in forks.ended():
                found |= {message["test"]: known(message) for message in one.messages if "test" in message}
                left = [at for at in asked if at not in found]
                is_blamed = bool(one.messages) and one.messages[-1]["failure"]["error"] == ENDLESS
                if not one.finished and left and not is_blamed:
                    found[left[0]] = _crashed(bench, forks, scope, left[0], is_late=one.late)
                    left = left[1:]
    return found


class _Told(set[Line]):
    """Lines that are told as they come, by a test that may not live to tell them all."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say

    def add(self, line: Line) -> None:
        if line not in self:
            super().add(line)
            self._say({"line": line})


def _crashed(bench: Bench, forks: Forks, scope: Scope, at: int, *, is_late: bool) -> Known:
    """A test that took its fork down, or did not end: it runs once more, alone, and tells every line."""

    def work(say: Say) -> None:
        watching = probe(scope)
        watching.fresh = partial(_Told, say)
        bench.watch(watching, lambda: os._exit(0), is_recording=True)
        bench.run(at, None, _FUEL)

    forks.start(Job(0, work, _ONCE_MORE))
    lines: set[Line] = set()
    while not forks.is_idle:
        for one in forks.ended():
            lines |= {(message["line"][0], message["line"][1]) for message in one.messages if "line" in message}
    return Known(Spectrum(False, frozenset(lines)), _SECONDS, _FUEL, Failure(error=ENDLESS if is_late else ""))


def record(bench: Bench, scope: Scope, order: Sequence[int], until: float, say: Say) -> None:
    """In a fork: run tests, and say of each how it went and what it executed."""
    current = order[0]

    def emptied() -> None:
        say(_message(current, bench, Ran(False, 0.0, _FUEL, Failure(error=ENDLESS, frames=_stack(scope)))))
        os._exit(0)

    watching = probe(scope)
    bench.watch(watching, emptied, is_recording=True)
    for place, current in enumerate(order):
        if time.monotonic() > until:
            return
        following = order[place + 1] if place + 1 < len(order) else None
        say({**_message(current, bench, bench.run(current, following, _FUEL)), "within": _within(until)})


def _within(until: float) -> float:
    """How long the next test may take."""
    return max(_LEAST, min(_SECONDS, until - time.monotonic()))


def _stack(scope: Scope) -> tuple[Line, ...]:
    """Where the project's code is right now."""
    found: list[Line] = []
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        path = scope.file(frame.f_code.co_filename)
        if path is not None:
            found.append((str(path), frame.f_lineno))
    return tuple(reversed(found[:50]))


def _message(at: int, bench: Bench, ran: Ran) -> dict[str, object]:
    lines: dict[str, list[int]] = {}
    for path, line in sorted(bench.lines()):
        lines.setdefault(path, []).append(line)
    return {
        "test": at, "passed": ran.passed, "seconds": ran.seconds, "fuel": ran.fuel,
        "failure": ran.failure.model_dump(), "lines": lines,
    }  # fmt: skip


def known(message: dict[str, Any]) -> Known:
    """A test as what was said of it tells."""
    lines, failure = message["lines"], Failure.model_validate(message["failure"])
    executed = frozenset((path, line) for path, numbers in lines.items() for line in numbers)
    inside = tuple((path, line) for path, line in failure.frames if path in lines)
    return Known(Spectrum(message["passed"], executed, inside), message["seconds"], message["fuel"], failure)
