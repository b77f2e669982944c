"""Use any program as an agent (`command:WORDS`), through its standard streams or files."""

from __future__ import annotations

import os
import shlex
import tempfile
from dataclasses import replace
from pathlib import Path

from pytest_loop.agents.presets import PLACEHOLDER, fill_placeholders
from pytest_loop.agents.protocol import (
    MAX_ANSWER_BYTES,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    Watch,
)
from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes.child import (
    CannotStartError,
    Command,
    CommandResult,
    Ending,
    find_program_problem,
    run_command,
)
from pytest_loop.processes.fence import make_supervisor_fence


class CommandAgent:
    """Run a command for every request, in the workspace and without a shell; look for its program from `root`."""

    def __init__(self, words: str, root: Path, name: str = "") -> None:
        self.name = name or f"command:{words}"
        try:
            self.words = shlex.split(words)
        except ValueError as error:
            raise AgentUnavailableError(f"expected a command, found {words!r} ({error})") from None
        if not self.words:
            raise AgentUnavailableError("expected a command after `command:`, found nothing")
        self._placeholders = {name for word in self.words for name in PLACEHOLDER.findall(word)}
        [program] = fill_placeholders(self.words[:1], {"workspace": root})
        if problem := find_program_problem(program, root):
            raise AgentUnavailableError(problem)

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            prompt_file, output_file = Path(folder) / "prompt.md", Path(folder) / "answer"
            result = self._run_command(request, watch, prompt_file, output_file)
            if result.exit_code:
                raise self._make_error(result)
            return AgentReply(text=self._read_answer(result, output_file))

    def close(self) -> None:
        """Do nothing: no state outlives an answer."""

    def _run_command(self, request: AgentRequest, watch: Watch, prompt_file: Path, output_file: Path) -> CommandResult:
        prompt = request.prompt.encode("utf-8", "replace")
        if "prompt_file" in self._placeholders:
            prompt_file.write_bytes(prompt)
            prompt = b""
        values = {
            "prompt_file": prompt_file,
            "output_file": output_file,
            "artifact": request.artifact or "",
            "workspace": request.workspace,
            "step": request.step,
            "iteration": request.iteration,
        }
        command = Command(
            fill_placeholders(self.words, values),
            request.workspace,
            watch.timeout,
            watch.silence,
            make_environment(request),
            prompt,
            on_output=watch.on_output,
        )
        return run_agent_command(command, self.name, watch)

    def _read_answer(self, result: CommandResult, output_file: Path) -> str:
        if "output_file" not in self._placeholders:
            text = None if result.lost_bytes else result.stdout
        elif output_file.is_file():
            content = read_content(output_file)
            text = None if content is None else content.decode("utf-8", "replace")
        else:
            raise AgentError("expected an answer in {output_file}, found none")
        if text is None:
            raise AgentError(f"expected an answer of at most {MAX_ANSWER_BYTES // 1024**2} MB, found more")
        return text

    def _make_error(self, result: CommandResult) -> AgentError:
        output = shorten((result.stderr.strip() or result.stdout.strip()).rpartition("\n")[2], 300)
        return AgentError(f"{self.name} {describe_exit(result.exit_code)}" + (f": {output}" if output else ""))


def run_agent_command(command: Command, name: str, watch: Watch) -> CommandResult:
    """Run the command of an agent; raise an `AgentError` if it did not end by itself."""
    result = run_limited_command(command, watch)
    if result.ending is not Ending.COMPLETED:
        raise watch.make_error(name, result.ending)
    return result


def run_limited_command(command: Command, watch: Watch) -> CommandResult:
    """Run the command of an agent within the limits of a request, and end all its processes."""
    fence = watch.fence or make_supervisor_fence()
    command = replace(command, output_limit=MAX_ANSWER_BYTES, ends_detached=True, fence=fence)
    try:
        return run_command(replace(command, should_continue=watch.should_continue))
    except CannotStartError as error:
        raise AgentUnavailableError(str(error)) from None


def describe_exit(code: int) -> str:
    """Return `ended with exit code 1`, or `ended with signal 9` for -9."""
    return f"ended with exit code {code}" if code >= 0 else f"ended with signal {-code}"


def make_environment(request: AgentRequest) -> dict[str, str]:
    """Return the environment of this process with the variables that describe a request."""
    return {
        **os.environ,
        "PWD": str(request.workspace),  # opencode works in `PWD`, not in its working folder
        "LOOP_STEP": request.step,
        "LOOP_ITERATION": str(request.iteration),
        "LOOP_PHASE": request.phase,
        "LOOP_ARTIFACT": str(request.artifact or ""),
        "LOOP_WORKSPACE": str(request.workspace),
    }


def read_content(path: Path | None) -> bytes | None:
    """Return the bytes of a file; None if it is missing, too large, or a pipe or device that could block."""
    if path is None or not path.is_file() or path.stat().st_size > MAX_ANSWER_BYTES:
        return None
    return path.read_bytes()
