"""`python:module:callable`: a function of the project, in a process of its own for the length of the run."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_loop.agents.protocol import (
    MAX_ANSWER_BYTES,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    Watch,
)
from pytest_loop.processes import child, process_marks
from pytest_loop.processes.pipes import Pipes

_LAST_PIECES = 64
_LONGEST = 8 * MAX_ANSWER_BYTES  # as JSON, in which a character may take six
# Not `-m`: the working folder comes first in its path then, and a `json.py` there would be taken for Python's own.
_SERVE = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    "from pytest_loop.agents.python_server import main; main(*sys.argv[1:])"
)


class PythonAgent:
    """Keeps a process that imports the module once and answers one request after another; it keeps its globals."""

    is_serial = True

    def __init__(self, reference: str, root: Path, name: str = "") -> None:
        module, _, function = reference.partition(":")
        if not module or not function:
            raise AgentUnavailableError(f"expected python:module:callable, found 'python:{reference}'")
        self.name = name or f"python:{reference}"
        self._module = module
        self._command = [sys.executable, "-c", _SERVE, module, function]
        self._root = root
        self._lock = Lock()
        self._server: _Server | None = None

    def find_problem(self) -> str:
        """What is wrong with the module, as far as can be seen without running any of it."""
        top = self._module.partition(".")[0]
        with contextlib.suppress(ValueError):  # a name that nobody could import
            if importlib.util.find_spec(top) or PathFinder.find_spec(top, [str(self._root)]):
                return ""
        return f"cannot import {self._module}: no module named {top!r} (modules are found from the root of the project)"

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        with self._lock:
            if self._server is None:
                self._server = _Server(self._command, self._root, request.workspace)
            data = self._asked(self._server, request, watch)
        if error := data.get("unavailable"):
            raise AgentUnavailableError(f"{self.name}: {error}")
        if error := data.get("error"):
            raise AgentError(f"{self.name}: {error}")
        return AgentReply.model_validate(data["reply"])

    def close(self) -> None:
        working = self._server
        if not self._lock.acquire(timeout=child.GRACE_PERIOD):  # another thread still hears it, and clears up itself
            if working is not None:
                working.stop()
            return
        try:
            server, self._server = self._server, None
            if server is not None:
                server.leave()
        finally:
            self._lock.release()

    def _asked(self, server: _Server, request: AgentRequest, watch: Watch) -> dict[str, Any]:
        """The answer; a process that gave none, in whatever way, is ended, and the next request starts a new one."""
        patience = child.Deadline(watch.timeout, watch.silence, watch.should_continue)
        try:
            return self._read(server.ask(_line(request), patience, watch.on_output), server, watch)
        except BaseException:
            self._server = None
            server.end()
            raise

    def _read(self, answer: bytes | child.Ending, server: _Server, watch: Watch) -> dict[str, Any]:
        if isinstance(answer, child.Ending):
            raise watch.make_error(self.name, answer)
        if len(answer) > _LONGEST:
            raise AgentError(f"expected an answer of at most {MAX_ANSWER_BYTES // 1024**2} MB, found more")
        if not answer.endswith(b"\n"):
            raise AgentError(f"{self.name} {server.ended()} while it was working")
        try:
            data: dict[str, Any] = json.loads(answer)
            if not {"error", "unavailable"} & data.keys():
                AgentReply.model_validate(data["reply"])
        except (ValueError, AttributeError, KeyError):
            raise AgentError(f"{self.name} gave an answer that cannot be read") from None
        return data


class _Server:
    """The process: requests go to its standard input, answers come through a pipe of their own."""

    def __init__(self, command: list[str], root: Path, workspace: Path) -> None:
        self._mark = uuid.uuid4().hex
        self._answers, theirs = os.pipe()
        environment = {"PYTEST_LOOP_ROOT": str(root), "PYTEST_LOOP_ANSWERS": str(theirs)}
        try:
            self._process = subprocess.Popen(
                command,
                cwd=workspace,
                env=process_marks.add_mark({**os.environ, **environment}, self._mark),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except OSError as error:
            os.close(self._answers)
            raise AgentUnavailableError(f"cannot start Python in {workspace}: {error.strerror}") from None
        finally:
            os.close(theirs)

    def ask(self, line: bytes, patience: child.Deadline, heard: Callable[[bytes], None]) -> bytes | child.Ending:
        """The answer with its end of line, as much as there is of it, or why it had to end."""
        answer = bytearray()

        def spoke(data: bytes) -> None:
            patience.reset_silence()
            heard(data)

        with Pipes() as wires:
            wires.write_to(self._process.stdin.fileno(), line)  # type: ignore[union-attr]
            wires.read_from(self._process.stdout.fileno(), spoke)  # type: ignore[union-attr]
            wires.read_from(self._answers, answer.extend)
            while not answer.endswith(b"\n") and len(answer) <= _LONGEST and self._process.poll() is None:
                wires.transfer(child.POLL_INTERVAL)
                if ending := patience.find_ending():
                    return ending
            all(wires.transfer(0) for _ in range(_LAST_PIECES))  # what it said before it answered, or before it ended
        return bytes(answer)

    def ended(self) -> str:
        code = self._process.wait()
        return f"ended with exit code {code}" if code >= 0 else f"ended with signal {-code}"

    def leave(self) -> None:
        """Let it end by itself, but not for long."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(child.GRACE_PERIOD)
        self.end()

    def end(self) -> None:
        try:
            self.stop()
        finally:
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]
            os.close(self._answers)

    def stop(self) -> None:
        """End the process and what it started; our ends of its pipes stay open for who still hears it."""
        try:
            child.end_group(self._process)
        finally:
            process_marks.end_marked_processes(self._mark)


def _line(request: AgentRequest) -> bytes:
    data = {
        "step": request.step,
        "prompt": base64.b64encode(request.prompt.encode("utf-8", "surrogatepass")).decode(),
        "workspace": str(request.workspace),
        "artifact": str(request.artifact) if request.artifact else None,
        "iteration": request.iteration,
        "phase": request.phase,
        "critique": [issue.model_dump(mode="json") for issue in request.critique],
        "schema": request.schema,
        "key": request.key,
    }
    return json.dumps(data).encode() + b"\n"
