"""The project's tests, collected once by an ordinary pytest session; forks of this process run them one by one."""

from __future__ import annotations

import time
import unittest
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from pytest_loop.repair.failure import Failure, describe_failure
from pytest_loop.repair.suspicion import Line
from pytest_loop.repair.tracer import OnFuelExhausted, Tracer

ENDLESS = "Endless"


@dataclass(frozen=True)
class TestOutcome:
    """The outcome of one test, its time, and its fuel (see `tracer`); `failure` is empty unless lines are recorded."""

    __test__: ClassVar[bool] = False  # not a test class

    passed: bool
    seconds: float
    fuel: int
    failure: Failure = Failure()  # noqa: RUF009 - frozen


class CollectedTests:
    """A pytest plugin that hands the collected tests to `work` instead of running them all."""

    def __init__(self, work: Callable[[CollectedTests], None]) -> None:
        self._work = work
        self.items: list[pytest.Item] = []
        self.import_failures: dict[str, Failure] = {}
        self._tracer: Tracer | None = None
        self._fuel = 0
        self._on_exhausted: OnFuelExhausted = lambda: None
        self._is_recording = False
        self._has_passed_call = self._has_failed = False
        self._exception: BaseException | None = None
        self._spent_fuel = 0
        self._lines: set[Line] = set()

    # -- hooks of pytest

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> Generator[None, Any, Any]:
        """Turn off xdist and coverage; pytest-cov reads its option before the arguments are parsed again."""
        for plugin, word in (("xdist", "-n0"), ("pytest_cov", "--no-cov")):
            if early_config.pluginmanager.hasplugin(plugin):
                args.append(word)
        early_config.known_args_namespace.no_cov = True
        try:
            return (yield)
        except Exception as error:
            path = str(getattr(error, "path", "conftest.py"))
            self.import_failures[path] = describe_failure(error.__cause__ or error)
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self.items = list(session.items)
        self._work(self)
        return True

    def pytest_exception_interact(
        self, call: pytest.CallInfo[Any], report: pytest.CollectReport | pytest.TestReport
    ) -> None:
        if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
            error = call.excinfo.value
            self.import_failures[report.nodeid] = describe_failure(error.__cause__ or error)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        return (yield from self._trace())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        return (yield from self._trace())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        return (yield from self._trace())

    def _trace(self) -> Generator[None, Any, Any]:
        tracer = self._tracer
        if tracer is None:
            return (yield)
        tracer.start(self._fuel - self._spent_fuel, self._on_exhausted, is_recording=self._is_recording)
        try:
            return (yield)
        finally:
            tracer.stop()
            self._spent_fuel += tracer.spent_fuel
            self._lines |= tracer.lines
            tracer.spent_fuel, tracer.lines = 0, set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            self._has_failed = True
            self._exception = self._exception or (call.excinfo.value if call.excinfo else None)
        elif report.when == "call" and report.passed:
            self._has_passed_call = True
        return report

    # -- for forks

    def trace_with(self, tracer: Tracer, on_exhausted: OnFuelExhausted, *, is_recording: bool) -> None:
        """Trace every test from now on; with `is_recording`, also record lines and failures."""
        self._tracer, self._on_exhausted, self._is_recording = tracer, on_exhausted, is_recording

    def run_test(self, index: int, following: int | None, fuel: int) -> TestOutcome:
        """Run one test with `fuel`; keep the fixtures set up that the `following` test shares (None: tear down all)."""
        item = self.items[index]
        self._has_passed_call = self._has_failed = False
        self._exception, self._spent_fuel, self._lines, self._fuel = None, 0, set(), fuel
        started = time.perf_counter()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None if following is None else self.items[following])
        seconds = time.perf_counter() - started
        passed = self._has_passed_call and not self._has_failed
        return TestOutcome(passed, seconds, self._spent_fuel, self._describe_exception())

    def _describe_exception(self) -> Failure:
        return describe_failure(self._exception) if self._exception is not None and self._is_recording else Failure()

    def get_node_ids(self, indexes: Iterable[int]) -> tuple[str, ...]:
        """Return the node ids of tests in collection order."""
        return tuple(self.items[index].nodeid for index in sorted(indexes))

    def get_executed_lines(self) -> frozenset[Line]:
        """Return the recorded lines that the running test, or else the last one, has executed."""
        return frozenset(self._lines | (self._tracer.lines if self._tracer is not None else set()))


class BriefReports:
    """A pytest plugin that leaves out the text of failures: rendering it takes longer than most tests."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        exception = call.excinfo.value if call.excinfo is not None else None
        is_plain_failure = isinstance(exception, Exception) and not isinstance(exception, unittest.SkipTest)
        if not is_plain_failure or call.when == "collect":
            return None  # passes, skips and pytest.fail are left to pytest
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", "", call.when, duration=call.duration)


def build_arguments(arguments: Sequence[str], temp_folder: Path) -> list[str]:
    """Return arguments for the collecting session: quiet, in a fixed order, with its cache in `temp_folder`."""
    words = [*arguments, "-q", "--tb=no", "--assert=plain", "--capture=sys", "-o", f"cache_dir={temp_folder / 'cache'}"]
    if not any("randomly" in word for word in arguments):
        words += ["-p", "no:randomly"]
    return words
