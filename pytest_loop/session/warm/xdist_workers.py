"""Start xdist workers faster and isolated: patches of execnet for the sessions of a run."""

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

from pytest_loop.session.warm.messages import receive_message, send_message

_HAS_SAFE_PATH_OPTION = sys.version_info >= (3, 11)
# A forked worker applies these itself, so that they need no new interpreter.
_IGNORED_VARIABLES = frozenset({"PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"})


class _ForkedWorker:
    """Minimal Popen interface for a worker that the fork server has forked."""

    def __init__(self, server: socket.socket) -> None:
        worker_stdin, stdin = os.pipe()
        stdout, worker_stdout = os.pipe()
        try:
            message = {"worker": {"variables": dict(os.environ)}}
            send_message(server, message, (worker_stdin, worker_stdout, 2))
            reply, _ = receive_message(server)
        finally:
            os.close(worker_stdin)
            os.close(worker_stdout)
        self.pid = int(reply["pid"])
        self._pidfd = os.pidfd_open(self.pid)
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb")

    def wait(self) -> int:
        select.select([self._pidfd], [], [])
        return 0

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)


class _ForkedWorkerIO(gateway_io.Popen2IOMaster):
    def __init__(self, worker: _ForkedWorker, execmodel: ExecModel) -> None:
        self.popen = worker
        Popen2IO.__init__(self, worker.stdin, worker.stdout, execmodel=execmodel)


def warm_caches() -> None:
    """Import xdist and fill the caches of `platform` and `inspect` before any fork: every session uses them."""
    import_module("xdist.dsession")
    platform.platform()
    inspect.getsource(warm_caches)


def patch_execnet_to_fork(server: socket.socket) -> None:
    """Patch execnet so that the fork server forks local workers of this interpreter.

    Other workers, and those with changed Python variables, still start as processes.
    """
    create_process_io = gateway_io.create_io
    variables = _get_python_variables()

    def create_io(spec: XSpec, execmodel: ExecModel) -> Any:
        is_plain = spec.popen and not spec.python and not spec.dont_write_bytecode and not spec.via
        if not is_plain or _get_python_variables() != variables:
            return create_process_io(spec, execmodel)
        return _ForkedWorkerIO(_ForkedWorker(server), execmodel)

    gateway_io.create_io = create_io


def patch_execnet_to_isolate() -> None:
    """Patch execnet to start workers with `-P`: modules in the working folder cannot hide the standard library.

    PYTHONSAFEPATH would do the same, but scripts that tests start would inherit it.
    """
    make_arguments = gateway_io.popen_args

    def popen_args(spec: XSpec) -> list[str]:
        first, *others = make_arguments(spec)
        return [first, *(["-P"] if first == sys.executable and _HAS_SAFE_PATH_OPTION else []), *others]

    gateway_io.popen_args = popen_args


def _get_python_variables() -> dict[str, str]:
    """Return the environment variables that an interpreter reads at its start."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.startswith("PYTHON") and name not in _IGNORED_VARIABLES
    }
