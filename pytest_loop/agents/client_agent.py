"""An agent that is the command-line client of somebody, called as its preset says."""

from __future__ import annotations

import json
import shlex
import shutil
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_loop.agents.command_agent import make_environment, read_content
from pytest_loop.agents.output_filter import OutputFilter
from pytest_loop.agents.presets import Mode, Preset, Scope, Words, fill_placeholders
from pytest_loop.agents.protocol import (
    MAX_ANSWER_BYTES,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    RateLimitedError,
    Watch,
)
from pytest_loop.agents.strict_schema import make_strict
from pytest_loop.agents.transcripts import READERS, ClientReport, Failure, Transcript
from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes import child

WAITS = (15.0, 30.0, 60.0, 120.0, 240.0)
_EDITING = ("PRODUCE", "REFINE")
_REFUSED = (401, 403)
_LATER = (429, 529)


class ClientAgent:
    """Runs a client for every request, in the workspace; it may edit only where an edit is asked for.

    PRODUCE begins a conversation, and REFINE goes on with it where the client can. A client that must wait is called
    again a little later, as long as the deadline allows. `words` are a model and further arguments.
    """

    is_serial = False

    def __init__(self, preset: Preset, words: str = "", name: str = "", waits: Sequence[float] = WAITS) -> None:
        self.name = name or preset.program
        self.preset = preset
        self.waits = waits
        try:
            more = shlex.split(words)
        except ValueError as error:
            raise AgentUnavailableError(f"expected a model and arguments, found {words!r} ({error})") from None
        self._model = more.pop(0) if more and not more[0].startswith("-") else ""
        self._more = more
        self._sessions: dict[Path, str] = {}
        self._counted: dict[str, ClientReport] = {}
        self._state: Path | None = None
        self._lock = Lock()

    def find_problem(self) -> str | None:
        """Why the client cannot be run."""
        if self.preset.find_program():
            return None
        return f"cannot run {self.preset.program!r}: no such command is installed here"

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        deadline = time.monotonic() + watch.timeout
        waits = iter(self.waits)
        while True:
            try:
                return self._tried(request, watch, deadline - time.monotonic())
            except RateLimitedError as error:
                wait = next(waits, None)
                if wait is None:
                    raise
                wait = wait if error.seconds is None else error.seconds
                if time.monotonic() + wait >= deadline:
                    raise
                watch.on_output(f"{error}; trying again in {wait:g} s\n".encode())
                self._pause(wait, watch)

    def close(self) -> None:
        """The conversations are over."""
        with self._lock:
            state, self._state = self._state, None
            self._sessions.clear()
        if state is not None:
            shutil.rmtree(state, ignore_errors=True)

    def _pause(self, seconds: float, watch: Watch) -> None:
        patience = child.Deadline(seconds, should_continue=watch.should_continue)
        while (ending := patience.find_ending()) is None:
            time.sleep(min(child.POLL_INTERVAL, seconds))
        if ending is child.Ending.REQUEST:
            raise watch.make_error(self.name, ending)

    def _tried(self, request: AgentRequest, watch: Watch, seconds: float) -> AgentReply:
        """One call; a conversation in which something went wrong is not gone on with, unless it only has to wait."""
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            call = self._call(request, Path(folder))
            try:
                return self._reply(call, self._done(call, watch, seconds), watch)
            except RateLimitedError:
                raise
            except AgentError:
                if call.edits:
                    self._sessions.pop(request.workspace, None)
                raise

    def _call(self, request: AgentRequest, folder: Path) -> _Call:
        session = self._sessions.get(request.workspace, "") if request.step == "REFINE" else ""
        goes_on = bool(session) and self.preset.resume is not None
        if not goes_on:
            session = f"pytest-loop-{uuid.uuid4().hex[:12]}" if self.preset.names_session else ""
        return _Call(request, folder, session, goes_on, _schema(self.preset, request), read_content(request.artifact))

    def _done(self, call: _Call, watch: Watch, seconds: float) -> child.CommandResult:
        request, prompt = call.request, call.request.prompt.encode("utf-8", "replace")
        is_file = self.preset.prompt == "file"
        if is_file:
            call.file("prompt_file").write_bytes(prompt)
        if call.schema is not None:
            call.file("schema_file").write_text(json.dumps(call.schema), encoding="utf-8")
        glimpse = OutputFilter(watch.on_output)
        order = child.Command(
            self._words(call),
            request.workspace,
            max(seconds, child.POLL_INTERVAL),
            None if self.preset.is_silent else watch.silence,
            {**self.preset.environment, **make_environment(request), **self._mode(call).environment},
            b"" if is_file else prompt,
            output_limit=MAX_ANSWER_BYTES,
            on_output=glimpse,
            should_continue=watch.should_continue,
            is_thorough=True,
        )
        try:
            done = child.run_command(order)
        except child.CannotStartError as error:
            raise AgentUnavailableError(str(error)) from None
        glimpse.end()
        if done.ending is not child.Ending.COMPLETED:
            raise watch.make_error(self.name, done.ending)
        return done

    def _mode(self, call: _Call) -> Mode:
        return self.preset.edit if call.edits else self.preset.read_only

    def _words(self, call: _Call) -> list[str]:
        preset = self.preset
        words: Words = (preset.resume or ()) if call.goes_on else preset.start
        words += preset.arguments + self._mode(call).arguments
        words += preset.model if self._model else ()
        words += preset.artifact if call.edits and call.request.artifact else ()
        words += preset.form.arguments if preset.form and call.schema is not None else ()
        words += preset.outside_git if preset.outside_git and not _is_git(call.request.workspace) else ()
        uses_state = any("{state}" in word for word in words)
        values = {**call.values(), "model": self._model, "state": self._kept() if uses_state else ""}
        return [preset.find_program() or preset.program, *fill_placeholders(words, values), *self._more]

    def _kept(self) -> Path:
        """A folder for what a client keeps of its conversations."""
        with self._lock:
            if self._state is None:
                self._state = Path(tempfile.mkdtemp(prefix="pytest-loop-"))
            return self._state

    def _reply(self, call: _Call, done: child.CommandResult, watch: Watch) -> AgentReply:
        told = READERS[self.preset.format](
            Transcript(done.stdout, _read(call.file("report_file")), done.exit_code, not done.lost_bytes)
        )
        session = told.session or call.session
        usage = self._usage(call, session, told)
        if failure := _failure(told, usage, done):
            error = self._error(failure, done)
            if type(error) is not AgentError or read_content(call.request.artifact) == call.before:
                raise error
            watch.on_output(f"{error}; what it edited is judged all the same\n".encode())
            self._sessions.pop(call.request.workspace, None)
            return AgentReply.model_validate({"usage": usage})
        if call.edits and session:
            self._sessions[call.request.workspace] = session
        text = None if call.edits and self.preset.is_report else told.text
        data = told.data if call.schema is not None else None
        return AgentReply.model_validate({"text": text, "data": data, "usage": usage})

    def _usage(self, call: _Call, session: str, told: ClientReport) -> dict[str, Any]:
        """What this call has used: of a number that counts the whole conversation, what was added to it.

        Clients give a price of 0 for a model whose price they do not know.
        """
        before = self._counted.get(session, ClientReport()) if call.goes_on else ClientReport()
        if call.edits and told.tokens is not None:
            self._counted[session] = replace(told, text=None, data=None)
        return {
            "tokens": _added(told.tokens, before.tokens, self.preset.tokens),
            "cost_usd": _added(told.cost_usd, before.cost_usd, _cost_scope(self.preset, told, before)) or None,
        }

    def _error(self, failure: Failure, done: child.CommandResult) -> AgentError:
        said = shorten(failure.message or done.stderr.strip().rpartition("\n")[2], 300)
        why = f": {said}" if said else ""
        if failure.status in _REFUSED:
            return AgentUnavailableError(
                f"{self.name} was refused by its model's server (status {failure.status}){why}"
            )
        if failure.status in _LATER:
            return RateLimitedError(f"{self.name} has to wait (status {failure.status}){why}", failure.wait)
        if done.exit_code < 0:
            return AgentError(f"{self.name} ended with signal {-done.exit_code}{why}")
        if done.exit_code:
            return AgentError(f"{self.name} ended with exit code {done.exit_code}{why}")
        return AgentError(f"{self.name} gave no answer of its model{why}")


@dataclass(frozen=True)
class _Call:
    """A request on its way to the client; `before` is the artifact as it was."""

    request: AgentRequest
    folder: Path
    session: str
    goes_on: bool
    schema: Mapping[str, Any] | None
    before: bytes | None

    @property
    def edits(self) -> bool:
        return self.request.step in _EDITING

    def file(self, name: str) -> Path:
        return self.folder / name

    def values(self) -> dict[str, object]:
        artifact = self.request.artifact
        return {
            **{name: self.file(name) for name in ("prompt_file", "schema_file", "report_file")},
            "schema": json.dumps(self.schema),
            "session": self.session,
            "workspace": self.request.workspace,
            "artifact": artifact or "",
            "folder": artifact.parent if artifact else "",
        }


def _schema(preset: Preset, request: AgentRequest) -> Mapping[str, Any] | None:
    """The form of the answer, where the client takes one; elsewhere the prompt alone asks for it."""
    if preset.form is None or request.schema is None:
        return None
    return make_strict(request.schema) if preset.form.is_strict else request.schema


def _is_git(folder: Path) -> bool:
    return any((one / ".git").exists() for one in (folder, *folder.resolve().parents))


def _failure(told: ClientReport, usage: Mapping[str, Any], done: child.CommandResult) -> Failure | None:
    """What went wrong: exit codes are believed only where they say so, and no tokens means that no model answered."""
    if told.failure is not None:
        return told.failure
    if usage["tokens"] == 0:
        return Failure(told.text or "")
    return Failure() if done.exit_code else None


def _cost_scope(preset: Preset, told: ClientReport, before: ClientReport) -> Scope | None:
    """Some versions of a client price the whole conversation, others this run: then too few tokens have a price."""
    known = [told.priced, told.tokens, before.priced]
    if preset.cost is None or None in known:
        return preset.cost
    return "run" if (told.priced or 0) < (told.tokens or 0) + (before.priced or 0) else preset.cost


def _added(now: Any, before: Any, scope: Scope | None) -> Any:
    """What was added to a number; one that is smaller than before did not count the whole conversation after all."""
    if scope is None or now is None:
        return None
    return now if scope == "run" or before is None or now < before else now - before


def _read(path: Path) -> str:
    data = read_content(path)
    return "" if data is None else data.decode("utf-8", "replace")
