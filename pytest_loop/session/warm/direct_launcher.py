"""A launcher that forks sessions from this process, which has loaded pytest and its plugins, but not the project."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from typing import NoReturn

import pytest

from pytest_loop.processes.child import Child, Command
from pytest_loop.processes.fence import Fence
from pytest_loop.processes.process_marks import add_mark
from pytest_loop.session.warm import forked_process
from pytest_loop.session.warm.forked_process import ForkedProcess

_POLL_INTERVAL = 0.02


class DirectLauncher:
    """Fork a session from this process: for a single session, a fork server would cost more than it saves."""

    is_possible = sys.platform == "linux"

    def has_loaded_pytest(self, _fence: Fence | None) -> bool:
        return True

    def start(self, command: Command, mark: str) -> Child:
        stdout, child_stdout = os.pipe()
        stderr, child_stderr = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the other thread only reads from a pipe
            pid = os.fork()
        if pid == 0:
            _run_session(command, add_mark(command.env or os.environ, mark), (child_stdout, child_stderr))
        os.close(child_stdout)
        os.close(child_stderr)
        return _DirectProcess(pid, stdout, stderr)

    def recover(self) -> None:
        """Do nothing: there is no server that could die."""

    def close(self) -> None:
        """Do nothing: there is no server to end."""


def _run_session(command: Command, environment: Mapping[str, str], streams: Sequence[int]) -> NoReturn:
    """Run the session in this fork, and end with it."""
    code = 3
    try:
        os.setsid()
        _restore_signals()
        forked_process.connect_streams((os.open(os.devnull, os.O_RDONLY), *streams))
        os.environ.clear()
        os.chdir(command.cwd)
        folder = str(command.cwd)
        sys.path[:] = [path for path in sys.path if path not in ("", folder)] + [folder]
        sys.argv[1:] = list(command.words)[3:]
        forked_process.reset_process(environment, None)
        code = int(pytest.main())
    finally:
        forked_process.exit_process(code)


def _restore_signals() -> None:
    """Restore the handlers of a new interpreter; ignored signals stay ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


class _DirectProcess(ForkedProcess):
    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        remaining = timeout
        pause = threading.Event()  # unlike time.sleep(), it lets an interrupt through at once
        while (code := self.poll()) is None:
            if remaining is not None and remaining <= 0:
                raise subprocess.TimeoutExpired("session", timeout or 0)
            pause.wait(_POLL_INTERVAL)
            remaining = None if remaining is None else remaining - _POLL_INTERVAL
        return code
