"""Use a function of the project as an agent (`python:module:callable`), in a process that lives as long as the run."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import symtable
import sys
import uuid
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from threading import Lock

from pytest_loop.agents.command_agent import describe_exit
from pytest_loop.agents.protocol import (
    MAX_ANSWER_BYTES,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    Watch,
)
from pytest_loop.core.model.vocabulary import Step
from pytest_loop.processes import child, process_marks
from pytest_loop.processes.fence import Fence
from pytest_loop.processes.fenced_process import FencedProcess, open_process
from pytest_loop.processes.pipes import Pipes

_MAX_LAST_CHUNKS = 64
# A module that uses one of these may define names that do not occur in its source.
_DYNAMIC_NAMES = frozenset({"__getattr__", "exec", "globals", "setattr", "vars"})
_MAX_LINE_BYTES = 8 * MAX_ANSWER_BYTES  # one character may take six bytes in JSON
# Not `-m`, which puts the working folder first on the path, where a `json.py` would replace the standard library's.
_SERVE = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    "from pytest_loop.agents.python_server import main; main(*sys.argv[1:])"
)


class PythonAgent:
    """Call the function `MODULE:NAME` in a process that keeps its globals; PREPARE has a second, parallel process."""

    def __init__(self, reference: str, root: Path, name: str = "") -> None:
        module, _, function = reference.partition(":")
        if not module or not function:
            raise AgentUnavailableError(f"expected python:module:callable, found 'python:{reference}'")
        self.name = name or f"python:{reference}"
        command = [sys.executable, "-c", _SERVE, module, function]
        self._caller = _Caller(self.name, command, root)
        self._prepare_caller = _Caller(self.name, command, root)
        spec = _find_module(module, root)
        if spec is None:
            raise AgentUnavailableError(
                f"cannot import {module}: no module named {module.partition('.')[0]!r} "
                "(modules are found from the root of the project)"
            )
        if problem := _find_problem(module, function, spec):
            raise AgentUnavailableError(f"{self.name}: {problem}")

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        caller = self._prepare_caller if request.step == Step.PREPARE.value else self._caller
        return caller.answer(request, watch)

    def close(self) -> None:
        self._caller.close()
        self._prepare_caller.close()


class _Caller:
    """Start a process at the first request, and send it one request at a time."""

    def __init__(self, name: str, command: list[str], root: Path) -> None:
        self.name = name
        self._command = command
        self._root = root
        self._lock = Lock()
        self._server: _ServerProcess | None = None

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        with self._lock:
            if self._server is None:
                self._server = _ServerProcess(self._command, self._root, request.workspace, watch.fence)
            answer = self._ask(self._server, request, watch)
        if isinstance(answer, AgentError):
            raise answer
        return answer

    def close(self) -> None:
        busy_server = self._server
        if not self._lock.acquire(timeout=child.GRACE_PERIOD):
            if busy_server is not None:
                busy_server.kill()  # the thread that still reads from the process closes it
            return
        try:
            server, self._server = self._server, None
            if server is not None:
                server.finish()
        finally:
            self._lock.release()

    def _ask(self, server: _ServerProcess, request: AgentRequest, watch: Watch) -> AgentReply | AgentError:
        """Return the function's reply or its error; end the process before raising any other error."""
        deadline = child.Deadline(watch.timeout, watch.silence, watch.should_continue)
        try:
            return self._parse_answer(server.ask(_encode_request(request), deadline, watch.on_output), server, watch)
        except BaseException:
            self._server = None
            server.close()
            raise

    def _parse_answer(
        self, answer: bytes | child.Ending, server: _ServerProcess, watch: Watch
    ) -> AgentReply | AgentError:
        if isinstance(answer, child.Ending):
            raise watch.make_error(self.name, answer)
        if len(answer) > _MAX_LINE_BYTES:
            raise AgentError(f"expected an answer of at most {MAX_ANSWER_BYTES // 1024**2} MB, found more")
        if not answer.endswith(b"\n"):
            raise AgentError(f"{self.name} {describe_exit(server.wait())} while it was working")
        try:
            data = json.loads(answer)
            if "unavailable" in data:
                return AgentUnavailableError(f"{self.name}: {data['unavailable']}")
            return AgentError(f"{self.name}: {data['error']}") if "error" in data else AgentReply(**data["reply"])
        except (ValueError, TypeError, KeyError):
            raise AgentError(f"{self.name} gave an answer that cannot be read") from None


def _find_module(module: str, root: Path) -> ModuleSpec | None:
    """Find a module of the project, or else an installed module, without importing it; for a submodule, its package."""
    package = module.partition(".")[0]
    with contextlib.suppress(ValueError):  # no importable name
        return PathFinder.find_spec(package, [str(root)]) or importlib.util.find_spec(package)
    return None


def _find_problem(module: str, function: str, spec: ModuleSpec) -> str:
    """Return the reason why a module cannot define a function; empty if it may. Do not read submodules."""
    if "." in module or not spec.origin or not spec.origin.endswith(".py"):
        return ""
    try:
        source = importlib.util.decode_source(Path(spec.origin).read_bytes())
        names = set(symtable.symtable(source, spec.origin, "exec").get_identifiers())
    except (SyntaxError, ValueError) as error:
        return f"cannot import {module}: {type(error).__name__}: {error}"
    except OSError:
        return ""
    if function.partition(".")[0] in names or names & _DYNAMIC_NAMES or "import *" in source:
        return ""
    return f"{module} has no callable {function}"


class _ServerProcess:
    """The process that calls the function: requests go to its standard input, answers come through another pipe."""

    def __init__(self, command: list[str], root: Path, workspace: Path, fence: Fence | None) -> None:
        self._mark = uuid.uuid4().hex
        self._answers, child_end = os.pipe()
        environment = {"PYTEST_LOOP_ROOT": str(root), "PYTEST_LOOP_ANSWERS": str(child_end)}
        try:
            self._process = open_process(
                command,
                fence,
                cwd=workspace,
                env=process_marks.add_mark({**os.environ, **environment}, self._mark),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(child_end,),
            )
        except OSError as error:
            os.close(self._answers)
            raise AgentUnavailableError(f"cannot start Python in {workspace}: {error.strerror}") from None
        finally:
            os.close(child_end)

    def ask(self, line: bytes, deadline: child.Deadline, on_output: Callable[[bytes], None]) -> bytes | child.Ending:
        """Return the answer line (incomplete if the process ended), or the reason to end the process."""
        answer = bytearray()

        def read(data: bytes) -> None:
            deadline.reset_silence()
            on_output(data)

        with Pipes() as pipes:
            pipes.write_to(self._process.stdin.fileno(), line)  # type: ignore[union-attr]  # a pipe
            pipes.read_from(self._process.stdout.fileno(), read)  # type: ignore[union-attr]  # a pipe
            pipes.read_from(self._answers, answer.extend)
            while not answer.endswith(b"\n") and len(answer) <= _MAX_LINE_BYTES and self._process.poll() is None:
                pipes.transfer(child.POLL_INTERVAL)
                if ending := deadline.find_ending():
                    return ending
            for _ in range(_MAX_LAST_CHUNKS):  # read the output before the answer or the end
                if not pipes.transfer(0):
                    break
        return bytes(answer)

    def wait(self) -> int:
        return self._process.wait()

    def finish(self) -> None:
        """Wait a short time for the process to end by itself, then close it."""
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]  # a pipe
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(child.GRACE_PERIOD)
        self.close()

    def close(self) -> None:
        try:
            self.kill()
        finally:
            for stream in (self._process.stdin, self._process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()  # type: ignore[union-attr]  # a pipe
            os.close(self._answers)

    def kill(self) -> None:
        """End the process and its descendants; leave its pipes open for a thread that still reads from them."""
        try:
            child.end_group(self._process)
        finally:
            if not isinstance(self._process, FencedProcess):
                process_marks.end_marked_processes(self._mark)


def _encode_request(request: AgentRequest) -> bytes:
    fields = {**vars(request), "critique": [issue.model_dump(mode="json") for issue in request.critique]}
    del fields["repair_task"]  # it has a function, which JSON cannot represent
    return json.dumps(fields, default=str).encode() + b"\n"
