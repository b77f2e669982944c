"""Among workers of xdist, reports of quick items that passed travel together: a message takes as long as such an item.

A report that waits is carried by the next one that is sent, at the latest by the last one of a session. Those of a
worker that dies are lost, and their items count as not judged.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from typing import Any

import pytest

MOST = 20
LONGEST = 0.1
_CARRIED = "loop_carried"


class Carrier:
    """In a worker: keeps reports until one of them is sent."""

    def __init__(self) -> None:
        self._waiting: list[pytest.TestReport] = []
        self._left = 0.0

    def send(self, item: pytest.Item, report: pytest.TestReport) -> None:
        """Report that an item has passed: at once where that is rare, else together with the next ones."""
        self._waiting.append(report)
        if len(self._waiting) >= MOST or time.monotonic() - self._left >= LONGEST:
            self._leave(item)

    def _leave(self, item: pytest.Item) -> None:
        """The last one is that of the item which xdist knows to run; it carries the others."""
        item.ihook.pytest_runtest_logreport(report=self._waiting.pop())
        self._left = time.monotonic()

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, config: pytest.Config, report: pytest.CollectReport | pytest.TestReport
    ) -> Generator[None, dict[str, Any], dict[str, Any]]:
        data = yield
        if self._waiting and isinstance(report, pytest.TestReport):
            waiting, self._waiting = self._waiting, []
            pack = config.hook.pytest_report_to_serializable
            data[_CARRIED] = json.dumps([pack(config=config, report=one) for one in waiting], default=str)
        return data

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Where a session ends early, no other report follows."""
        if self._waiting:
            self._leave(session.items[0])


class Delivery:
    """In the controller: reports what a report has carried, before the report itself."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        carried = vars(report).pop(_CARRIED, None)
        for data in json.loads(carried) if carried else ():
            data["location"] = tuple(data["location"])
            one = self._config.hook.pytest_report_from_serializable(config=self._config, data=data)
            one.node = report.node
            self._config.hook.pytest_runtest_logreport(report=one)
