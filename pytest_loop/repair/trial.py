"""One candidate in a fork: its code in place of the old one, the tests that failed first, then those that passed."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from pytest_loop.repair.baseline import Known
from pytest_loop.repair.bench import Bench
from pytest_loop.repair.candidates import Candidate
from pytest_loop.repair.forks import Ended, Job, Say
from pytest_loop.repair.found import Plausible
from pytest_loop.repair.probe import Probe
from pytest_loop.repair.swap import Loaded

_FUEL, _MORE_FUEL = 20_000, 10
_SECONDS, _MORE_SECONDS = 1.0, 5.0
_LONGEST = 10.0
_PATIENCE = 2


@dataclass(frozen=True)
class Trial:
    """What all trials share: the tests that are to pass (`targets`), and those that must not break (`guards`)."""

    bench: Bench
    probe: Probe
    loaded: Loaded
    tests: Mapping[int, Known]
    targets: Sequence[int]
    guards: Sequence[int]
    _reached: dict[tuple[int, int], list[int]] = field(default_factory=dict)

    def job(self, key: int, one: Candidate, tree: ast.stmt | ast.Module) -> Job:
        targets = self._first_targets(one)
        others = [at for at in self.targets if at not in targets]
        near = [at for at in self.guards if self._reaches(at, one)] if len(self.guards) > _PATIENCE else self.guards
        guards = [*near, *(at for at in self.guards if at not in set(near))]

        def work(say: Say) -> None:
            self.loaded.swap(one.unit, tree, one.text)
            self.bench.watch(self.probe, lambda: os._exit(0), is_recording=False)
            self._run(targets, guards, others, say)

        return Job(key, work, self._patience(targets[0]))

    def plausible(self, one: Candidate, rank: int, ended: Ended) -> Plausible | None:
        """What a trial came to, where it fixed something and broke nothing."""
        passed = {message["at"]: message["passed"] for message in ended.messages if "at" in message}
        fixed = [at for at in self.targets if passed.get(at)]
        remaining = [at for at in self.targets if not passed.get(at)]
        if not fixed or not any("through" in message for message in ended.messages):
            return None
        kinds = {self.tests[at].kind for at in fixed}
        is_final = not any(self.tests[at].kind in kinds and self._reaches(at, one) for at in remaining)
        return Plausible(one, rank, self.bench.names(fixed), self.bench.names(remaining), is_final)

    def _first_targets(self, one: Candidate) -> list[int]:
        """The targets that execute what the candidate edits, its line first; all of them, where none is known to."""
        key = id(one.unit), one.line
        if key not in self._reached:
            place = str(one.source.path), one.line
            reached = [at for at in self.targets if self._reaches(at, one)] or self.targets
            self._reached[key] = sorted(reached, key=lambda at: place not in self.tests[at].spectrum.lines)
        return self._reached[key]

    def _reaches(self, at: int, one: Candidate) -> bool:
        if one.unit.function is None:
            return True
        path, lines = str(one.source.path), one.unit.lines
        return any(name == path and line in lines for name, line in self.tests[at].spectrum.lines)

    def _run(self, targets: Sequence[int], guards: Sequence[int], others: Sequence[int], say: Say) -> None:
        """In a fork: run the tests, say how each went, and stop where there is nothing left to hope for."""
        failed = fixed = 0
        for at, following in _followed(targets):
            passed = self._one(at, following, say)
            fixed, failed = fixed + passed, failed + (not passed)
            if failed >= _PATIENCE:
                break
        if not fixed:
            return
        rest = [*guards, *(others if not failed else ())]
        for at, following in _followed(rest):
            if not self._one(at, following, say) and at in self.guards:
                return
        say({"through": True})

    def _one(self, at: int, following: int | None, say: Say) -> bool:
        known = self.tests[at]
        say({"begin": at, "more": self._patience(at)})
        fuel = _FUEL + _MORE_FUEL * (0 if known.is_endless else known.fuel)
        ran = self.bench.run(at, following, fuel)
        say({"at": at, "passed": ran.passed})
        return ran.passed

    def _patience(self, at: int) -> float:
        """How long a test may take; nobody knows how long one usually does that did not end."""
        seconds = self.tests[at].seconds
        return min(_LONGEST, _SECONDS + _MORE_SECONDS * (seconds if seconds < _LONGEST else 0.2))


def _followed(places: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    """Each with the one after it."""
    return zip_longest(places, places[1:])
