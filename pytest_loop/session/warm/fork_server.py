"""The process that warm sessions are forked from: pytest and its plugins are loaded, nothing of the project is.

It waits where pytest would load the first conftest file. A forked session goes on from there; a forked worker of xdist
goes back to where Python had started. Whatever the server depends on is looked at while a session gets ready, and only
then the session may go on.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import selectors
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.session.locations import Places
from pytest_loop.session.warm import fork, xdist_workers
from pytest_loop.session.warm.fingerprint import Fingerprint
from pytest_loop.session.warm.learning import Learning
from pytest_loop.session.warm.messages import receive, send
from pytest_loop.session.warm.prepared import PATCHING, threads

VARIABLE = "PYTEST_LOOP_SERVER"
ORDERED = "PYTEST_LOOP_SESSION"
# Of Linux: whose parent has gone becomes our child; whose parent has gone dies.
_ADOPT, _DIE = 36, 1


class Leave(BaseException):
    """Go back to the start of the process, and do this instead."""

    def __init__(self, job: Callable[[], int]) -> None:
        self.job = job


@dataclass
class Child:
    """A process that was forked: a session, or a worker of it; `wire` is for what it wants of the server."""

    pid: int
    wire: socket.socket
    handle: int | None = None


@dataclass
class Server:
    """Forks a session at a time, and ends whatever is left of it; `judges` is the module that knows what judges."""

    driver: socket.socket
    places: Places
    learning: Learning
    judges: Any
    children: list[Child] = field(default_factory=list)
    # Workers that are forked ahead, and how many this session has asked for: the next one will want as many.
    spare: list[Child] = field(default_factory=list)
    asked: int = 0

    def open(self, config: pytest.Config, door: object) -> None:
        """Get ready, and wait for orders; only a forked process returns."""
        reason = self._unfit(config, door)
        if "xdist" in sys.modules:
            xdist_workers.get_ready()
        self.fingerprint = Fingerprint(self.places, _settings(config))
        self.fingerprint.add(sys.modules.values())
        self.prctl = ctypes.CDLL(None).prctl
        self.prctl(_ADOPT, 1, 0, 0, 0)
        self.selector = selectors.PollSelector()  # one that a forked process does not share
        self.selector.register(self.driver, selectors.EVENT_READ, self._hear_driver)
        gc.collect()
        gc.freeze()
        send(self.driver, {"reason": reason})
        while not self.selector.select()[0][0].data():
            pass

    def _unfit(self, config: pytest.Config, door: object) -> str:
        """Why sessions cannot be forked from here."""
        first = config.hook.pytest_load_initial_conftests.get_hookimpls()[-1].plugin
        if first is not door:
            return f"the plugin {config.pluginmanager.get_name(first)} begins before a session can be forked"
        if threads() > 1:
            return "a plugin has started a thread"
        if found := PATCHING & sys.modules.keys():
            return f"{min(found)} changes what modules do that are loaded already"
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and self.places.is_own(path):
                return f"a plugin has loaded {module.__name__}, which is a part of the project"
        return ""

    # -- orders

    def _hear_driver(self) -> bool:
        """An order; says whether this is a session now."""
        try:
            message, files = receive(self.driver)
        except EOFError:
            self._end_all()
            fork.end(0)
        if "run" in message:
            return self._run(message["run"], files)
        self._end_all()
        send(self.driver, {"ended": True})
        self.fingerprint.add(self.learning.go_on(self.driver, self._end_all))
        return False

    def _run(self, order: dict[str, Any], files: list[int]) -> bool:
        child = self._fork(0)
        if child is None:
            out, err, channel = files
            os.set_inheritable(channel, True)
            fork.connect((None, out, err))
            fork.become({ORDERED: f"{channel} {order['path']}", **order["variables"]}, self.places)
            self.learning.prepared.offer()
            if "xdist" in sys.modules:
                xdist_workers.install(self.driver)
            self._heard()  # that it may go on; a session of a server that is out of date ends here
            if order["words"] == sys.argv[1:]:
                return True
            sys.argv[1:] = order["words"]
            raise Leave(pytest.main)
        _close(files)
        if stale := self.fingerprint.changed():
            self._end_all()
            send(self.driver, {"stale": stale})
            return False
        with suppress(OSError):
            send(child.wire, {"go": True})
        child.handle = os.pidfd_open(child.pid)
        self.selector.register(child.handle, selectors.EVENT_READ, lambda: self._has_ended(child))
        send(self.driver, {"pid": child.pid})
        expected, self.asked = min(self.asked, os.cpu_count() or 1), 0
        self.spare = [self._worker(child) for _ in range(expected)]
        return False

    def _worker(self, boss: Child) -> Child:
        """A worker of a session, which waits for its order."""
        worker = self._fork(boss.pid)
        if worker is not None:
            return worker
        message, files = self._heard()
        fork.connect(files)
        os.environ.clear()
        fork.become(message["variables"], self.places)
        self.learning.prepared.offer()
        sys.argv[:] = ["-c"]
        raise Leave(_worker)

    def _heard(self) -> tuple[dict[str, Any], list[int]]:
        """What a forked process is told before it begins; one that is not needed any more is gone."""
        try:
            return receive(self.driver)
        except EOFError:
            os._exit(0)

    def _run_worker(self, order: dict[str, Any], files: list[int], boss: Child) -> bool:
        self.asked += 1
        worker = self.spare.pop() if self.spare else self._worker(boss)
        with suppress(OSError):
            send(worker.wire, order, files)
        _close(files)  # a session whose worker has died meanwhile hears nothing but the end
        with suppress(OSError):
            send(boss.wire, {"pid": worker.pid})
        return False

    def _hear_child(self, child: Child) -> bool:
        """What a session wants: another worker, or to say what it has imported."""
        try:
            message, files = receive(child.wire)
        except EOFError:
            self.selector.unregister(child.wire)
            child.wire.close()
            return False
        if "worker" in message:
            return self._run_worker(message["worker"], files, child)
        _close(files)
        self.learning.hear(message.get("modules", ()))
        self.learning.hear_rules(message.get("rules", {}))
        return False

    # -- processes

    def _fork(self, group: int) -> Child | None:
        """A child; in the child, None."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = os.getpid()
        pid = os.fork()
        if pid:
            theirs.close()
            child = Child(pid, ours)
            self.children.append(child)
            with suppress(OSError):
                os.setpgid(pid, group or pid)
            self.selector.register(ours, selectors.EVENT_READ, lambda: self._hear_child(child))
            return child
        self.prctl(_DIE, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != server:
            os._exit(1)
        with suppress(OSError):
            os.setpgid(0, group)
        ours.close()
        self._forget_all()
        self.selector.close()
        self.driver.close()
        self.driver = theirs
        return None

    def _has_ended(self, child: Child) -> bool:
        """The session is over; its number stays taken until the driver has heard of it."""
        self.selector.unregister(child.handle or 0)
        found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        status = found.si_status if found else signal.SIGKILL
        send(self.driver, {"exit": status if found and found.si_code == os.CLD_EXITED else -status})
        return False

    def _end_all(self) -> None:
        """Nobody of the session is left: whose parent has gone is a child of this process."""
        self._forget_all()
        with suppress(ChildProcessError):
            while True:
                for pid in _children():
                    os.kill(pid, signal.SIGKILL)
                os.waitpid(-1, 0)

    def _forget_all(self) -> None:
        for child in self.children:
            for channel in (child.wire, child.handle):
                with suppress(KeyError, ValueError):
                    self.selector.unregister(channel)  # type: ignore[arg-type]
            child.wire.close()
            if child.handle is not None:
                os.close(child.handle)
        self.children, self.spare = [], []

    def leave(self, code: int) -> None:
        """The end of a forked process: tell the server what was imported from outside of the project."""
        modules = [name for name in self.learning.prepared.asked if fork.is_installed(name, self.places)]
        with suppress(OSError):
            send(self.driver, {"modules": modules, "rules": self.judges.rule_files()})
        fork.end(code)


def serve(config: pytest.Config, door: Any, judges: Any) -> None:
    """Everything but the project is loaded; only a forked session comes back from here."""
    told = json.loads(os.environ.pop(VARIABLE))
    driver = socket.socket(fileno=told["wire"])
    driver.set_inheritable(False)
    places = Places(Path(told["root"]))
    judges.get_ready()
    door.server = Server(driver, places, Learning(places, told["since"], judges.read), judges)
    door.server.open(config, door)
    config.pluginmanager.unregister(door)


def _worker() -> int:
    """What `python -c` does for a worker of xdist."""
    exec(eval(sys.stdin.readline()))  # noqa: S102, S307
    return 0


def _settings(config: pytest.Config) -> list[str]:
    """The files that pytest has read."""
    words = [word[1:] for word in map(str, config.invocation_params.args) if word.startswith("@")]
    return [*([str(config.inipath)] if config.inipath else []), *words]


def _children() -> list[int]:
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()]


def _close(files: list[int]) -> None:
    for descriptor in files:
        os.close(descriptor)
