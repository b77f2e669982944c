"""The tests of a project, collected once by an ordinary pytest; forks of this process run them, one after another."""

from __future__ import annotations

import time
import unittest
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.repair.failure import Failure, failure
from pytest_loop.repair.probe import Emptied, Probe
from pytest_loop.repair.suspicion import Line

ENDLESS = "Endless"


@dataclass(frozen=True)
class Ran:
    """How one test went, and why not better, where somebody asked for that."""

    passed: bool
    seconds: float
    fuel: int
    failure: Failure = Failure()  # noqa: RUF009 - frozen


class Bench:
    """A pytest plugin: when the tests are collected it hands itself to `work`, which runs them in place of pytest."""

    def __init__(self, work: Callable[[Bench], None]) -> None:
        self._work = work
        self.items: list[pytest.Item] = []
        self.broken: dict[str, Failure] = {}
        self._session: pytest.Session | None = None
        self._probe: Probe | None = None
        self._fuel = 0
        self._emptied: Emptied = lambda: None
        self._is_recording = False
        self._called = self._failed = False
        self._raised: BaseException | None = None
        self._spent = 0
        self._lines: set[Line] = set()

    # What pytest asks.

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> Generator[None, Any, Any]:
        """Neither workers nor coverage, where these are installed; the latter asks before the words are read again."""
        for plugin, word in (("xdist", "-n0"), ("pytest_cov", "--no-cov")):
            if early_config.pluginmanager.hasplugin(plugin):
                args.append(word)
        early_config.known_args_namespace.no_cov = True
        try:
            return (yield)
        except Exception as error:
            self.broken[str(getattr(error, "path", "conftest.py"))] = failure(error.__cause__ or error)
            raise

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._session = session
        self.items = list(session.items)
        self._work(self)
        return True

    def pytest_exception_interact(
        self, call: pytest.CallInfo[Any], report: pytest.CollectReport | pytest.TestReport
    ) -> None:
        if isinstance(report, pytest.CollectReport) and call.excinfo is not None:
            error = call.excinfo.value
            self.broken[report.nodeid] = failure(error.__cause__ or error)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self) -> Generator[None, Any, Any]:
        return (yield from self._watched())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        return (yield from self._watched())

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self) -> Generator[None, Any, Any]:
        return (yield from self._watched())

    def _watched(self) -> Generator[None, Any, Any]:
        if self._probe is None:
            return (yield)
        self._probe.start(self._fuel - self._spent, self._emptied, is_recording=self._is_recording)
        try:
            return (yield)
        finally:
            self._probe.stop()
            self._take(self._probe)

    def _take(self, probe: Probe) -> None:
        self._spent += probe.used
        self._lines |= probe.lines
        probe.used, probe.lines = 0, set()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.failed:
            self._failed = True
            self._raised = self._raised or (call.excinfo.value if call.excinfo else None)
        elif report.when == "call" and report.passed:
            self._called = True
        return report

    # What forks ask.

    def watch(self, probe: Probe, emptied: Emptied, *, is_recording: bool) -> None:
        """Count and record what runs from now on."""
        self._probe, self._emptied, self._is_recording = probe, emptied, is_recording

    def run(self, at: int, following: int | None, fuel: int) -> Ran:
        """Run one test; the next one is asked for so that what both share stays up."""
        item = self.items[at]
        self._called = self._failed = False
        self._raised, self._spent, self._lines, self._fuel = None, 0, set(), fuel
        started = time.perf_counter()
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None if following is None else self.items[following])
        seconds = time.perf_counter() - started
        passed = self._called and not self._failed
        return Ran(passed, seconds, self._spent, self._why())

    def _why(self) -> Failure:
        return failure(self._raised) if self._raised is not None and self._is_recording else Failure()

    def names(self, places: Iterable[int]) -> tuple[str, ...]:
        """The node ids of tests, in the order of collection."""
        return tuple(self.items[at].nodeid for at in sorted(places))

    def lines(self) -> frozenset[Line]:
        """What the test that ran last, or still runs, has executed."""
        return frozenset(self._lines | (self._probe.lines if self._probe is not None else set()))


class Brief:
    """A pytest plugin: a failure needs no text, which takes longer to write than most tests run."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport | None:
        if call.excinfo is None or not isinstance(call.excinfo.value, Exception):
            return None  # passed, or the kinds of skip and fail, which pytest knows better
        if isinstance(call.excinfo.value, unittest.SkipTest):
            return None
        if call.when == "collect":
            return None
        return pytest.TestReport(item.nodeid, item.location, {}, "failed", "", call.when, duration=call.duration)


def words(asked: Sequence[str], home: Path) -> list[str]:
    """The command line of the session that collects: as asked, but quick, quiet, alone, and without traces on disk."""
    found = [*asked, "-q", "--tb=no", "--assert=plain", "--capture=sys", "-o", f"cache_dir={home / 'cache'}"]
    if not any("randomly" in word for word in asked):
        found += ["-p", "no:randomly"]
    return found
