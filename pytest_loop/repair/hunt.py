"""Candidates in forks, best first, until there is a reason to end."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator
from typing import Protocol

from pytest_loop.repair.candidates import Candidate, Sieve
from pytest_loop.repair.forks import Ended, Forks, Job
from pytest_loop.repair.found import Found, Plausible
from pytest_loop.repair.order import Progress
from pytest_loop.repair.setting import Setting

_SIMILAR, _COMPARABLE = 0.3, 0.1
_PART = 0.5
_OFTEN = 0.5


class Trials(Protocol):
    """How a candidate is tried, and what came of it."""

    def job(self, key: int, one: Candidate, tree: ast.stmt | ast.Module) -> Job: ...

    def plausible(self, one: Candidate, rank: int, ended: Ended) -> Plausible | None: ...


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
        self._tries: dict[int, Candidate] = {}

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def run(self, chosen: list[Candidate], trials: Trials) -> str:
        """Keep the forks busy; says why it ended."""
        self._found.known = len(chosen)
        left = self._jobs(chosen, trials)
        job = next(left, None)
        while job is not None or not self._forks.is_idle:
            if reason := self._reason():
                return reason
            if job is not None and self._tries[job.key].score < self._floor:
                job = None
            while job is not None and self._forks.has_room and self._found.tried < self._order.candidates:
                self._found.templates[self._tries[job.key].template] += 1
                self._forks.start(job)
                job = next(left, None)
            if job is not None and self._forks.is_idle and self._found.tried >= self._order.candidates:
                return "candidates"
            for one in self._forks.ended():
                self._found.died += not one.finished
                self._take(trials.plausible(self._tries[one.key], one.key, one))
            self._report()
        return self._word() or "exhausted"

    def _jobs(self, chosen: list[Candidate], trials: Trials) -> Iterator[Job]:
        """One job for each candidate that is worth a fork."""
        sieve = Sieve()
        for rank, one in enumerate(chosen):
            tree = sieve.tree(one)
            if tree is not None:
                self._tries[rank] = one
                yield trials.job(rank, one, tree)

    def _take(self, one: Plausible | None) -> None:
        """Note what passed. What cannot be better ends the search soon; what is a step at least, in time."""
        if one is None:
            return
        is_first = not self._found.plausible
        self._found.plausible.append(one)
        if one.is_green or (one.is_final and self._order.steps > 1):
            self._end(one.candidate.score * _SIMILAR, self._order.after)
        elif is_first and self._order.steps > 1:
            left = self._until - time.monotonic()
            self._end(one.candidate.score * _COMPARABLE, max(self._order.after, left * _PART))

    def _end(self, floor: float, seconds: float) -> None:
        """Come to an end within so many seconds, and try nothing below a score any more."""
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
