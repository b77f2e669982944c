"""The child's end of the wire: what a session tells the run that ordered it."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

MOST_KEPT = 50


class Channel:
    """Writes one JSON object a line into the pipe that the driver opened; nobody else knows of it."""

    def __init__(self, descriptor: int) -> None:
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor
        self._kept: list[tuple[str, dict[str, Any]]] = []

    def tell(self, **message: Any) -> None:
        """At once."""
        self._write(json.dumps(message))

    def tell_evidence(self, nodeid: str, evidence: dict[str, Any]) -> None:
        """Together with the next message, or with others of its kind: rules that only look at files are many."""
        self._kept.append((nodeid, evidence))
        if len(self._kept) >= MOST_KEPT:
            self._write()

    def tell_plan(self, plan: str) -> None:
        """The plan as JSON, on one line."""
        self._write(f'{{"plan": {plan}}}')

    def _write(self, *lines: str) -> None:
        kept = [json.dumps({"evidence": self._kept})] if self._kept else []
        data = memoryview("".join(f"{one}\n" for one in (*kept, *lines)).encode())
        self._kept.clear()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.tell(start=nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.tell(problem=report.nodeid, text=report.longreprtext)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        named = (name for name, plugin in session.config.pluginmanager.list_name_plugin() if plugin is not None)
        self.tell(plugins=sorted(name for name in named if not name.isdigit()))
        self.tell(finished=int(session.exitstatus))
