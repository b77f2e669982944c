"""The fork server: a process that has loaded pytest and its plugins, but nothing of the project, and forks sessions.

The server stops where pytest would load the first conftest file. A forked session goes on from there; a forked worker
of xdist goes back to the start of the process. While a session gets ready, the server checks whether anything that it
has loaded has changed; only then may the session go on.
"""

from __future__ import annotations

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
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.processes.process_tree import adopt_orphans, die_with_parent, end_children
from pytest_loop.session.interference import list_namespaces
from pytest_loop.session.judging_modules import load_judging_modules
from pytest_loop.session.locations import Locations
from pytest_loop.session.runner import SESSION_VARIABLE
from pytest_loop.session.warm import xdist_workers
from pytest_loop.session.warm.fingerprint import Fingerprint
from pytest_loop.session.warm.forked_process import connect_streams, exit_process, reset_process
from pytest_loop.session.warm.import_trial import PATCHING_PACKAGES, count_threads
from pytest_loop.session.warm.launcher import SERVER_VARIABLE
from pytest_loop.session.warm.messages import close_files, receive_message, send_message
from pytest_loop.session.warm.preloader import Preloader

# Modules that many sessions import after the fork.
_LATE_MODULES = (
    "encodings.utf_8_sig",
    "faulthandler",
    "getpass",
    "pdb",
    "pytest_loop.workloads.items",
)


class Restart(BaseException):
    """Unwind to the start of the process, and run `main` there."""

    def __init__(self, main: Callable[[], int]) -> None:
        self.pytest_loop_main = main


@dataclass
class ForkedChild:
    """A forked session or worker, and the connection for its requests."""

    pid: int
    connection: socket.socket
    pidfd: int | None = None


@dataclass
class Server:
    """Fork one session at a time, and end every process that it leaves behind.

    `driver` is the connection to the process that drives the run; in a forked process, to the server.
    """

    driver: socket.socket
    locations: Locations
    preloader: Preloader
    children: list[ForkedChild] = field(default_factory=list)

    def run(self, config: pytest.Config, fork_point: object) -> None:
        """Serve requests; only a forked session returns."""
        reason = self._find_problem(config, fork_point)
        if "xdist" in sys.modules:
            xdist_workers.warm_caches()
        self.fingerprint = Fingerprint(self.locations, _find_settings(config))
        self.fingerprint.add_modules(sys.modules.values())
        adopt_orphans()
        self.selector = selectors.PollSelector()  # unlike epoll, it is not shared with forked processes
        self.selector.register(self.driver, selectors.EVENT_READ, self._handle_driver)
        gc.collect()
        gc.freeze()
        send_message(self.driver, {"reason": reason})
        is_session = False
        while not is_session:
            is_session = self.selector.select()[0][0].data()

    def _find_problem(self, config: pytest.Config, fork_point: object) -> str:
        """Return why sessions cannot be forked from here; empty if they can."""
        first = config.hook.pytest_load_initial_conftests.get_hookimpls()[-1].plugin
        if first is not fork_point:
            return f"the plugin {config.pluginmanager.get_name(first)} begins before a session can be forked"
        if count_threads() > 1:
            return "a plugin has started a thread"
        if patching := PATCHING_PACKAGES & sys.modules.keys():
            return f"{min(patching)} changes what modules do that are loaded already"
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if isinstance(path, str) and self.locations.is_in_project(path):
                return f"a plugin has loaded {module.__name__}, which is a part of the project"
        return ""

    # -- messages; each handler returns whether this process is a forked session

    def _handle_driver(self) -> bool:
        try:
            message, files = receive_message(self.driver)
        except EOFError:
            self._end_children()
            exit_process(0)
        if "run" in message:
            return self._run_session(message["run"], files)
        self._end_children()
        send_message(self.driver, {"ended": True})
        self.fingerprint.add_modules(self.preloader.load_while_idle(self.driver, self._end_children))
        return False

    def _run_session(self, request: dict[str, Any], files: list[int]) -> bool:
        child = self._fork(0)
        if child is None:
            self._become_session(request, files)
            return True
        close_files(files)
        if change := self.fingerprint.find_change():
            self._end_children()
            send_message(self.driver, {"stale": change})
            return False
        with suppress(OSError):
            send_message(child.connection, {"go": True})
        child.pidfd = os.pidfd_open(child.pid)
        self.selector.register(child.pidfd, selectors.EVENT_READ, lambda: self._handle_exit(child))
        send_message(self.driver, {"pid": child.pid})
        return False

    def _become_session(self, request: dict[str, Any], files: list[int]) -> None:
        stdout, stderr, channel, key_end = files
        os.set_inheritable(channel, True)
        connect_streams((None, stdout, stderr))
        order = f"{channel} {key_end} {request['path']}"
        reset_process({SESSION_VARIABLE: order, **request["variables"]}, self.locations)
        self.preloader.store.install_finder()
        if "xdist" in sys.modules:
            xdist_workers.patch_execnet_to_fork(self.driver)
        try:
            receive_message(self.driver)  # the server allows it to go on
        except EOFError:
            os._exit(0)
        if request["arguments"] != sys.argv[1:]:
            sys.argv[1:] = request["arguments"]
            raise Restart(pytest.main)

    def _handle_child(self, child: ForkedChild) -> bool:
        """Handle the request of a session: a worker, or the list of modules that it imported."""
        try:
            message, files = receive_message(child.connection)
        except EOFError:
            self.selector.unregister(child.connection)
            child.connection.close()
            return False
        if "worker" in message:
            self._run_worker(message["worker"], files, child)
        else:
            close_files(files)
            self.preloader.add_request(message.get("modules", ()))
        return False

    def _run_worker(self, request: dict[str, Any], files: list[int], session: ForkedChild) -> None:
        worker = self._fork(session.pid)
        if worker is not None:
            close_files(files)
            with suppress(OSError):
                send_message(session.connection, {"pid": worker.pid})
            return
        connect_streams(files)
        os.environ.clear()
        reset_process(request["variables"], self.locations)
        self.preloader.store.install_finder()
        sys.argv[:] = ["-c"]
        raise Restart(_run_execnet)

    # -- processes

    def _fork(self, group: int) -> ForkedChild | None:
        """Fork; return the child, or None in the child."""
        server_end, child_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        server = os.getpid()
        pid = os.fork()
        if pid:
            child_end.close()
            child = ForkedChild(pid, server_end)
            self.children.append(child)
            with suppress(OSError):
                os.setpgid(pid, group or pid)
            self.selector.register(server_end, selectors.EVENT_READ, lambda: self._handle_child(child))
            return child
        die_with_parent()
        if os.getppid() != server:
            os._exit(1)
        with suppress(OSError):
            os.setpgid(0, group)
        server_end.close()
        self._forget_children()
        self.selector.close()
        self.driver.close()
        self.driver = child_end
        return None

    def _handle_exit(self, child: ForkedChild) -> bool:
        """Report the exit of a session; its pid stays reserved until the driver ends the session."""
        self.selector.unregister(child.pidfd or 0)
        result = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        status = result.si_status if result else signal.SIGKILL
        send_message(self.driver, {"exit": status if result and result.si_code == os.CLD_EXITED else -status})
        return False

    def _end_children(self) -> None:
        self._forget_children()
        end_children()

    def _forget_children(self) -> None:
        for child in self.children:
            for source in (child.connection, child.pidfd):
                with suppress(KeyError, ValueError):
                    self.selector.unregister(source)  # type: ignore[arg-type]  # None raises ValueError
            child.connection.close()
            if child.pidfd is not None:
                os.close(child.pidfd)
        self.children = []

    def exit_child(self, code: int) -> None:
        """End a forked process after it has sent the server the installed modules that it imported."""
        modules = [name for name in self.preloader.store.missed if _is_installed(name, self.locations)]
        with suppress(OSError):
            send_message(self.driver, {"modules": modules})
        exit_process(code)


def serve(config: pytest.Config, fork_point: Any) -> None:
    """Run the fork server, which becomes `fork_point.server`; only a forked session returns."""
    settings = json.loads(os.environ.pop(SERVER_VARIABLE))
    driver = socket.socket(fileno=settings["connection"])
    driver.set_inheritable(False)
    locations = Locations(Path(settings["root"]))
    load_judging_modules()
    for name in _LATE_MODULES:
        import_module(name)
    _build_models()
    list_namespaces()
    fork_point.server = Server(driver, locations, Preloader(locations, settings["installed_before"]))
    fork_point.server.run(config, fork_point)
    config.pluginmanager.unregister(fork_point)


def _build_models() -> None:
    """Build pydantic models now: they are built lazily, which costs each session 30 ms."""
    from pytest_loop.core.model.rules import Criteria, Evidence, Finding, Rule, SessionPlan
    from pytest_loop.core.model.session_order import SessionOrder
    from pytest_loop.core.workload.measurement import CaseResult

    for model in (SessionOrder, SessionPlan, Criteria, Rule, Evidence, Finding, CaseResult):
        model.model_rebuild()


def _run_execnet() -> int:
    """Do what `python -c` does for a worker of xdist: run the script that execnet sends."""
    exec(eval(sys.stdin.readline()))  # noqa: S102, S307 - execnet sends a quoted Python script
    return 0


def _find_settings(config: pytest.Config) -> list[str]:
    """Return the files that pytest has read its settings from."""
    arguments = [argument[1:] for argument in map(str, config.invocation_params.args) if argument.startswith("@")]
    return [*([str(config.inipath)] if config.inipath else []), *arguments]


def _is_installed(name: str, locations: Locations) -> bool:
    """Return whether a loaded module belongs to the interpreter or its environment."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    origin = getattr(spec, "origin", None)
    return isinstance(origin, str) and (origin in ("built-in", "frozen") or locations.is_installed(origin))
