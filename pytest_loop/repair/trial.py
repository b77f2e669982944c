"""Try candidates against the tests in forks: failing tests first, then those that passed.

Several candidates share a fork for a first look, each undone before the next. A promising candidate is tried again in a
fork of its own, which has no leftovers of others. If tests are not repeatable within one process, every candidate gets
its own fork.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path

from pytest_loop.repair.baseline_run import BaselineResult
from pytest_loop.repair.code_swap import LoadedCode
from pytest_loop.repair.collected_tests import CollectedTests, TestOutcome
from pytest_loop.repair.fork_pool import ForkPool, ForkResult, Job, Send
from pytest_loop.repair.search_state import PlausibleEdit, RankedCandidate
from pytest_loop.repair.suspicion import Line
from pytest_loop.repair.tracer import Tracer

_BASE_FUEL, _FUEL_FACTOR = 20_000, 10
_BASE_SECONDS, _SECONDS_FACTOR = 2.0, 5.0
_MAX_TEST_SECONDS = 10.0
_TESTS_TO_LOOK_AT = 2
_MAX_BATCH = 16
_FORK_SECONDS = 0.03


@dataclass
class CandidateTrial:
    """Run trials of candidates: `targets` are the tests to turn green, `guards` those that pass and must still pass.

    Tests are numbered by their position in the collection.
    """

    tests: CollectedTests
    tracer: Tracer
    loaded: LoadedCode
    baseline: Mapping[int, BaselineResult]
    targets: Sequence[int]
    guards: Sequence[int]
    batch_size: int = 1
    _targets_by_line: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    _guards_by_unit: dict[int, list[int]] = field(default_factory=dict)
    _lines_by_unit: dict[int, frozenset[Line]] = field(default_factory=dict)

    def choose_batch_size(self, pool: ForkPool) -> None:
        """Let candidates share forks if repeated tests in one process behave the same and change no containers."""
        indexes = [*self.targets[:_TESTS_TO_LOOK_AT], *self.guards[:_TESTS_TO_LOOK_AT]]
        if any(self.baseline[index].is_endless for index in indexes):
            return

        def work(send: Send) -> None:
            self._start_tracing(is_recording=True)
            before = self.loaded.measure_containers()
            rounds = [[self._run_test(index, None, send) for index in indexes] for _ in range(3)]
            fuels = [[outcome.fuel for outcome in outcomes] for outcomes in rounds]
            behaviours = [[_get_behaviour(outcome) for outcome in outcomes] for outcomes in rounds]
            # Filling caches in the first round may change the fuel.
            is_same = behaviours[0] == behaviours[1] == behaviours[2] and fuels[1] == fuels[2]
            send({"same": is_same and self.loaded.measure_containers() == before})

        pool.start(Job(0, work, _BASE_SECONDS))
        while not pool.is_idle:
            for result in pool.collect_results():
                self.batch_size = _MAX_BATCH if any(message.get("same") for message in result.messages) else 1

    def estimate_seconds(self) -> float:
        """Estimate how long the first look at a candidate takes."""
        tests = sum(min(self.baseline[index].seconds, _BASE_SECONDS) for index in self.targets[:_TESTS_TO_LOOK_AT])
        return tests + _FORK_SECONDS / self.batch_size

    def make_job(self, key: int, batch: Sequence[RankedCandidate]) -> Job:
        """Make a complete trial of one candidate, or a first look at several."""
        for ranked in batch:
            self.loaded.prepare_unit(ranked.candidate.unit)
        work = self._make_first_look(batch) if len(batch) > 1 else self._make_trial(batch[0])
        return Job(key, work, _BASE_SECONDS)

    def _make_first_look(self, batch: Sequence[RankedCandidate]) -> Callable[[Send], None]:
        """Return the job that sends each candidate with which a first test passes, or that cannot share a fork."""

        def work(send: Send) -> None:
            self._start_tracing()
            before = Path.cwd(), threading.active_count()
            for ranked in batch:
                send({"begun": ranked.rank})
                undo = self.loaded.swap_reversibly(ranked.candidate.unit, ranked.tree)
                indexes = self._find_reaching_targets(ranked)[:_TESTS_TO_LOOK_AT]
                if undo is None or any(self._run_test(index, None, send).passed for index in indexes):
                    send({"worth": ranked.rank})
                if undo is not None:
                    undo()
                if (Path.cwd(), threading.active_count()) != before:
                    return

        return work

    def _make_trial(self, ranked: RankedCandidate) -> Callable[[Send], None]:
        targets = self._find_reaching_targets(ranked)
        others = [index for index in self.targets if index not in targets]
        guards = self._sort_guards(ranked)

        def work(send: Send) -> None:
            self.loaded.swap_code(ranked.candidate.unit, ranked.tree, ranked.candidate.text)
            self._start_tracing()
            self._run_tests(targets, guards, others, send)

        return work

    def read_result(self, ranked: RankedCandidate, result: ForkResult) -> PlausibleEdit | None:
        """Return the edit if its trial fixed something and broke nothing."""
        passed = {message["at"]: message["passed"] for message in result.messages if "at" in message}
        fixed = [index for index in self.targets if passed.get(index)]
        remaining = [index for index in self.targets if not passed.get(index)]
        if not fixed or not any("through" in message for message in result.messages):
            return None
        return PlausibleEdit(
            ranked.candidate,
            ranked.rank,
            self.tests.get_node_ids(fixed),
            self.tests.get_node_ids(remaining),
            is_final=not any(self._is_similar_failure(index, fixed, ranked) for index in remaining),
        )

    def _is_similar_failure(self, index: int, fixed: Sequence[int], ranked: RankedCandidate) -> bool:
        """Return whether a test failed like a fixed test: same exception, at the same line or in the edited unit."""
        kind = self.baseline[index].failure_kind
        is_same_kind = any(self.baseline[other].failure_kind == kind for other in fixed)
        return is_same_kind and (kind.line is not None or self._reaches_unit(index, ranked))

    def _find_reaching_targets(self, ranked: RankedCandidate) -> list[int]:
        """Return the targets that execute the edited unit, else all targets; those that execute its line come first."""
        key = id(ranked.candidate.unit), ranked.candidate.line
        if key not in self._targets_by_line:
            line = str(ranked.candidate.source.path), ranked.candidate.line
            reaching = [index for index in self.targets if self._reaches_unit(index, ranked)] or self.targets
            self._targets_by_line[key] = sorted(
                reaching, key=lambda index: line not in self.baseline[index].spectrum.lines
            )
        return self._targets_by_line[key]

    def _sort_guards(self, ranked: RankedCandidate) -> list[int]:
        """Return the guards, those that execute the edited unit first."""
        key = id(ranked.candidate.unit)
        if key not in self._guards_by_unit:
            self._guards_by_unit[key] = sorted(self.guards, key=lambda index: not self._reaches_unit(index, ranked))
        return self._guards_by_unit[key]

    def _reaches_unit(self, index: int, ranked: RankedCandidate) -> bool:
        if ranked.candidate.unit.function is None:
            return True
        return not self._get_unit_lines(ranked).isdisjoint(self.baseline[index].spectrum.lines)

    def _get_unit_lines(self, ranked: RankedCandidate) -> frozenset[Line]:
        unit = ranked.candidate.unit
        if id(unit) not in self._lines_by_unit:
            self._lines_by_unit[id(unit)] = frozenset((str(unit.source.path), line) for line in unit.lines)
        return self._lines_by_unit[id(unit)]

    # -- in a fork

    def _start_tracing(self, *, is_recording: bool = False) -> None:
        self.tests.trace_with(self.tracer, lambda: os._exit(0), is_recording=is_recording)

    def _run_tests(self, targets: Sequence[int], guards: Sequence[int], others: Sequence[int], send: Send) -> None:
        """Run the tests; stop as soon as their outcomes rule the candidate out."""
        failed = fixed = 0
        for index, following in _iterate_with_next(targets):
            passed = self._run_test(index, following, send).passed
            fixed, failed = fixed + passed, failed + (not passed)
            if failed >= _TESTS_TO_LOOK_AT:
                break
        if not fixed:
            return
        for index, following in _iterate_with_next([*guards, *(others if not failed else ())]):
            if not self._run_test(index, following, send).passed and index in self.guards:
                return
        send({"through": True})

    def _run_test(self, index: int, following: int | None, send: Send) -> TestOutcome:
        """Run one test and send its outcome."""
        baseline = self.baseline[index]
        send({"within": compute_timeout(baseline)})
        outcome = self.tests.run_test(index, following, compute_fuel(baseline))
        send({"at": index, "passed": outcome.passed})
        return outcome


def _get_behaviour(outcome: TestOutcome) -> tuple[object, ...]:
    """Return the parts of an outcome that a repeatable test has every time."""
    return outcome.passed, outcome.failure.error, outcome.failure.frames


def compute_fuel(baseline: BaselineResult) -> int:
    """Return how much fuel a test may use: the base amount alone if it was endless at baseline."""
    return _BASE_FUEL + _FUEL_FACTOR * (0 if baseline.is_endless else baseline.fuel)


def compute_timeout(baseline: BaselineResult) -> float:
    """Return how many seconds a test may take: the default if it hung at baseline."""
    seconds = baseline.seconds if baseline.seconds < _MAX_TEST_SECONDS else 0.2
    return min(_MAX_TEST_SECONDS, _BASE_SECONDS + _SECONDS_FACTOR * seconds)


def _iterate_with_next(indexes: Sequence[int]) -> Iterator[tuple[int, int | None]]:
    return zip_longest(indexes, indexes[1:])
