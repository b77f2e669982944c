"""Candidates against the tests, in forks: those that failed first, then those that passed.

Many share a fork for a first look, each undone before the next; what passes something there is tried in a fork of its
own, so that what others left behind fools nobody twice. Where tests do not go the same way twice, each has its own.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from pytest_loop.repair.baseline import Known
from pytest_loop.repair.bench import Bench
from pytest_loop.repair.forks import Ended, Forks, Job, Say
from pytest_loop.repair.found import Plausible, Try
from pytest_loop.repair.probe import Probe
from pytest_loop.repair.swap import Loaded

_FUEL, _MORE_FUEL = 20_000, 10
_SECONDS, _MORE_SECONDS = 2.0, 5.0
_LONGEST = 10.0
_PATIENCE = 2
_MOST = 16


@dataclass
class Trial:
    """What all trials share: the tests that are to pass (`targets`), and those that must not break (`guards`)."""

    bench: Bench
    probe: Probe
    loaded: Loaded
    tests: Mapping[int, Known]
    targets: Sequence[int]
    guards: Sequence[int]
    most: int = 1
    _reached: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    _near: dict[int, list[int]] = field(default_factory=dict)

    def share(self, forks: Forks) -> None:
        """Let candidates share forks, if tests go the same way twice in a fork, and leave nothing in modules."""
        places = [*self.targets[:_PATIENCE], *self.guards[:_PATIENCE]]
        if any(self.tests[at].is_endless for at in places):
            return

        def work(say: Say) -> None:
            self._watch(is_recording=True)
            before = self.loaded.sizes()
            one, two = ([self._run(at, None, say) for at in places] for _ in range(2))
            say({"same": one == two and self.loaded.sizes() == before})

        forks.start(Job(0, work, _SECONDS))
        while not forks.is_idle:
            for ended in forks.ended():
                self.most = _MOST if any(message.get("same") for message in ended.messages) else 1

    def job(self, key: int, tries: Sequence[Try]) -> Job:
        """One candidate against all tests; of several, which are worth that."""
        return Job(key, self._look(tries) if len(tries) > 1 else self._trial(tries[0]), _SECONDS)

    def _look(self, tries: Sequence[Try]) -> Callable[[Say], None]:
        """Which candidates make one of the first tests pass, or need a fork of their own to tell."""

        def work(say: Say) -> None:
            self._watch()
            before = Path.cwd(), threading.active_count()
            for one in tries:
                say({"begun": one.rank})
                put_back = self.loaded.exchange(one.candidate.unit, one.tree)
                places = self._first_targets(one)[:_PATIENCE]
                if put_back is None or any(self._run(at, None, say)[0] for at in places):
                    say({"worth": one.rank})
                if put_back is not None:
                    put_back()
                if (Path.cwd(), threading.active_count()) != before:
                    return

        return work

    def _trial(self, one: Try) -> Callable[[Say], None]:
        targets = self._first_targets(one)
        others = [at for at in self.targets if at not in targets]
        guards = self._nearest_guards(one)

        def work(say: Say) -> None:
            self.loaded.swap(one.candidate.unit, one.tree, one.candidate.text)
            self._watch()
            self._run_all(targets, guards, others, say)

        return work

    def plausible(self, one: Try, ended: Ended) -> Plausible | None:
        """What a trial came to, where it fixed something and broke nothing."""
        passed = {message["at"]: message["passed"] for message in ended.messages if "at" in message}
        fixed = [at for at in self.targets if passed.get(at)]
        remaining = [at for at in self.targets if not passed.get(at)]
        if not fixed or not any("through" in message for message in ended.messages):
            return None
        is_final = not any(self._is_akin(at, fixed, one) for at in remaining)
        return Plausible(one.candidate, one.rank, self.bench.names(fixed), self.bench.names(remaining), is_final)

    def _is_akin(self, at: int, fixed: Sequence[int], one: Try) -> bool:
        """Whether a test failed as fixed ones did: at the same line of the project, or after the same code has run."""
        kind = self.tests[at].kind
        is_same = any(self.tests[other].kind == kind for other in fixed)
        return is_same and (kind.line is not None or self._reaches(at, one))

    def _first_targets(self, one: Try) -> list[int]:
        """The targets that execute what the candidate edits, its line first; all of them, where none is known to."""
        key = id(one.candidate.unit), one.candidate.line
        if key not in self._reached:
            place = str(one.candidate.source.path), one.candidate.line
            reached = [at for at in self.targets if self._reaches(at, one)] or self.targets
            self._reached[key] = sorted(reached, key=lambda at: place not in self.tests[at].spectrum.lines)
        return self._reached[key]

    def _nearest_guards(self, one: Try) -> list[int]:
        """The guards, those first that execute what the candidate edits."""
        key = id(one.candidate.unit)
        if key not in self._near:
            self._near[key] = sorted(self.guards, key=lambda at: not self._reaches(at, one))
        return self._near[key]

    def _reaches(self, at: int, one: Try) -> bool:
        if one.candidate.unit.function is None:
            return True
        path, lines = str(one.candidate.source.path), one.candidate.unit.lines
        return any(name == path and line in lines for name, line in self.tests[at].spectrum.lines)

    # In a fork.

    def _watch(self, *, is_recording: bool = False) -> None:
        self.bench.watch(self.probe, lambda: os._exit(0), is_recording=is_recording)

    def _run_all(self, targets: Sequence[int], guards: Sequence[int], others: Sequence[int], say: Say) -> None:
        """Run the tests, and stop where there is nothing left to hope for."""
        failed = fixed = 0
        for at, following in _followed(targets):
            passed = self._run(at, following, say)[0]
            fixed, failed = fixed + passed, failed + (not passed)
            if failed >= _PATIENCE:
                break
        if not fixed:
            return
        for at, following in _followed([*guards, *(others if not failed else ())]):
            if not self._run(at, following, say)[0] and at in self.guards:
                return
        say({"through": True})

    def _run(self, at: int, following: int | None, say: Say) -> tuple[bool, int, str, object]:
        """Run one test and say how it went; gives that, and how exactly, as far as that is recorded."""
        known = self.tests[at]
        say({"begin": at, "within": self._patience(at)})
        fuel = _FUEL + _MORE_FUEL * (0 if known.is_endless else known.fuel)
        ran = self.bench.run(at, following, fuel)
        say({"at": at, "passed": ran.passed})
        return ran.passed, ran.fuel, ran.failure.error, ran.failure.frames

    def _patience(self, at: int) -> float:
        """How long a test may take; nobody knows how long one usually does that did not end."""
        seconds = self.tests[at].seconds
        return min(_LONGEST, _SECONDS + _MORE_SECONDS * (seconds if seconds < _LONGEST else 0.2))


def _followed(places: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Each with the one after it."""
    return zip_longest(places, places[1:])
