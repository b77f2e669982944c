"""Send messages of a session through the pipe to the run that started it."""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from typing import Any

import pytest

MAX_BUFFERED = 50
_OWN_PACKAGES = ("pytest_loop", "xdist")


class Channel:
    """Write one JSON object per line into the pipe, after a signature of it and its number.

    Code under test can find the pipe, read and replace it, but does not know the key. A process that a test forks
    writes nothing. `columns` is the width of the terminal that shows the session.
    """

    def __init__(self, descriptor: int, key: bytes, columns: int = 0) -> None:
        self._key = key
        self._count = 0
        self._pid = os.getpid()
        os.set_inheritable(descriptor, False)
        self._columns = columns
        self._descriptor = descriptor
        self._buffer: list[tuple[str, dict[str, Any]]] = []

    def send(self, **message: Any) -> None:
        self._write(json.dumps(message))

    def send_evidence(self, nodeid: str, evidence: dict[str, Any]) -> None:
        """Buffer evidence; send it with the next message, or once `MAX_BUFFERED` items are buffered."""
        self._buffer.append((nodeid, evidence))
        if len(self._buffer) >= MAX_BUFFERED:
            self._write()

    def send_plan(self, plan: str) -> None:
        """Send a plan that is JSON on one line."""
        self._write(f'{{"plan": {plan}}}')

    def _write(self, *lines: str) -> None:
        buffered = [json.dumps({"evidence": self._buffer})] if self._buffer else []
        self._buffer.clear()
        if os.getpid() != self._pid:
            return
        data = memoryview(b"".join(self._sign(line.encode()) for line in (*buffered, *lines)))
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _sign(self, line: bytes) -> bytes:
        self._count += 1
        return b"%s %s\n" % (compute_signature(self._key, self._count, line), line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Set the width of pytest's output to the width of the run's terminal."""
        if self._columns and session.config.pluginmanager.has_plugin("terminalreporter"):
            session.config.get_terminal_writer().fullwidth = self._columns

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.send(start=nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.send(problem=(report.nodeid, report.longreprtext))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        plugins = session.config.pluginmanager.list_name_plugin()
        self.send(plugins=sorted(name for name, plugin in plugins if not name.isdigit() and _can_interfere(plugin)))
        self.send(end=(int(session.exitstatus), session.testsfailed))


def compute_signature(key: bytes, number: int, line: bytes) -> bytes:
    """Return the signature of a line: who lacks the key cannot change, repeat, reorder or leave out lines."""
    return blake2b(b"%d %s" % (number, line), key=key, digest_size=16).hexdigest().encode()


def _can_interfere(plugin: object) -> bool:
    """Return whether a plugin is registered, and neither pytest-loop nor xdist added it."""
    return plugin is not None and type(plugin).__module__.partition(".")[0] not in _OWN_PACKAGES
