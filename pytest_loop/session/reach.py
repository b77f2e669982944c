"""Record which files of the project each test executes.

Code in child processes is not seen.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Protocol

import pytest

from pytest_loop.session.locations import Locations

# Tests with the paths of all files that each of them executes.
Reach = list[tuple[list[str], list[str]]]
# Whether repeated calls cost nothing.
IS_CHEAP = sys.version_info >= (3, 12)
_TOOLS = (4, 3)  # ids of `sys.monitoring` that are reserved for no kind of tool


class CallTracer(Protocol):
    """Call a function with the code of each function that starts, at least once after each `restart`."""

    def start(self, on_call: Callable[[CodeType], object]) -> bool:
        """Start, and return whether this is possible."""

    def restart(self) -> None:
        """Report every function again."""


class MonitoringTracer:
    """Trace calls with `sys.monitoring`, from Python 3.12 on: a repeated call costs nothing."""

    def __init__(self) -> None:
        self._api: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # new in Python 3.12

    def start(self, on_call: Callable[[CodeType], object]) -> bool:
        tool = next((tool for tool in _TOOLS if self._api.get_tool(tool) is None), None)
        if tool is None:
            return False

        def report(code: CodeType, _offset: int) -> Any:
            on_call(code)
            return self._api.DISABLE

        event = self._api.events.PY_START
        self._api.use_tool_id(tool, "pytest-loop-reach")
        self._api.register_callback(tool, event, report)
        self._api.set_events(tool, event)
        return True

    def restart(self) -> None:
        self._api.restart_events()


class ProfileTracer:
    """Trace calls with `sys.setprofile`: each call takes longer."""

    def start(self, on_call: Callable[[CodeType], object]) -> bool:
        if sys.getprofile() is not None:
            return False

        def report(frame: FrameType, event: str, _argument: object) -> None:
            if event == "call":
                on_call(frame.f_code)

        threading.setprofile(report)
        sys.setprofile(report)
        return True

    def restart(self) -> None:
        """Do nothing: every call is reported."""


class ReachRecorder:
    """The plugin of one process that records the reach of its tests.

    A test reaches also what the setup of its fixtures executes, even if this happened for an earlier test.
    """

    def __init__(self, root: Path) -> None:
        self._locations = Locations(root)
        self._root = os.path.realpath(root)
        self._paths: dict[str, str] = {}
        self._executed: set[str] = set()
        self._fixtures: defaultdict[str, set[str]] = defaultdict(set)
        self._tests: dict[str, tuple[set[str], list[str]]] = {}
        self._tracer: CallTracer = MonitoringTracer() if IS_CHEAP else ProfileTracer()

    def start(self) -> bool:
        """Record until the process ends; return whether this is possible."""
        return self._tracer.start(lambda code: self._executed.add(code.co_filename))

    @contextmanager
    def _record(self, executed: set[str]) -> Iterator[None]:
        """Add the files that are executed meanwhile to `executed`, and to what an outer recording collects."""
        outer, self._executed = self._executed, set()
        self._tracer.restart()
        try:
            yield
        finally:
            executed |= self._executed
            outer |= self._executed
            self._executed = outer

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        executed: set[str] = set()
        self._tests[item.nodeid] = executed, list(getattr(item, "fixturenames", ()))
        with self._record(executed):
            return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        with self._record(self._fixtures[fixturedef.argname]):
            return (yield)

    @property
    def reach(self) -> Reach:
        """The reach of all tests so far; tests of the same reach share an entry."""
        groups: defaultdict[frozenset[str], list[str]] = defaultdict(list)
        for nodeid, (executed, fixtures) in self._tests.items():
            names = executed.union(*(self._fixtures[name] for name in fixtures if name in self._fixtures))
            groups[frozenset(filter(None, map(self._find_path, names)))].append(nodeid)
        return [(tests, sorted(paths)) for paths, tests in groups.items()]

    def _find_path(self, name: str) -> str:
        """Return the path of a file relative to the project, or an empty text for other code."""
        if name not in self._paths:
            path = os.path.realpath(name)
            is_inside = not name.startswith("<") and self._locations.is_in_project(path)
            self._paths[name] = Path(os.path.relpath(path, self._root)).as_posix() if is_inside else ""
        return self._paths[name]


def record_reach(config: pytest.Config) -> ReachRecorder | None:
    """Record the reach of this process's tests from now on; return None if another tool is in the way."""
    recorder = ReachRecorder(config.rootpath)
    if not recorder.start():
        return None
    config.pluginmanager.register(recorder, "loop-reach")
    return recorder
