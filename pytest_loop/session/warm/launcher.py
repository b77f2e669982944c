"""Launch warm sessions: start the fork server, and request forks from it."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_loop.processes import child, process_marks
from pytest_loop.processes.fence import Fence
from pytest_loop.processes.fenced_process import open_process
from pytest_loop.processes.process_tree import can_find_children
from pytest_loop.session.bytecode import BYTECODE_VARIABLE
from pytest_loop.session.runner import SESSION_VARIABLE, ColdLauncher, Launcher, LauncherDiedError
from pytest_loop.session.warm.forked_process import ForkedProcess
from pytest_loop.session.warm.messages import close_files, receive_message, send_message

SERVER_VARIABLE = "PYTEST_LOOP_SERVER"
_MAX_DEATHS = 2
# Starts like a cold session, and stops where pytest would load conftest files.
_START_SCRIPT = """\
import os, sys
here = os.getcwd()
sys.path[:] = [path for path in sys.path if path not in ("", here)] + [here]
import pytest

class ForkPoint:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        from pytest_loop.session.warm.fork_server import serve
        serve(early_config, self)
        return (yield)

fork_point = ForkPoint()
main = None
try:
    code = pytest.main(sys.argv[1:], plugins=[fork_point])
except BaseException as restart:
    main = getattr(restart, "pytest_loop_main", None)
    if main is None:
        raise
if main:
    code = main()
fork_point.server.exit_child(code)
"""
# Variables that may differ between sessions of one server.
_SESSION_VARIABLES = frozenset({BYTECODE_VARIABLE, "PYTHONDONTWRITEBYTECODE", process_marks.MARK, SESSION_VARIABLE})


def make_launcher(
    mode: str, arguments: tuple[str, ...], root: Path, installed_before: float, print_line: Callable[[str], None]
) -> Launcher:
    """Return the launcher for `--loop-session`: cold, warm, or auto (warm where possible).

    Modules installed before the time `installed_before` are trusted, because no agent had worked yet.
    """
    if mode == "cold":
        return ColdLauncher()
    return WarmLauncher(arguments, root, installed_before, mode == "warm", print_line)


class _ForkedSession(ForkedProcess):
    """A session that the server has forked."""

    ends_descendants = True

    def __init__(self, server: ForkServer, pid: int, stdout: int, stderr: int) -> None:
        super().__init__(pid, stdout, stderr)
        self._server = server
        self._is_cleaned_up = False

    def poll(self) -> int | None:
        if self.returncode is None and self._server.has_message(0):
            self.returncode = self._server.receive()["exit"]
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the session, and end every process that it has started."""
        if self.returncode is None:
            if not self._server.has_message(timeout):
                raise subprocess.TimeoutExpired("session", timeout or 0)
            self.returncode = int(self._server.receive()["exit"])
        if not self._is_cleaned_up:
            self._is_cleaned_up = True
            self._server.end_session()
        return self.returncode


class ForkServer:
    """The fork server's process and the connection to it."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        folder: Path,
        root: Path,
        installed_before: float,
        environment: Mapping[str, str],
        fence: Fence | None = None,
    ) -> None:
        self.environment = environment
        self.fence = fence
        self._connection, server_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {"connection": server_end.fileno(), "root": str(root), "installed_before": installed_before}
        with server_end:
            self._process = open_process(
                [sys.executable, "-c", _START_SCRIPT, *arguments],
                fence,
                has_own_pids=False,  # the pids of sessions are sent to this process
                cwd=folder,
                env={**environment, SERVER_VARIABLE: json.dumps(settings)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(server_end.fileno(),),
            )
        self.pid = self._process.pid

    def has_message(self, timeout: float | None) -> bool:
        """Return whether the server has sent something, or has died."""
        return bool(select.select([self._connection], [], [], timeout)[0])

    def receive(self) -> dict[str, Any]:
        try:
            return receive_message(self._connection)[0]
        except (EOFError, OSError):
            raise LauncherDiedError("the server of warm sessions died") from None

    def wait_until_ready(self, timeout: float) -> str:
        """Return why the server cannot fork sessions; empty if it can."""
        if not self.has_message(timeout):
            return f"the server that they are forked from was not ready after {timeout:g} s"
        try:
            return str(self.receive()["reason"])
        except LauncherDiedError:
            return "the server that they are forked from could not start"

    def fork(
        self, arguments: list[str], variables: Mapping[str, str], path: str, pipes: tuple[int, int]
    ) -> child.Child | None:
        """Fork a session; return None if the server has died, or a file that it loaded has changed."""
        stdout, child_stdout = os.pipe()
        stderr, child_stderr = os.pipe()
        request = {"arguments": arguments, "variables": dict(variables), "path": path}
        try:
            send_message(self._connection, {"run": request}, (child_stdout, child_stderr, *pipes))
            reply = self.receive()
        except (OSError, LauncherDiedError):
            reply = {}
        finally:
            close_files((child_stdout, child_stderr))
        if "pid" in reply:
            return _ForkedSession(self, int(reply["pid"]), stdout, stderr)
        close_files((stdout, stderr))
        return None

    def end_session(self) -> None:
        """End every process of the session that is left."""
        try:
            send_message(self._connection, {"end": True})
        except OSError:
            raise LauncherDiedError("the server of warm sessions died") from None
        self.receive()

    def close(self) -> None:
        """Close the connection, which ends the server."""
        self._connection.close()
        try:
            self._process.wait(child.GRACE_PERIOD)
        except subprocess.TimeoutExpired:
            child.end_group(self._process)


@dataclass
class WarmLauncher:
    """Fork sessions from a server where possible; else start them cold, or raise an error if `is_required`."""

    arguments: tuple[str, ...]
    root: Path
    installed_before: float
    is_required: bool = False
    print_line: Callable[[str], None] = lambda _line: None
    unavailable_reason: str = ""
    _server: ForkServer | None = None
    _deaths: int = 0

    @property
    def pid(self) -> int | None:
        """The process of the current server."""
        return self._server.pid if self._server else None

    def has_loaded_pytest(self, fence: Fence | None) -> bool:
        return self._server is not None and self._server.fence == fence

    def start(self, command: child.Command, mark: str) -> child.Child:
        for _ in range(2):  # the second server is new: a file that the first one loaded has changed
            server = self._ensure_server(command)
            if server is None:
                break
            environment = process_marks.add_mark(command.env or {}, mark)
            changed = {name: value for name, value in environment.items() if server.environment.get(name) != value}
            channel, key_end, path = changed.pop(SESSION_VARIABLE).split(" ", 2)
            if process := server.fork(list(command.words[3:]), changed, path, (int(channel), int(key_end))):
                return process
            self.close()
        if self.is_required:
            raise child.CannotStartError(f"--loop-session=warm: {self.unavailable_reason}")
        return child.start_process(command, mark)

    def recover(self) -> None:
        """Replace a server that died; after two deaths, sessions start cold."""
        self._deaths += 1
        self.close()
        if self._deaths >= _MAX_DEATHS:
            self._give_up("the server that they are forked from died again and again")

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None

    def _give_up(self, reason: str) -> None:
        self.close()
        self.unavailable_reason = reason
        self.print_line(f"sessions start cold: {reason}")

    def _ensure_server(self, command: child.Command) -> ForkServer | None:
        """Return a server that fits the command, started if necessary; None if there can be none."""
        if not self.unavailable_reason and (reason := find_system_problem()):
            self._give_up(reason)
        if self.unavailable_reason:
            return None
        environment = command.env or {}
        if self._server is not None and not _can_serve(self._server, command):
            self.close()
        if self._server is None:
            variables = {name: value for name, value in environment.items() if name != SESSION_VARIABLE}
            self._server = ForkServer(
                self.arguments, command.cwd, self.root, self.installed_before, variables, command.fence
            )
            if reason := self._server.wait_until_ready(command.timeout):
                self._give_up(reason)
        return self._server


def find_system_problem() -> str:
    """Return why this system cannot fork sessions; empty if it can."""
    if sys.platform != "linux":
        return f"forked processes cannot be trusted on {sys.platform}"
    if not (hasattr(os, "pidfd_open") and can_find_children()):
        return "the system does not show which processes are whose children"
    return ""


def _can_serve(server: ForkServer, command: child.Command) -> bool:
    """Return whether a server has the environment and the fence of a command."""
    has_environment = _drop_session_variables(server.environment) == _drop_session_variables(command.env or {})
    return has_environment and server.fence == command.fence


def _drop_session_variables(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _SESSION_VARIABLES}
