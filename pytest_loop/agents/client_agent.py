"""Use a command-line client as an agent, called according to its preset."""

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

from pytest_loop.agents.answers import split_exit_signal
from pytest_loop.agents.client_errors import make_client_error
from pytest_loop.agents.command_agent import make_environment, read_content, run_limited_command
from pytest_loop.agents.output_filter import OutputFilter
from pytest_loop.agents.presets import AccessMode, Arguments, Preset, UsageScope, fill_placeholders
from pytest_loop.agents.price_table import Estimate, estimate_price
from pytest_loop.agents.protocol import (
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    RateLimitedError,
    Watch,
)
from pytest_loop.agents.strict_schema import make_strict
from pytest_loop.agents.transcripts import READERS, ClientFailure, ClientReport, Transcript
from pytest_loop.core.model.run_state import Usage
from pytest_loop.processes.child import POLL_INTERVAL, Command, CommandResult, Deadline, Ending

# Seconds before each retry of a rate-limited client that does not say how long to wait.
RETRY_DELAYS = (15.0, 30.0, 60.0, 120.0, 240.0)
_EDITING_STEPS = ("PRODUCE", "REFINE")


class ClientAgent:
    """Run a client in the workspace for every request; only PRODUCE, REFINE and a request to write tests may edit.

    PRODUCE starts a conversation, and REFINE continues it if the client can. A rate-limited client is called again
    after a delay if the deadline allows. `model_and_arguments` is `[MODEL] [ARGUMENT ...]`.
    """

    def __init__(
        self,
        preset: Preset,
        model_and_arguments: str = "",
        name: str = "",
        retry_delays: Sequence[float] = RETRY_DELAYS,
    ) -> None:
        self.name = name or preset.program
        self.preset = preset
        self.retry_delays = retry_delays
        try:
            arguments = shlex.split(model_and_arguments)
        except ValueError as error:
            raise AgentUnavailableError(
                f"expected a model and arguments, found {model_and_arguments!r} ({error})"
            ) from None
        self._model = arguments.pop(0) if arguments and not arguments[0].startswith("-") else ""
        self._arguments = arguments
        if self._model and not preset.model:
            raise AgentUnavailableError(
                f"{preset.program} takes no model from its command line, found {self._model!r}: "
                "choose the model in its own configuration"
            )
        self._sessions: dict[Path, str] = {}
        self._last_reports: dict[str, ClientReport] = {}
        self._state_folder: Path | None = None
        self._lock = Lock()
        if not preset.find_program():
            raise AgentUnavailableError(
                f"cannot run {preset.program!r}: no such command is installed here (pytest-loop agents lists all)"
            )

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        deadline = time.monotonic() + watch.timeout
        delays = iter(self.retry_delays)
        spent = Usage()
        while True:
            try:
                reply = self._call_client(request, watch, deadline - time.monotonic())
                return reply.model_copy(update={"usage": spent.plus(reply.usage)})
            except AgentError as error:
                error.usage = spent = spent.plus(error.usage)
                if not isinstance(error, RateLimitedError) or (delay := next(delays, None)) is None:
                    raise
                delay = delay if error.seconds is None else error.seconds
                if time.monotonic() + delay >= deadline:
                    raise
                watch.on_wait(f"{error}; trying again in {delay:g} s")
                self._pause(delay, watch)

    def close(self) -> None:
        """Forget all conversations."""
        with self._lock:
            folder, self._state_folder = self._state_folder, None
            self._sessions.clear()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _pause(self, seconds: float, watch: Watch) -> None:
        """Wait for some seconds; raise `StopRequestedError` if the run is asked to stop."""
        deadline = Deadline(seconds, should_continue=watch.should_continue)
        while (ending := deadline.find_ending()) is None:
            time.sleep(min(POLL_INTERVAL, seconds))
        if ending is Ending.REQUEST:
            raise watch.make_error(self.name, ending)

    def _call_client(self, request: AgentRequest, watch: Watch, seconds: float) -> AgentReply:
        """Call the client once; after a failed edit, unless rate-limited, forget the conversation."""
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            call = self._prepare_call(request, Path(folder))
            try:
                return self._read_reply(call, *self._run_client(call, watch, seconds), watch)
            except RateLimitedError:
                raise
            except AgentError:
                if call.is_edit:
                    self._sessions.pop(request.workspace, None)
                raise

    def _prepare_call(self, request: AgentRequest, folder: Path) -> _Call:
        session = self._sessions.get(request.workspace, "") if request.step == "REFINE" else ""
        is_resumed = bool(session) and self.preset.resume is not None
        if not is_resumed:
            session = f"pytest-loop-{uuid.uuid4().hex[:12]}" if self.preset.names_session else ""
        schema, form = request.schema, self.preset.form
        if form is None:  # only the prompt asks for the schema
            schema = None
        elif schema is not None and form.is_strict:
            schema = make_strict(schema)
        return _Call(request, folder, session, is_resumed, schema)

    def _run_client(self, call: _Call, watch: Watch, seconds: float) -> tuple[CommandResult, str]:
        """Run the client; return its result, and the refusal for which it was ended early (empty without one)."""
        request, prompt = call.request, call.request.prompt.encode("utf-8", "replace")
        should_continue = watch.should_continue
        is_prompt_in_file = self.preset.prompt == "file"
        if is_prompt_in_file:
            call.get_path("prompt_file").write_bytes(prompt)
        if call.schema is not None:
            call.get_path("schema_file").write_text(json.dumps(call.schema), encoding="utf-8")
        output = OutputFilter(watch.on_output, self.preset.refusals)
        command = Command(
            self._build_command_line(call),
            request.workspace,
            max(seconds, POLL_INTERVAL),
            None if self.preset.is_silent else watch.silence,
            {**self.preset.environment, **make_environment(request), **self._get_mode(call).environment},
            b"" if is_prompt_in_file else prompt,
            on_output=output,
        )
        watch = replace(watch, should_continue=lambda: not output.refusal and should_continue())
        result = run_limited_command(command, watch)
        output.end()
        return result, output.refusal

    def _get_mode(self, call: _Call) -> AccessMode:
        return self.preset.edit if call.is_edit else self.preset.read_only

    def _build_command_line(self, call: _Call) -> list[str]:
        """Return the command line; put read-only arguments last, so that the user's arguments cannot override them."""
        preset, mode_arguments = self.preset, self._get_mode(call).arguments
        words: Arguments = (preset.resume or ()) if call.is_resumed else preset.start
        words += preset.arguments + (mode_arguments if call.is_edit else ())
        words += preset.model if self._model else ()
        words += preset.artifact if call.is_edit and call.request.artifact else ()
        words += preset.form.arguments if preset.form and call.schema is not None else ()
        words += preset.outside_git if preset.outside_git and not _is_in_git(call.request.workspace) else ()
        uses_state = any("{state}" in word for word in words)
        values = {**call.placeholders, "model": self._model, "state": self._get_state_folder() if uses_state else ""}
        read_only_arguments = () if call.is_edit else fill_placeholders(mode_arguments, values)
        program = preset.find_program() or preset.program
        return [program, *fill_placeholders(words, values), *self._arguments, *read_only_arguments]

    def _get_state_folder(self) -> Path:
        """Return the folder where a client keeps its conversations."""
        with self._lock:
            if self._state_folder is None:
                self._state_folder = Path(tempfile.mkdtemp(prefix="pytest-loop-"))
            return self._state_folder

    def _read_reply(self, call: _Call, result: CommandResult, refusal: str, watch: Watch) -> AgentReply:
        """Read the reply, and remember its conversation; raise an `AgentError` if the client failed."""
        report_text = (read_content(call.get_path(self.preset.report)) or b"").decode("utf-8", "replace")
        transcript = Transcript(result.stdout, report_text, result.exit_code, not result.lost_bytes)
        output = self.preset.output
        report = output.read(transcript) if output else READERS[self.preset.format](transcript)
        session = report.session or call.session
        usage = self._record_usage(call, session, report)
        if result.ending is not Ending.COMPLETED and not refusal:
            raise _add_usage(watch.make_error(self.name, result.ending), usage)
        if failure := _find_failure(report, usage, result):
            raise _add_usage(make_client_error(self.name, failure, result, refusal), usage)
        if call.is_edit and session:
            self._sessions[call.request.workspace] = session
        text = None if call.is_edit and self.preset.is_report else report.text
        data = report.data if call.schema is not None else None
        signal = split_exit_signal(report.text, is_document=False)[1] if text is None and report.text else None
        return AgentReply.model_validate({"text": text, "data": data, "usage": usage, "exit_signal": signal})

    def _record_usage(self, call: _Call, session: str, report: ClientReport) -> dict[str, Any]:
        """Return the usage of this call alone; store the report of an edit for the next call of its conversation."""
        before = self._last_reports.get(session, ClientReport()) if call.is_resumed else ClientReport()
        if call.is_edit and report.tokens is not None:
            self._last_reports[session] = report
        cost_scope = _find_cost_scope(self.preset, report, before)
        usage: dict[str, Any] = {
            "tokens": _compute_increase(report.tokens, before.tokens, self.preset.tokens),
            "cost_usd": _compute_increase(report.cost_usd, before.cost_usd, cost_scope)
            or None,  # a client reports 0 if it knows no price
        }
        if usage["cost_usd"] is None and (estimate := self._estimate_cost(report, before)):
            usage |= {"estimated_usd": estimate.usd, "estimated_by": estimate.source}
        return usage

    def _estimate_cost(self, report: ClientReport, before: ClientReport) -> Estimate | None:
        counts = report.counts
        if counts and before.counts and self.preset.tokens == "session" and counts.input >= before.counts.input:
            counts = counts.subtract(before.counts)
        return estimate_price(self._model, counts)


@dataclass(frozen=True)
class _Call:
    """One call of the client."""

    request: AgentRequest
    folder: Path
    session: str
    is_resumed: bool
    schema: Mapping[str, Any] | None

    @property
    def is_edit(self) -> bool:
        writes_tests = self.request.step == "PREPARE" and self.request.schema is None
        return self.request.step in _EDITING_STEPS or writes_tests

    def get_path(self, name: str) -> Path:
        return self.folder / name

    @property
    def placeholders(self) -> dict[str, object]:
        artifact = self.request.artifact
        return {
            **{name: self.get_path(name) for name in ("prompt_file", "schema_file", "report_file")},
            "report_folder": self.folder,
            "schema": json.dumps(self.schema),
            "session": self.session,
            "workspace": self.request.workspace,
            "artifact": artifact or "",
            "folder": artifact.parent if artifact else "",
        }


def _is_in_git(folder: Path) -> bool:
    return any((parent / ".git").exists() for parent in (folder, *folder.resolve().parents))


def _add_usage(error: AgentError, usage: Mapping[str, Any]) -> AgentError:
    error.usage = AgentReply.model_validate({"usage": usage}).usage
    return error


def _find_failure(report: ClientReport, usage: Mapping[str, Any], result: CommandResult) -> ClientFailure | None:
    """Return the failure of a call, or None; a call with 0 tokens fails, because no model has answered."""
    if report.failure is not None:
        return report.failure
    if usage["tokens"] == 0:
        return ClientFailure(report.text or "")
    return ClientFailure() if result.exit_code else None


def _find_cost_scope(preset: Preset, report: ClientReport, before: ClientReport) -> UsageScope | None:
    """Return whether the reported cost covers this client call (`run`) or the conversation so far (`session`).

    Some versions of a client price only the call: then `priced_tokens` is less than the tokens of the conversation.
    """
    if preset.cost is None or None in (report.priced_tokens, report.tokens, before.priced_tokens):
        return preset.cost
    return "run" if (report.priced_tokens or 0) < (report.tokens or 0) + (before.priced_tokens or 0) else preset.cost


def _compute_increase(now: Any, before: Any, scope: UsageScope | None) -> Any:
    """Return this call's share of a reported number; a number below the previous one covers this call alone."""
    if scope is None or now is None:
        return None
    return now if scope == "run" or before is None or now < before else now - before
