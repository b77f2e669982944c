"""Run the tests before any edit: which fail and where, what each executes, and how long it takes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from pytest_loop.repair.collected_tests import ENDLESS, CollectedTests, TestOutcome
from pytest_loop.repair.editable_files import EditableFiles
from pytest_loop.repair.failure import Failure
from pytest_loop.repair.fork_pool import ForkPool, Job, Send
from pytest_loop.repair.sandbox import REFUSAL
from pytest_loop.repair.suspicion import Line, Spectrum
from pytest_loop.repair.tracer import FUEL_OF_TEST, make_tracer

_MAX_TEST_SECONDS, _MIN_TIMEOUT = 15.0, 1.0
_RERUN_TIMEOUT = 3.0
_MAX_STACK_DEPTH = 50


class FailureKind(NamedTuple):
    """The exception type of a failure, and the innermost project line of its traceback; None without one."""

    error: str
    line: Line | None


@dataclass(frozen=True)
class BaselineResult:
    """The result of one test before any edit: the lines it executed, its time, its fuel (see `tracer`), its failure."""

    spectrum: Spectrum
    seconds: float
    fuel: int
    failure: Failure = Failure()  # noqa: RUF009 - frozen

    @property
    def is_endless(self) -> bool:
        return self.failure.error == ENDLESS

    @property
    def is_restricted(self) -> bool:
        """Whether the sandbox stopped the test, so that its result is unknown."""
        return self.failure.error == PermissionError.__name__ and self.failure.message.startswith(REFUSAL)

    @property
    def failure_kind(self) -> FailureKind:
        return FailureKind(self.failure.error, next(iter(self.spectrum.frames[-1:]), None))


def run_baseline(
    tests: CollectedTests, pool: ForkPool, files: EditableFiles, order: Sequence[int], seconds: float
) -> dict[int, BaselineResult]:
    """Run the tests in this order for at most `seconds`; if a test ends its fork, run the rest in a new fork."""
    results: dict[int, BaselineResult] = {}
    untested = list(order)
    deadline = time.monotonic() + seconds
    while untested and time.monotonic() < deadline:
        batch = tuple(untested)
        pool.start(Job(0, partial(record_tests, tests, files, batch, deadline), _compute_timeout(deadline)))
        while not pool.is_idle:
            for fork in pool.collect_results():
                results |= {message["test"]: parse_result(message) for message in fork.messages if "test" in message}
                untested = [index for index in batch if index not in results]
                is_explained = bool(fork.messages) and fork.messages[-1]["failure"]["error"] == ENDLESS
                if not fork.is_finished and untested and not is_explained:
                    index = untested.pop(0)
                    results[index] = _rerun_crashed(tests, pool, files, index, is_late=fork.is_late)
    return results


class _SentLines(set[Line]):
    """A set that sends each new line to the parent process at once, because the test may end this process."""

    def __init__(self, send: Send) -> None:
        super().__init__()
        self._send = send

    def add(self, line: Line) -> None:
        if line not in self:
            super().add(line)
            self._send({"line": line})


def _rerun_crashed(
    tests: CollectedTests, pool: ForkPool, files: EditableFiles, index: int, *, is_late: bool
) -> BaselineResult:
    """Run a test that ended its fork or hung again, alone; return it as failed, with the lines it reached."""

    def work(send: Send) -> None:
        tracer = make_tracer(files)
        tracer.make_line_set = partial(_SentLines, send)
        tests.trace_with(tracer, lambda: os._exit(0), is_recording=True)
        tests.run_test(index, None, FUEL_OF_TEST)

    pool.start(Job(0, work, _RERUN_TIMEOUT))
    lines: set[Line] = set()
    while not pool.is_idle:
        for fork in pool.collect_results():
            lines |= {(message["line"][0], message["line"][1]) for message in fork.messages if "line" in message}
    failure = Failure(error=ENDLESS if is_late else "")
    return BaselineResult(Spectrum(False, frozenset(lines)), _MAX_TEST_SECONDS, FUEL_OF_TEST, failure)


def record_tests(
    tests: CollectedTests, files: EditableFiles, order: Sequence[int], deadline: float, send: Send
) -> None:
    """In a fork: run tests until the deadline, and send the result of each."""
    current = order[0]

    def report_endless() -> None:
        failure = Failure(error=ENDLESS, frames=_read_stack(files))
        send(_make_message(current, tests, TestOutcome(False, 0.0, FUEL_OF_TEST, failure)))
        os._exit(0)

    tests.trace_with(make_tracer(files), report_endless, is_recording=True)
    for position, current in enumerate(order):
        if time.monotonic() > deadline:
            return
        following = order[position + 1] if position + 1 < len(order) else None
        outcome = tests.run_test(current, following, FUEL_OF_TEST)
        send({**_make_message(current, tests, outcome), "within": _compute_timeout(deadline)})


def _compute_timeout(deadline: float) -> float:
    """Return how many seconds the next test may take."""
    return max(_MIN_TIMEOUT, min(_MAX_TEST_SECONDS, deadline - time.monotonic()))


def _read_stack(files: EditableFiles) -> tuple[Line, ...]:
    """Return the lines of editable files on the current stack, innermost last."""
    lines: list[Line] = []
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        path = files.find_file(frame.f_code.co_filename)
        if path is not None:
            lines.append((str(path), frame.f_lineno))
    return tuple(reversed(lines[:_MAX_STACK_DEPTH]))


def _make_message(index: int, tests: CollectedTests, outcome: TestOutcome) -> dict[str, object]:
    lines: dict[str, list[int]] = {}
    for path, line in sorted(tests.get_executed_lines()):
        lines.setdefault(path, []).append(line)
    return {
        "test": index,
        "passed": outcome.passed,
        "seconds": outcome.seconds,
        "fuel": outcome.fuel,
        "failure": outcome.failure.model_dump(),
        "lines": lines,
    }


def parse_result(message: dict[str, Any]) -> BaselineResult:
    """Parse the message of one test."""
    lines, failure = message["lines"], Failure.model_validate(message["failure"])
    executed = frozenset((path, line) for path, numbers in lines.items() for line in numbers)
    frames = tuple((path, line) for path, line in failure.frames if path in lines)
    return BaselineResult(Spectrum(message["passed"], executed, frames), message["seconds"], message["fuel"], failure)
