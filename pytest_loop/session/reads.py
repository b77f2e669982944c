"""Record which files of the project a session reads, and which code of the project asked for them.

Files that C code or child processes open are not seen.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pytest_loop.session.channel import Channel
from pytest_loop.session.locations import Locations
from pytest_loop.session.reach import ReachRecorder, record_reach

_OUTPUT = "loop_reads"
_EVENTS = frozenset({"open", "os.listdir", "os.scandir"})
# Code that only imports is no reader of a folder: an import lists the folders in which it searches.
_IMPORT_SYSTEM = "<frozen importlib"
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
Read = tuple[str, str]


class ReadRecorder:
    """The plugin of one process of a session; with xdist, workers hand their reads to the controller.

    A read is a pair of paths: a file in the project, and its reader. The reader is the innermost code of the project on
    the stack; its path is empty if pytest or a plugin reads the file. An import reads the source file; code of the
    project that lists a folder reads the folder.
    """

    def __init__(
        self, config: pytest.Config, get_channel: Callable[[], Channel | None], reach: ReachRecorder | None
    ) -> None:
        self._config = config
        self._reach = reach
        self._get_channel = get_channel
        self._locations = Locations(config.rootpath)
        self._root = os.path.realpath(config.rootpath)
        self._reads: set[Read] = set()
        self._opened_to_write: set[str] = set()
        self._readers: dict[str, str] = {}

    def start(self) -> None:
        """Observe until the process ends: an audit hook cannot be removed."""
        sys.addaudithook(self._observe)

    def _observe(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event not in _EVENTS:
            return
        path, _, flags = arguments if event == "open" else (*arguments, None, None)
        if not isinstance(path, (str, bytes)):
            return
        try:
            full_path = os.path.realpath(os.fsdecode(path))
        except (OSError, ValueError):
            return
        if not self._locations.is_in_project(full_path):
            return
        if isinstance(flags, int) and flags & _WRITE_FLAGS:
            self._opened_to_write.add(full_path)
            return
        frame = sys._getframe(1)
        reader = self._find_reader(frame)
        if event == "open" or (reader and not frame.f_code.co_filename.startswith(_IMPORT_SYSTEM)):
            self._reads.add((full_path, reader))

    def _find_reader(self, frame: FrameType | None) -> str:
        while frame is not None:
            name = frame.f_code.co_filename
            if name not in self._readers:
                self._readers[name] = name if self._locations.is_in_project(name) else ""
            if reader := self._readers[name]:
                return reader
            frame = frame.f_back
        return ""

    @property
    def reads(self) -> list[Read]:
        """The reads so far, with paths relative to the project."""
        return sorted((self._make_relative(path), self._make_relative(reader)) for path, reader in self._reads)

    @property
    def opened_to_write(self) -> list[str]:
        """The files of the project that were opened for writing, with paths relative to the project."""
        return sorted(self._make_relative(path) for path in self._opened_to_write)

    @property
    def module_folders(self) -> list[str]:
        """The folders of the project in which Python searches modules, in the order of the search."""
        folders = (os.path.realpath(path) for path in sys.path)
        return list(dict.fromkeys(self._make_relative(path) for path in folders if self._locations.is_in_project(path)))

    @property
    def plugin_files(self) -> list[str]:
        """The modules of the project that pytest has loaded as plugins."""
        files = (getattr(plugin, "__file__", None) for _, plugin in self._config.pluginmanager.list_name_plugin())
        return sorted(self._make_relative(file) for file in files if file and self._locations.is_in_project(file))

    def _make_relative(self, path: str) -> str:
        """Return a path relative to the project, `.` for the project itself; an empty path stays empty."""
        return Path(os.path.relpath(os.path.realpath(path), self._root)).as_posix() if path else ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        message: dict[str, object] = {
            "reads": self.reads,
            "opened_to_write": self.opened_to_write,
            "module_folders": self.module_folders,
            "plugin_files": self.plugin_files,
            "reach": self._reach.reach if self._reach else [],
        }
        if channel := self._get_channel():
            channel.send(**message)
        elif hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_OUTPUT] = message

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        message = getattr(node, "workeroutput", {}).get(_OUTPUT)
        if message and (channel := self._get_channel()):
            channel.send(**message)


def record_reads(config: pytest.Config, get_channel: Callable[[], Channel | None], *, with_reach: bool) -> None:
    """Record from now on which files this process reads and, `with_reach`, which its tests execute."""
    recorder = ReadRecorder(config, get_channel, record_reach(config) if with_reach else None)
    config.pluginmanager.register(recorder, "loop-reads")
    recorder.start()
