"""`command:WORDS`: any program as an agent, by its standard streams or files."""

from __future__ import annotations

import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pytest_loop.agents.protocol import (
    MAX_ANSWER_BYTES,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    Watch,
)
from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes import child

_PLACEHOLDER = re.compile(r"\{(prompt_file|output_file|artifact|workspace|step|iteration)\}")


class CommandAgent:
    """Runs a command for every request, in the workspace and without a shell."""

    is_serial = False

    def __init__(self, words: str, name: str = "") -> None:
        self.name = name or f"command:{words}"
        try:
            self.words = shlex.split(words)
        except ValueError as error:
            raise AgentUnavailableError(f"expected a command, found {words!r} ({error})") from None
        if not self.words:
            raise AgentUnavailableError("expected a command after `command:`, found nothing")
        self._uses = {name for word in self.words for name in _PLACEHOLDER.findall(word)}

    def find_problem(self, workspace: Path) -> str | None:
        """Why the program cannot be run, as far as that can be seen before the run begins."""
        return child.find_program_problem(_filled(self.words[0], {"workspace": workspace}), workspace)

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        before = read_content(request.artifact)
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            files = {"prompt_file": Path(folder) / "prompt.md", "output_file": Path(folder) / "answer"}
            done = self._done(request, watch, files)
            if done.ending is not child.Ending.COMPLETED:
                raise watch.make_error(self.name, done.ending)
            if done.exit_code and read_content(request.artifact) == before:
                raise AgentError(self._ended(done))
            if done.exit_code:  # an exit code is no verdict: what was edited is judged by the rules
                watch.on_output(f"{self._ended(done)}; what it edited is judged all the same\n".encode())
                return AgentReply()
            return AgentReply(text=_read(files["output_file"]) if "output_file" in self._uses else _whole(done))

    def close(self) -> None:
        """Nothing is kept between requests."""

    def _done(self, request: AgentRequest, watch: Watch, files: dict[str, Path]) -> child.CommandResult:
        prompt = request.prompt.encode("utf-8", "replace")
        if "prompt_file" in self._uses:
            files["prompt_file"].write_bytes(prompt)
        order = child.Command(
            self._filled_words(request, files),
            request.workspace,
            watch.timeout,
            watch.silence,
            make_environment(request),
            b"" if "prompt_file" in self._uses else prompt,
            output_limit=MAX_ANSWER_BYTES,
            on_output=watch.on_output,
            should_continue=watch.should_continue,
            is_thorough=True,
        )
        try:
            return child.run_command(order)
        except child.CannotStartError as error:
            raise AgentUnavailableError(str(error)) from None

    def _filled_words(self, request: AgentRequest, files: Mapping[str, Path]) -> list[str]:
        values = {
            **files,
            "artifact": request.artifact or "",
            "workspace": request.workspace,
            "step": request.step,
            "iteration": request.iteration,
        }
        return [_filled(word, values) for word in self.words]

    def _ended(self, done: child.CommandResult) -> str:
        """How it ended, and the last thing that it said."""
        how = f"exit code {done.exit_code}" if done.exit_code > 0 else f"signal {-done.exit_code}"
        said = (done.stderr.strip() or done.stdout.strip()).rpartition("\n")[2]
        last = shorten(said, 300)
        return f"{self.name} ended with {how}" + (f": {last}" if last else "")


def _filled(word: str, values: Mapping[str, object]) -> str:
    """Placeholders replaced by their values; other braces stay."""
    return _PLACEHOLDER.sub(lambda found: str(values.get(found[1], found[0])), word)


def make_environment(request: AgentRequest) -> dict[str, str]:
    """Ours, and the words that say what is asked."""
    return {
        **os.environ,
        "LOOP_STEP": request.step,
        "LOOP_ITERATION": str(request.iteration),
        "LOOP_PHASE": request.phase,
        "LOOP_ARTIFACT": str(request.artifact or ""),
        "LOOP_WORKSPACE": str(request.workspace),
    }


def read_content(path: Path | None) -> bytes | None:
    """What is in a file; a pipe or a device that somebody put in its place is not read."""
    if path is None or not path.is_file() or path.stat().st_size > MAX_ANSWER_BYTES:
        return None
    return path.read_bytes()


def _whole(done: child.CommandResult) -> str:
    """Standard output, of which nothing may be missing."""
    if done.lost_bytes:
        raise AgentError(_TOO_LONG)
    return done.stdout


def _read(path: Path) -> str:
    if not path.is_file():
        raise AgentError("expected an answer in {output_file}, found none")
    data = read_content(path)
    if data is None:
        raise AgentError(_TOO_LONG)
    return data.decode("utf-8", "replace")


_TOO_LONG = f"expected an answer of at most {MAX_ANSWER_BYTES // 1024**2} MB, found more"
