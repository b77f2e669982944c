"""Trace the project's code: executed lines, and fuel, a count of steps that ends endless loops alike on every machine.

From Python 3.12 on, `sys.monitoring` traces the project's code only. Before that, `sys.settrace` sees every call.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Protocol

from pytest_loop.repair.editable_files import EditableFiles
from pytest_loop.repair.suspicion import Line

FUEL_OF_TEST = 300_000  # limit for a test whose usual amount is unknown
OnFuelExhausted = Callable[[], None]


class Tracer(Protocol):
    """Count the fuel spent between `start` and `stop`; call `on_exhausted` when none is left.

    While recording, collect the executed lines in `lines`, a set that `make_line_set` makes.
    """

    make_line_set: Callable[[], set[Line]]
    lines: set[Line]
    spent_fuel: int

    def start(self, fuel: int, on_exhausted: OnFuelExhausted, *, is_recording: bool) -> None: ...

    def stop(self) -> None: ...


class SettraceTracer:
    """Count lines with `sys.settrace`."""

    def __init__(self, files: EditableFiles) -> None:
        self._files = files
        self.make_line_set: Callable[[], set[Line]] = set
        self.lines: set[Line] = set()
        self.spent_fuel = 0
        self._fuel = 0
        self._on_exhausted: OnFuelExhausted = _exit
        self._trace_line: Callable[[FrameType, str, Any], Any] = self._count
        self._previous: Any = None

    def start(self, fuel: int, on_exhausted: OnFuelExhausted, *, is_recording: bool) -> None:
        self.lines, self.spent_fuel, self._fuel, self._on_exhausted = self.make_line_set(), 0, fuel, on_exhausted
        self._trace_line = self._record if is_recording else self._count
        self._previous = sys.gettrace()
        sys.settrace(self._trace_call)

    def stop(self) -> None:
        sys.settrace(self._previous)

    def _trace_call(self, frame: FrameType, event: str, _: Any) -> Any:
        if self._files.find_file(frame.f_code.co_filename) is None:
            return None
        return self._trace_line(frame, event, None)

    def _count(self, _frame: FrameType, _event: str, _: Any) -> Any:
        self.spent_fuel += 1
        if self.spent_fuel > self._fuel:
            self._on_exhausted()
        return self._count

    def _record(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            self.lines.add((str(self._files.find_file(frame.f_code.co_filename)), frame.f_lineno))
        self._count(frame, event, None)
        return self._record


class MonitoringTracer:
    """Count jumps and calls with `sys.monitoring`."""

    def __init__(self, files: EditableFiles) -> None:
        self._files = files
        self._api = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # new in Python 3.12
        self._tool = next((tool for tool in (4, 3, 2) if self._api.get_tool(tool) is None), 4)
        self.make_line_set: Callable[[], set[Line]] = set
        self.lines: set[Line] = set()
        self.spent_fuel = 0
        self._fuel = 0
        self._on_exhausted: OnFuelExhausted = _exit
        self._is_recording = False

    def start(self, fuel: int, on_exhausted: OnFuelExhausted, *, is_recording: bool) -> None:
        self.lines, self.spent_fuel, self._fuel, self._on_exhausted = self.make_line_set(), 0, fuel, on_exhausted
        api, events = self._api, self._api.events
        if api.get_tool(self._tool) is None:
            self._is_recording = is_recording
            api.use_tool_id(self._tool, "pytest-loop-repair")
            api.register_callback(self._tool, events.PY_START, self._trace_call)
            api.register_callback(self._tool, events.JUMP, self._trace_jump)
            api.register_callback(self._tool, events.LINE, self._trace_line)
        api.set_events(self._tool, events.PY_START)

    def stop(self) -> None:
        self._api.set_events(self._tool, 0)

    def _trace_call(self, code: CodeType, _: int) -> Any:
        if self._files.find_file(code.co_filename) is None:
            return self._api.DISABLE
        events = self._api.events
        local = events.JUMP | (events.LINE if self._is_recording else 0)
        if not self._api.get_local_events(self._tool, code) & local:
            self._api.set_local_events(self._tool, code, local)
        return self._spend()

    def _trace_jump(self, _code: CodeType, _from: int, _to: int) -> Any:
        return self._spend()

    def _trace_line(self, code: CodeType, line: int) -> Any:
        self.lines.add((str(self._files.find_file(code.co_filename)), line))

    def _spend(self) -> None:
        self.spent_fuel += 1
        if self.spent_fuel > self._fuel:
            self._on_exhausted()


def _exit() -> None:
    os._exit(70)


def make_tracer(files: EditableFiles) -> Tracer:
    """Make the best tracer for this Python."""
    return MonitoringTracer(files) if sys.version_info >= (3, 12) else SettraceTracer(files)
