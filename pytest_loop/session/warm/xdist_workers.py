"""Workers of xdist in sessions of a run: how they begin; the rest of xdist does not know."""

from __future__ import annotations

import inspect
import os
import platform
import select
import signal
import socket
import sys
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

from execnet import gateway_io
from execnet.gateway_base import ExecModel, Popen2IO
from execnet.xspec import XSpec

from pytest_loop.session.warm.messages import receive, send

_PYTHON = "PYTHON"
_CAN_SHIELD = sys.version_info >= (3, 11)
_OURS = frozenset({"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"})


class _Worker:
    """As much of a `Popen` as execnet needs."""

    def __init__(self, server: socket.socket) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        try:
            send(server, {"worker": {"variables": dict(os.environ)}}, (theirs_in, theirs_out, 2))
            message, _ = receive(server)
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self.pid = int(message["pid"])
        self._handle = os.pidfd_open(self.pid)
        self.stdin: IO[bytes] = os.fdopen(ours_in, "wb")
        self.stdout: IO[bytes] = os.fdopen(ours_out, "rb")

    def wait(self) -> int:
        select.select([self._handle], [], [])
        return 0

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)


class _Wires(gateway_io.Popen2IOMaster):
    def __init__(self, worker: _Worker, execmodel: ExecModel) -> None:
        self.popen = worker
        Popen2IO.__init__(self, worker.stdin, worker.stdout, execmodel=execmodel)


def get_ready() -> None:
    """Once, before anybody is forked: import and ask what xdist does in every session; Python remembers."""
    import_module("xdist.dsession")
    platform.platform()
    inspect.getsource(get_ready)


def install(server: socket.socket) -> None:
    """From now on, in this process: a worker on this machine with this interpreter is forked."""
    start = gateway_io.create_io
    before = _interpreter()

    def create_io(spec: XSpec, execmodel: ExecModel) -> Any:
        is_plain = spec.popen and not spec.python and not spec.dont_write_bytecode and not spec.via
        if not is_plain or _interpreter() != before:
            return start(spec, execmodel)
        return _Wires(_Worker(server), execmodel)

    gateway_io.create_io = create_io


def shield() -> None:
    """From now on, in this process: a worker that is started takes nothing of its working folder for Python's own.

    By an option, because a variable would reach whatever tests start, whose scripts import what lies beside them.
    """
    args = gateway_io.popen_args

    def popen_args(spec: XSpec) -> list[str]:
        first, *others = args(spec)
        return [first, *(["-P"] if first == sys.executable and _CAN_SHIELD else []), *others]

    gateway_io.popen_args = popen_args


def _interpreter() -> dict[str, str]:
    """What an interpreter reads when it starts."""
    return {name: value for name, value in os.environ.items() if name.startswith(_PYTHON) and name not in _OURS}
