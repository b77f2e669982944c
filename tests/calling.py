"""Pytest as a person calls it, hundreds of times: forked from a process that has imported what every call imports.

An interpreter takes half a second for that. What is forked is otherwise as `python -m pytest` begins. A test whose
processes are measured, or have another Python in mind, gets an interpreter of its own.
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

# The plugins themselves are left to pytest, which rewrites their assertions.
IMPORTED = (
    *(f"_pytest.{name}" for name in default_plugins),
    "pytest_loop.cli.start",
    "pytest_loop.session.judge",
    "pytest_loop.rules.items",
    "pytest_loop.workloads.items",
    "execnet",
)
# Sessions load this plugin and xdist: the other plugins of this environment cost more than the rest.
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "pytest_loop.plugin,xdist.plugin"}
# What an interpreter heeds when it starts, and pytest when it looks for plugins.
_EARLY = ("PYTHON", "COVERAGE", "LC_", "LANG", "TZ", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD")
# Nobody compiles what every session needs again and again.
NOT_KEPT = ("PYTHONDONTWRITEBYTECODE",)
_MOST = 1 << 20


class Caller:
    """Forks calls of pytest, as long as their variables are in what Python heeds as those of a quick session here."""

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
        kept = {name: value for name, value in os.environ.items() if name not in NOT_KEPT}
        variables = {**kept, **QUICK, **(more or {})}
        self._early = _early(variables)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, __file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, env=variables, pass_fds=(theirs.fileno(),))
        self._wire = ours

    def close(self) -> None:
        self._wire.close()
        self._process.wait()

    def call(
        self, *words: str, folder: Path, said: str = "", more: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """What `python -m pytest` came to; `said` is what it can read, `more` are further variables."""
        command = [sys.executable, "-m", "pytest", *words]
        env = {**os.environ, **(more or {})}
        if _early(env) != self._early:
            return subprocess.run(
                command, cwd=folder, env=env, input=said, capture_output=True, text=True, check=False, timeout=300
            )
        with _file(said) as stdin, _file() as out, _file() as err:
            order = {"words": words, "folder": str(folder), "variables": env}
            code = self._forked(order, [file.fileno() for file in (stdin, out, err)])
            return subprocess.CompletedProcess(command, code, _text(out), _text(err))

    def _forked(self, order: dict[str, Any], streams: list[int]) -> int:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                socket.send_fds(self._wire, [json.dumps(order).encode()], [theirs.fileno(), *streams])
            pid = int(ours.recv(_MOST))
            if not select.select([ours], [], [], 300)[0]:
                os.kill(pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired(order["words"], 300)
            return int(ours.recv(_MOST))


def _early(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in variables.items() if name.startswith(_EARLY)}


def _file(text: str = "") -> IO[str]:
    file = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - who asks for it closes it
    file.write(text)
    file.seek(0)
    return file


def _text(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


# -- the other end


def _serve(wire: socket.socket) -> dict[str, Any]:
    """Fork for every order; only a forked process comes back, with its order."""
    selector = selectors.DefaultSelector()
    selector.register(wire, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.data is not None:
                pid, asker = key.data
                selector.unregister(key.fd)
                os.close(key.fd)
                asker.send(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
                asker.close()
                continue
            data, files, _, _ = socket.recv_fds(wire, _MOST, 4)
            if not data:
                os._exit(0)
            if (pid := os.fork()) == 0:
                wire.close()
                selector.close()
                _connect(files)
                return json.loads(data)  # type: ignore[no-any-return]
            asker = socket.socket(fileno=files[0])
            for descriptor in files[1:]:
                os.close(descriptor)
            asker.send(str(pid).encode())
            selector.register(os.pidfd_open(pid), selectors.EVENT_READ, (pid, asker))


def _connect(files: list[int]) -> None:
    for number, descriptor in enumerate(files[1:]):
        os.dup2(descriptor, number)
    for descriptor in files:
        os.close(descriptor)


def main() -> None:
    sys.path.pop(0)
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    order = _serve(socket.socket(fileno=int(sys.argv[1])))
    os.environ.clear()
    os.environ.update(order["variables"])
    os.chdir(order["folder"])
    sys.path.insert(0, order["folder"])
    sys.argv[1:] = order["words"]
    importlib.invalidate_caches()
    runpy.run_module("pytest", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
