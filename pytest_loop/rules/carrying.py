"""Among workers of xdist, what is said of quick items that passed travels together: a message takes as long as one.

A report waits together with xdist's own word that its item is done, and both are carried by the next report that is
sent: at the latest by the last one of a session, and always before the worker has to wait for more items. What is
carried by a worker that dies is lost; xdist takes its items for not done.
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


class _Waiting(NamedTuple):
    report: pytest.TestReport
    done: dict[str, Any]


class Carrier:
    """In a worker: keeps reports until one of them is sent. `worker` is the part of xdist that runs there."""

    def __init__(self, worker: Any) -> None:
        self._worker = worker
        self._tell = worker.sendevent
        worker.sendevent = self._told
        self._waiting: list[_Waiting] = []
        self._left = 0.0

    def send(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Report that an item has passed: at once where that is rare, else together with the next ones."""
        is_due = len(self._waiting) >= MOST or time.monotonic() - self._left >= LONGEST
        if is_due or self._has_no_more():
            self._leave(item, report)
        else:
            self._waiting.append(_Waiting(report, {}))

    def _has_no_more(self) -> bool:
        """Whether the worker waits after the next item; it would wait forever for somebody who does not know that."""
        with self._worker.torun.lock() as queue:
            return not queue

    def _leave(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """It carries the others."""
        item.ihook.pytest_runtest_logreport(report=report)
        self._left = time.monotonic()

    def _told(self, name: str, **fields: Any) -> None:
        """What xdist tells the controller; that an item is done waits with its report."""
        if name == _DONE and self._waiting and not self._waiting[-1].done:
            self._waiting[-1].done.update(fields)
        else:
            self._tell(name, **fields)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, report: pytest.CollectReport | pytest.TestReport
    ) -> Generator[None, dict[str, Any], dict[str, Any]]:
        data = yield
        if self._waiting and isinstance(report, pytest.TestReport):
            waiting, self._waiting = self._waiting, []
            data[_CARRIED] = json.dumps([(packed(one.report), one.done) for one in waiting], default=str)
        return data

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Where a session ends early, no other report follows."""
        if self._waiting:
            last = self._waiting.pop()
            self._leave(session.items[0], last.report)
            self._tell(_DONE, **last.done)


class Delivery:
    """In the controller: passes on what a report has carried, before the report itself."""

    def __init__(self, config: pytest.Config) -> None:
        self._hook = config.hook
        self._controller: Any = config.pluginmanager.getplugin("dsession")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        carried = vars(report).pop(_CARRIED, None)
        for data, done in json.loads(carried) if carried else ():
            self._controller.worker_testreport(report.node, unpacked(data))
            self._controller.worker_runtest_protocol_complete(report.node, **done)


def carrier(config: pytest.Config) -> Carrier | None:
    """The one of this worker; None in other processes, and where anybody wants to hear of every item at once."""
    if config.pluginmanager.has_plugin(_NAME):
        return config.pluginmanager.getplugin(_NAME)  # type: ignore[no-any-return]
    worker = _part_of_xdist(config)
    if worker is None or config.workerinput.get("loop_heard", True) or not are_of(QUIET, listeners(config)):  # type: ignore[attr-defined]
        return None
    made = Carrier(worker)
    config.pluginmanager.register(made, _NAME)
    return made


def listeners(config: pytest.Config) -> list[Any]:
    """Everybody who hears of the items of this process."""
    return impls(config, "pytest_runtest_logstart", "pytest_runtest_logreport", "pytest_runtest_logfinish")


def _part_of_xdist(config: pytest.Config) -> Any:
    """What runs the items of a worker, if it is as we know it."""
    plugins = config.pluginmanager.get_plugins()
    return next((one for one in plugins if hasattr(one, "sendevent") and hasattr(one, "torun")), None)


def can_deliver(config: pytest.Config) -> bool:
    """Whether this controller can hear of several items at once, and takes none back that a worker has."""
    controller = config.pluginmanager.getplugin("dsession")
    knows = all(hasattr(controller, name) for name in ("worker_testreport", f"worker_{_DONE}"))
    return knows and config.getoption("dist", "no") != "worksteal"
