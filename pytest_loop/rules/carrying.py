"""Among workers of xdist, what is said of quick items that passed travels together: a message takes as long as one.

A report waits, with xdist's own word that its item is done, until there are many, or an item of another kind begins, or
the worker has nothing more to do. What waits in a worker that dies is lost; xdist takes its items for not done.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any, NamedTuple

import pytest

from pytest_loop.rules.listening import are_of, impls
from pytest_loop.rules.passing import packed, unpacked

MOST = 50
LONGEST = 0.1
_NAME = "loop-carrier"
# The last one is xdist in its workers, which run its module without a name.
QUIET = ("_pytest.", "pytest_loop.", "xdist.", "__channelexec__")
_CARRIED = "loop_carried"
_DONE = "runtest_protocol_complete"
_KNOWN = ("sendevent", "torun", "workerid", "testrunuid")


class _Waiting(NamedTuple):
    report: pytest.TestReport
    done: dict[str, Any]


class Carrier:
    """In a worker: keeps reports until one of them is sent. `worker` is the part of xdist that runs there."""

    def __init__(self, config: pytest.Config, worker: Any) -> None:
        self._config = config
        self._worker = worker
        self._waiting: list[_Waiting] = []
        self._left = 0.0
        self._tell, worker.sendevent = worker.sendevent, self._told
        self._next, worker.torun.get = worker.torun.get, self._following

    def send(self, report: pytest.TestReport) -> None:
        """Report that an item has passed: at once where that is rare, else together with others."""
        self._waiting.append(_Waiting(report, {}))

    def _told(self, name: str, **fields: Any) -> None:
        """What xdist tells the controller; that an item is done waits with its report."""
        if name != _DONE or not self._waiting or self._waiting[-1].done:
            self._tell(name, **fields)
            return
        self._waiting[-1].done.update(fields)
        if len(self._waiting) >= MOST or time.monotonic() - self._left >= LONGEST:
            self._leave()

    def _following(self) -> Any:
        """The next item; who has to wait for one would wait forever for a controller that was not told."""
        with self._worker.torun.lock() as queue:
            if queue:
                return queue.popleft()
        self._leave()
        return self._next()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """An item of another kind begins: should it end this process, then nobody else is suspected."""
        self._leave()

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        self._leave()

    def _leave(self) -> None:
        """The last report carries the others."""
        self._left = time.monotonic()
        if self._waiting:
            report, done = self._waiting.pop()
            data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            data |= {"item_index": done.get("item_index", -1), "worker_id": self._worker.workerid}
            self._tell("testreport", data={**data, "testrun_uid": self._worker.testrunuid})
            if done:  # else somebody interrupted
                self._tell(_DONE, **done)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> Generator[None, dict[str, Any], dict[str, Any]]:
        data = yield
        if self._waiting and isinstance(report, pytest.TestReport):
            waiting, self._waiting = self._waiting, []
            data[_CARRIED] = json.dumps([(packed(one.report), one.done) for one in waiting], default=str)
        return data


class Delivery:
    """In the controller: passes on what a report has carried, before the report itself."""

    def __init__(self, config: pytest.Config) -> None:
        self._controller: Any = config.pluginmanager.getplugin("dsession")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        carried = vars(report).pop(_CARRIED, None)
        for data, done in json.loads(carried) if carried else ():
            self._controller.worker_testreport(report.node, unpacked(data))
            if done:
                self._controller.worker_runtest_protocol_complete(report.node, **done)


def carrier(config: pytest.Config) -> Carrier | None:
    """The one of this worker; None in other processes, and where anybody wants to hear of every item at once."""
    if config.pluginmanager.has_plugin(_NAME):
        return config.pluginmanager.getplugin(_NAME)  # type: ignore[no-any-return]
    worker = _part_of_xdist(config)
    if worker is None or config.workerinput.get("loop_heard", True) or not are_of(QUIET, listeners(config)):  # type: ignore[attr-defined]
        return None
    made = Carrier(config, worker)
    config.pluginmanager.register(made, _NAME)
    return made


def listeners(config: pytest.Config) -> list[Any]:
    """Everybody who hears of the items of this process."""
    return impls(config, "pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish")


def _part_of_xdist(config: pytest.Config) -> Any:
    """What runs the items of a worker, if it is as we know it."""
    plugins = config.pluginmanager.get_plugins()
    return next((one for one in plugins if all(hasattr(one, name) for name in _KNOWN)), None)


def can_deliver(config: pytest.Config) -> bool:
    """Whether this controller can hear of several items at once."""
    controller = config.pluginmanager.getplugin("dsession")
    return all(hasattr(controller, name) for name in ("worker_testreport", f"worker_{_DONE}"))
