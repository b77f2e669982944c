"""Watches the project's code run: which lines, and how much of it, so that endless loops end the same everywhere.

From Python 3.12 on `sys.monitoring` looks at the project's code only. Before that there is `sys.settrace`, which sees
every call; it is switched on around tests only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Protocol

from pytest_loop.repair.scope import Scope
from pytest_loop.repair.suspicion import Line

Emptied = Callable[[], None]


class Probe(Protocol):
    """Between `start` and `stop` it counts, and calls `emptied` when the fuel is used up; `fresh` makes its sets."""

    fresh: Callable[[], set[Line]]
    lines: set[Line]
    used: int

    def start(self, fuel: int, emptied: Emptied, *, is_recording: bool) -> None: ...

    def stop(self) -> None: ...


class Traced:
    """Counts lines, by `sys.settrace`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.fresh: Callable[[], set[Line]] = set
        self.lines: set[Line] = set()
        self.used = 0
        self._fuel = 0
        self._emptied: Emptied = _nothing
        self._local: Callable[[FrameType, str, Any], Any] = self._count
        self._before: Any = None

    def start(self, fuel: int, emptied: Emptied, *, is_recording: bool) -> None:
        self.lines, self.used, self._fuel, self._emptied = self.fresh(), 0, fuel, emptied
        self._local = self._record if is_recording else self._count
        self._before = sys.gettrace()
        sys.settrace(self._call)

    def stop(self) -> None:
        sys.settrace(self._before)

    def _call(self, frame: FrameType, event: str, _: Any) -> Any:
        if self._scope.file(frame.f_code.co_filename) is None:
            return None
        return self._local(frame, event, None)

    def _count(self, _frame: FrameType, _event: str, _: Any) -> Any:
        self.used += 1
        if self.used > self._fuel:
            self._emptied()
        return self._count

    def _record(self, frame: FrameType, event: str, _: Any) -> Any:
        self.used += 1
        if event == "line":
            self.lines.add((str(self._scope.file(frame.f_code.co_filename)), frame.f_lineno))
        if self.used > self._fuel:
            self._emptied()
        return self._record


class Monitored:
    """Counts jumps and calls, by `sys.monitoring`."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._api = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        self._tool = next((one for one in (4, 3, 2) if self._api.get_tool(one) is None), 4)
        self.fresh: Callable[[], set[Line]] = set
        self.lines: set[Line] = set()
        self.used = 0
        self._fuel = 0
        self._emptied: Emptied = _nothing
        self._is_recording = False

    def start(self, fuel: int, emptied: Emptied, *, is_recording: bool) -> None:
        self.lines, self.used, self._fuel, self._emptied = self.fresh(), 0, fuel, emptied
        api, events = self._api, self._api.events
        if api.get_tool(self._tool) is None:
            self._is_recording = is_recording
            api.use_tool_id(self._tool, "pytest-loop-repair")
            api.register_callback(self._tool, events.PY_START, self._call)
            api.register_callback(self._tool, events.JUMP, self._jump)
            api.register_callback(self._tool, events.LINE, self._line)
        api.set_events(self._tool, events.PY_START)

    def stop(self) -> None:
        self._api.set_events(self._tool, 0)

    def _call(self, code: CodeType, _: int) -> Any:
        if self._scope.file(code.co_filename) is None:
            return self._api.DISABLE
        events = self._api.events
        wanted = events.JUMP | (events.LINE if self._is_recording else 0)
        if not self._api.get_local_events(self._tool, code) & wanted:
            self._api.set_local_events(self._tool, code, wanted)
        return self._spend()

    def _jump(self, _code: CodeType, _from: int, _to: int) -> Any:
        return self._spend()

    def _line(self, code: CodeType, line: int) -> Any:
        self.lines.add((str(self._scope.file(code.co_filename)), line))

    def _spend(self) -> None:
        self.used += 1
        if self.used > self._fuel:
            self._emptied()


def _nothing() -> None:
    os._exit(70)


def probe(scope: Scope) -> Probe:
    """The best there is in this Python."""
    return Monitored(scope) if sys.version_info >= (3, 12) else Traced(scope)
