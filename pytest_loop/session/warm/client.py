"""Sessions that are forked from a server, which has loaded all that a session needs but the project."""

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

from pytest_loop.errors import LoopError
from pytest_loop.processes import child as process
from pytest_loop.processes import process_marks
from pytest_loop.session.bytecode import VARIABLE as COMPILED
from pytest_loop.session.warm.child import Likeness
from pytest_loop.session.warm.messages import receive, send

VARIABLE = "PYTEST_LOOP_SERVER"
ORDERED = "PYTEST_LOOP_SESSION"
MOST_DEATHS = 2
# As a cold session begins; ours is imported by pytest, as every plugin is, and stops where conftest files would follow.
_START = """\
import os, sys
here = os.getcwd()
sys.path[:] = [path for path in sys.path if path not in ("", here)] + [here]
import pytest

class Door:
    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_load_initial_conftests(self, early_config):
        from pytest_loop.session.warm import preload
        from pytest_loop.session.warm.fork_server import serve
        serve(early_config, self, preload)
        return (yield)

door = Door()
job = None
try:
    code = pytest.main(sys.argv[1:], plugins=[door])
except BaseException as ending:
    job = getattr(ending, "job", None)
    if job is None:
        raise
door.server.leave(job() if job else code)
"""
# What may differ from session to session without another server.
_OF_ONE_SESSION = frozenset({COMPILED, "PYTHONDONTWRITEBYTECODE", process_marks.MARK})


class ServerDiedError(LoopError):
    """The server went away while a session was at work."""


class Forked(Likeness):
    """A session that the server has forked."""

    ends_descendants = True

    def __init__(self, server: Server, pid: int, stdout: int, stderr: int) -> None:
        super().__init__(pid, stdout, stderr)
        self._server = server
        self._is_buried = False

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        if self.returncode is None and self._server.has_news(0):
            self.returncode = self._server.hear("exit")
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Until it has ended; nobody that it has started outlives that."""
        if self.returncode is None:
            if not self._server.has_news(timeout):
                raise subprocess.TimeoutExpired("session", timeout or 0)
            self.returncode = self._server.hear("exit")
        if not self._is_buried:
            self._is_buried = True
            self._server.bury()
        return self.returncode


class Server:
    """The process that forks, seen from the run."""

    def __init__(self, words: tuple[str, ...], folder: Path, root: Path, since: float, env: Mapping[str, str]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.environment = env
        told = json.dumps({"wire": theirs.fileno(), "root": str(root), "since": since})
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _START, *words],
                cwd=folder,
                env={**env, VARIABLE: told},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._wire = ours
        self.pid = self._process.pid

    def has_news(self, timeout: float | None) -> bool:
        """Whether the server has said something, or has gone."""
        return bool(select.select([self._wire], [], [], timeout)[0])

    def hear(self, key: str) -> Any:
        """What it says next; raises `ServerDiedError` where that is nothing."""
        return self._hear()[key]

    def _hear(self) -> dict[str, Any]:
        try:
            return receive(self._wire)[0]
        except (EOFError, OSError):
            raise ServerDiedError("the server of warm sessions died") from None

    def reason(self, timeout: float) -> str:
        """Why it cannot fork sessions; empty where it can. Asked once, after the start."""
        if not self.has_news(timeout):
            return f"the server that they are forked from was not ready after {timeout:g} s"
        try:
            return str(self.hear("reason"))
        except ServerDiedError:
            return "the server that they are forked from could not start"

    def fork(self, words: list[str], variables: Mapping[str, str], path: str, channel: int) -> Forked | None:
        """A session; None where something that the server has loaded is no longer as it was."""
        out, their_out = os.pipe()
        err, their_err = os.pipe()
        order = {"words": words, "variables": dict(variables), "path": path}
        try:
            send(self._wire, {"run": order}, (their_out, their_err, channel))
            answer = self._hear()
        except (OSError, ServerDiedError):
            answer = {}
        finally:
            os.close(their_out)
            os.close(their_err)
        if "pid" in answer:
            return Forked(self, int(answer["pid"]), out, err)
        os.close(out)
        os.close(err)
        return None

    def bury(self) -> None:
        """End whatever is left of the session."""
        try:
            send(self._wire, {"end": True})
        except OSError:
            raise ServerDiedError("the server of warm sessions died") from None
        self.hear("ended")

    def close(self) -> None:
        """It ends itself when nobody holds the other end."""
        self._wire.close()
        try:
            self._process.wait(process.GRACE_PERIOD)
        except subprocess.TimeoutExpired:
            process.end_group(self._process)


@dataclass
class Warm:
    """Starts sessions: forked where that is possible, as a new interpreter where it is not."""

    words: tuple[str, ...]
    root: Path
    since: float
    is_needed: bool = False
    say: Callable[[str], None] = lambda _line: None
    reason: str = ""
    _server: Server | None = None
    _deaths: int = 0

    @property
    def pid(self) -> int | None:
        """The process that sessions are forked from now."""
        return self._server.pid if self._server else None

    @property
    def is_ready(self) -> bool:
        """Whether there is a server, which has loaded everything but the project."""
        return self._server is not None

    def start(self, order: process.Command, mark: str) -> process.Child:
        """The process of a session."""
        for _ in range(2):
            server = self._serving(order)
            if server is None:
                break
            env = process_marks.add_mark(order.env or {}, mark)
            changed = {name: value for name, value in env.items() if server.environment.get(name) != value}
            channel, _, path = changed.pop(ORDERED).partition(" ")
            if child := server.fork(list(order.words[3:]), changed, path, int(channel)):
                return child
            self.close()
        if self.is_needed:
            raise process.CannotStartError(f"--loop-session=warm: {self.reason}")
        return process.start_process(order, mark)

    def broke(self) -> None:
        """The server has died at work; where that goes on, sessions start cold."""
        self._deaths += 1
        self.close()
        if self._deaths >= MOST_DEATHS:
            self._give_up("the server that they are forked from died again and again")

    def close(self) -> None:
        """No session is at work any more."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def _give_up(self, reason: str) -> None:
        self.close()
        self.reason = reason
        self.say(f"sessions start cold: {reason}")

    def _serving(self, order: process.Command) -> Server | None:
        if not self.reason and (reason := unfit()):
            self._give_up(reason)
        if self.reason:
            return None
        env = order.env or {}
        if self._server is not None and _lasting(self._server.environment) != _lasting(env):
            self.close()
        if self._server is None:
            own = {name: value for name, value in env.items() if name != ORDERED}
            self._server = Server(self.words, order.cwd, self.root, self.since, own)
            if reason := self._server.reason(order.timeout):
                self._give_up(reason)
        return self._server


def unfit() -> str:
    """Why this system cannot fork sessions."""
    if sys.platform != "linux":
        return f"forked processes cannot be trusted on {sys.platform}"
    if not (hasattr(os, "pidfd_open") and Path(f"/proc/self/task/{os.getpid()}/children").exists()):
        return "the system does not show which processes are whose children"
    return ""


def _lasting(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in _OF_ONE_SESSION and name != ORDERED}
