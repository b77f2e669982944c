"""Run pytest hundreds of times quickly, by forking a process that has imported what every call imports.

An interpreter takes half a second for these imports. Apart from them, a forked process starts like `python -m pytest`.
Tests that measure their processes or use another Python get a new interpreter instead.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from _pytest.config import default_plugins

# Without the plugins themselves: pytest imports them, because it rewrites their assertions.
IMPORTS = (
    *(f"_pytest.{name}" for name in default_plugins),
    "pytest_loop.cli.start",
    "pytest_loop.session.judge",
    "pytest_loop.rules.items",
    "pytest_loop.workloads.items",
    "execnet",
)
# Load only this plugin and xdist: the other plugins of this environment cost more than everything else.
PLUGIN_VARIABLES = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_loop.plugin,xdist.plugin"}
# Without bytecode files every session would compile the same modules again.
REMOVED_VARIABLES = ("PYTHONDONTWRITEBYTECODE",)
# Prefixes of variables that an interpreter reads when it starts, or pytest when it looks for plugins.
_STARTUP_PREFIXES = ("PYTHON", "COVERAGE", "LC_", "LANG", "TZ", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
# Flags that start or resume a run.
_RUN_FLAGS = {"--loop-task", "--loop-manifest", "--loop-resume"}
_MAX_MESSAGE = 1 << 20
_TIMEOUT = 300


class PytestCaller:
    """Fork calls of pytest, or start an interpreter if its start-up variables differ from those of the fork server."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        inherited = {name: value for name, value in os.environ.items() if name not in REMOVED_VARIABLES}
        server_variables = {**inherited, **PLUGIN_VARIABLES, **(variables or {})}
        self._startup_variables = _select_startup_variables(server_variables)
        self._socket, server_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with server_socket:
            command = [sys.executable, __file__, str(server_socket.fileno())]
            self._process = subprocess.Popen(command, env=server_variables, pass_fds=(server_socket.fileno(),))

    def close(self) -> None:
        self._socket.close()
        self._process.wait()

    def call(
        self, *arguments: str, folder: Path, stdin: str = "", variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run `python -m pytest` in the folder with additional environment variables."""
        arguments = (*arguments, *_choose_fence(arguments))
        command = [sys.executable, "-m", "pytest", *arguments]
        env = {**os.environ, **(variables or {})}
        if _select_startup_variables(env) != self._startup_variables:
            return subprocess.run(
                command, cwd=folder, env=env, input=stdin, capture_output=True, text=True, check=False, timeout=_TIMEOUT
            )
        with _open_file(stdin) as stdin_file, _open_file() as out, _open_file() as err:
            order = {"arguments": arguments, "folder": str(folder), "variables": env}
            code = self._fork(order, [file.fileno() for file in (stdin_file, out, err)])
            return subprocess.CompletedProcess(command, code, _read_file(out), _read_file(err))

    def _fork(self, order: dict[str, Any], streams: list[int]) -> int:
        """Send an order to the fork server and return the exit code of the forked process."""
        reply_socket, server_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with reply_socket:
            with server_socket:
                socket.send_fds(self._socket, [json.dumps(order).encode()], [server_socket.fileno(), *streams])
            pid = int(reply_socket.recv(_MAX_MESSAGE))
            if not select.select([reply_socket], [], [], _TIMEOUT)[0]:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(order["arguments"], _TIMEOUT)
            return int(reply_socket.recv(_MAX_MESSAGE))


def _choose_fence(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Turn the fence off unless a test is about it: it needs a second server for warm sessions in every run."""
    names = {argument.partition("=")[0] for argument in arguments}
    return ("--loop-fence=off",) if names & _RUN_FLAGS and "--loop-fence" not in names else ()


def _select_startup_variables(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(_STARTUP_PREFIXES)}


def _open_file(text: str = "") -> IO[str]:
    file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the caller closes it
    file.write(text)
    file.seek(0)
    return file


def _read_file(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


# -- the fork server


def _serve(orders: socket.socket) -> dict[str, Any]:
    """Fork for every order; return only in a forked process, with its order."""
    selector = selectors.DefaultSelector()
    selector.register(orders, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.data is not None:
                pid, reply_socket = key.data
                selector.unregister(key.fd)
                os.close(key.fd)
                reply_socket.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
                reply_socket.close()
                continue
            data, files, _, _ = socket.recv_fds(orders, _MAX_MESSAGE, 4)
            if not data:
                os._exit(0)
            if (pid := os.fork()) == 0:
                orders.close()
                selector.close()
                _replace_streams(files)
                return json.loads(data)  # type: ignore[no-any-return]
            reply_socket = socket.socket(fileno=files[0])
            for descriptor in files[1:]:
                os.close(descriptor)
            reply_socket.send(str(pid).encode())
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, reply_socket))


def _replace_streams(files: list[int]) -> None:
    for number, descriptor in enumerate(files[1:]):
        os.dup2(descriptor, number)
    for descriptor in files:
        os.close(descriptor)


def main() -> None:
    sys.path.pop(0)
    for name in IMPORTS:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    order = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.environ.clear()
    os.environ.update(order["variables"])
    os.chdir(order["folder"])
    sys.path.insert(0, order["folder"])
    sys.argv[1:] = order["arguments"]
    importlib.invalidate_caches()
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
