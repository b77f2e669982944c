"""Send messages of a session through the pipe to the run that started it."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

MAX_BUFFERED = 50


class Channel:
    """Write one JSON object per line into the pipe."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._buffer: list[tuple[str, dict[str, Any]]] = []

    def send(self, **message: Any) -> None:
        self._write(json.dumps(message))

    def send_evidence(self, nodeid: str, evidence: dict[str, Any]) -> None:
        """Send evidence with the next message, or once enough of it is buffered."""
        self._buffer.append((nodeid, evidence))
        if len(self._buffer) >= MAX_BUFFERED:
            self._write()

    def send_plan(self, plan: str) -> None:
        """Send a plan that is JSON on one line."""
        self._write(f'{{"plan": {plan}}}')

    def _write(self, *lines: str) -> None:
        buffered = [json.dumps({"evidence": self._buffer})] if self._buffer else []
        data = memoryview("".join(f"{line}\n" for line in (*buffered, *lines)).encode())
        self._buffer.clear()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.send(start=nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.send(problem=report.nodeid, text=report.longreprtext)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        plugins = (name for name, plugin in session.config.pluginmanager.list_name_plugin() if plugin is not None)
        self.send(plugins=sorted(name for name in plugins if not name.isdigit()))
        self.send(exit_status=int(session.exitstatus))
