"""Sessions that are forked from this very process, which has loaded pytest and its plugins, but not the project."""

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

from pytest_loop.processes import child
from pytest_loop.processes.process_marks import add_mark
from pytest_loop.session.warm import fork
from pytest_loop.session.warm.child import Likeness

_MOMENT = 0.02


class Here:
    """Forks a session where that can be done: for one that judges once, a server would cost more than it saves."""

    is_possible = sys.platform == "linux"
    is_ready = True

    def start(self, order: child.Command, mark: str) -> child.Child:
        """A session with the words of the order."""
        out, their_out = os.pipe()
        err, their_err = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # the other thread only reads from a pipe
            pid = os.fork()
        if pid == 0:
            _become(order, add_mark(order.env or os.environ, mark), (their_out, their_err))
        os.close(their_out)
        os.close(their_err)
        return Forked(pid, out, err)

    def broke(self) -> None:
        """There is no server that could."""

    def close(self) -> None:
        """Nothing is left."""


def _become(order: child.Command, environment: Mapping[str, str], streams: Sequence[int]) -> NoReturn:
    """This process is the session from now on."""
    code = 3
    try:
        os.setsid()
        _hear_signals()
        fork.connect((os.open(os.devnull, os.O_RDONLY), *streams))
        os.environ.clear()
        os.chdir(order.cwd)
        here = str(order.cwd)
        sys.path[:] = [path for path in sys.path if path not in ("", here)] + [here]
        sys.argv[1:] = list(order.words)[3:]
        fork.become(environment, None)
        code = int(pytest.main())
    finally:
        fork.end(code)


def _hear_signals() -> None:
    """As an interpreter does that has just begun; what is ignored stays so."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


class Forked(Likeness):
    """A session that this process has forked."""

    def __init__(self, pid: int, stdout: int, stderr: int) -> None:
        super().__init__(pid, stdout, stderr)
        self._ended = threading.Event()

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended."""
        left = timeout
        while (code := self.poll()) is None:
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired("session", timeout or 0)
            self._ended.wait(_MOMENT)
            left = None if left is None else left - _MOMENT
        return code
