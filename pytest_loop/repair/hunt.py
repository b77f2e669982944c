"""Candidates in forks, best first, until there is a reason to end."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from pytest_loop.repair.candidates import Candidate, Sieve
from pytest_loop.repair.forks import Ended, Forks, Job
from pytest_loop.repair.found import Found, Plausible, Try
from pytest_loop.repair.order import Progress
from pytest_loop.repair.setting import Setting

_SIMILAR, _COMPARABLE = 0.3, 0.02
_PART = 0.5
_OFTEN = 0.5


class Trials(Protocol):
    """How candidates are tried: alone, or at most so many in a fork, to see which are worth one of their own."""

    @property
    def most(self) -> int: ...

    def job(self, key: int, tries: Sequence[Try]) -> Job: ...

    def plausible(self, one: Try, ended: Ended) -> Plausible | None: ...


class Hunt:
    """What is found goes into `found`."""

    def __init__(self, setting: Setting, forks: Forks, found: Found) -> None:
        self._setting = setting
        self._order = setting.order
        self._forks = forks
        self._found = found
        self._started = self._told = time.monotonic()
        self._until = self._started + self._order.seconds
        self._floor = 0.0
        self._left: Iterator[Try] = iter(())
        self._again: deque[tuple[Try, ...]] = deque()
        self._running: dict[int, tuple[Try, ...]] = {}
        self._count = 0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def run(self, chosen: Sequence[Candidate], trials: Trials) -> str:
        """Keep the forks busy; says why it ended."""
        self._found.known = len(chosen)
        self._left = _worth_trying(chosen)
        while True:
            if reason := self._reason():
                return reason
            while self._forks.has_room and (tries := self._next(trials.most)):
                self._start(tries, trials)
            if self._forks.is_idle:
                is_spent = not self._word() and self._found.tried >= self._order.candidates
                return self._word() or ("candidates" if is_spent else "exhausted")
            for ended in self._forks.ended():
                self._end(self._running.pop(ended.key), ended, trials)
            self._report()

    def _next(self, most: int) -> tuple[Try, ...]:
        """What is tried next: what is worth another look, else the next best; nothing where all was tried."""
        if self._again:
            return self._again.popleft()
        number = min(most, self._order.candidates - self._found.tried)
        tries = tuple(one for one in islice(self._left, number) if one.candidate.score >= self._floor)
        self._found.templates.update(one.candidate.template for one in tries)
        return tries

    def _start(self, tries: tuple[Try, ...], trials: Trials) -> None:
        self._count += 1
        self._running[self._count] = tries
        self._forks.start(trials.job(self._count, tries))

    def _end(self, tries: tuple[Try, ...], ended: Ended, trials: Trials) -> None:
        """A trial gives a result; a look says what gets a trial, and may not have come to all."""
        self._found.died += not ended.finished
        if len(tries) == 1:
            self._take(trials.plausible(tries[0], ended))
            return
        begun = {message["begun"] for message in ended.messages if "begun" in message}
        worth = {message["worth"] for message in ended.messages if "worth" in message}
        rest = tuple(one for one in tries if one.rank not in begun)
        self._again.extend((one,) for one in tries if one.rank in worth)
        if rest:
            self._again.append(rest)

    def _take(self, one: Plausible | None) -> None:
        """Note what passed. What cannot be better ends the search soon; what is a step at least, in time."""
        if one is None:
            return
        is_first = not self._found.plausible
        self._found.plausible.append(one)
        if one.is_green or (one.is_final and self._order.steps > 1):
            self._come_to_an_end(one.candidate.score * _SIMILAR, self._order.after)
        elif is_first and self._order.steps > 1:
            left = self._until - time.monotonic()
            self._come_to_an_end(one.candidate.score * _COMPARABLE, max(self._order.after, left * _PART))

    def _come_to_an_end(self, floor: float, seconds: float) -> None:
        """Go on for so many seconds at the most, and try nothing below a score any more."""
        self._floor = max(self._floor, floor)
        self._until = min(self._until, time.monotonic() + seconds)

    def _reason(self) -> str:
        if self._setting.is_asked_to_end:
            return "asked"
        return "" if time.monotonic() < self._until else (self._word() or "time")

    def _word(self) -> str:
        if any(one.is_green for one in self._found.plausible):
            return "green"
        return "partly green" if self._found.plausible and self._order.steps > 1 else ""

    def _report(self) -> None:
        if time.monotonic() - self._told >= _OFTEN:
            self._told = time.monotonic()
            self._setting.tell(self.progress())

    def progress(self) -> Progress:
        seconds, tried = self.seconds, self._found.tried
        return Progress(
            tried=tried,
            known=self._found.known,
            per_second=round(tried / seconds, 1) if seconds else 0.0,
            seconds=round(seconds, 3),
            green=sum(one.is_green for one in self._found.plausible),
        )


def _worth_trying(chosen: Sequence[Candidate]) -> Iterator[Try]:
    """The candidates that parse and are no others' doubles."""
    sieve = Sieve()
    for rank, one in enumerate(chosen):
        tree = sieve.tree(one)
        if tree is not None:
            yield Try(rank, one, tree)
