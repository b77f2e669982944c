"""The Stop hook of a coding agent (`--loop-gate`): judges once when the agent wants to stop, and answers the hook."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import select
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import pytest

from pytest_loop.cli.document import resolve_artifact
from pytest_loop.cli.session_arguments import build_judging_arguments
from pytest_loop.core.judging import critique as critic
from pytest_loop.core.model import stop_message
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.core.text.sanitizer import fence_text
from pytest_loop.core.text.score_text import format_score
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import LoopError, StateError
from pytest_loop.inference import stop_check
from pytest_loop.processes import process_marks
from pytest_loop.processes.child import Ending
from pytest_loop.processes.interrupts import interrupt_on_signals
from pytest_loop.rules.syntax import DATA_FORMATS_BY_SUFFIX
from pytest_loop.session.judge_service import start_judge_for_run
from pytest_loop.session.result import SessionResult, assess_session
from pytest_loop.session.runner import ColdLauncher, SessionError, SubprocessSession
from pytest_loop.session.warm import forked_process
from pytest_loop.session.warm.direct_launcher import DirectLauncher
from pytest_loop.settings.command_line import describe_unknown_flag
from pytest_loop.settings.settings import Settings, read_settings
from pytest_loop.store.project_runs import Store
from pytest_loop.store.stop_blocks import BlockCounter

READ_SECONDS = 5.0
MAX_MESSAGE_BYTES = 16 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
# The state file of another loop tool.
_AGENT_STATE = Path(".loop/state.json")


class AllowedError(LoopError):
    """The agent may stop; the text gives the reason."""


def main(config: pytest.Config, values: argparse.Namespace) -> NoReturn:
    """Print one JSON object on standard output, whatever happens; all other output goes to standard error.

    Ends the process, because pytest's capture would restore standard output.
    """
    write_answer = _reserve_stdout()
    answer, reason = stop_message.ALLOW, ""
    try:
        with interrupt_on_signals():
            answer = _make_hook(config, values).answer()
    except KeyboardInterrupt:
        reason = "it was interrupted"
    except (LoopError, pytest.UsageError) as error:
        reason = str(error)
    except BaseException as error:
        reason = f"internal error: {type(error).__name__}: {error}"
    if reason:
        print(f"the agent may stop: {reason}", file=sys.stderr, flush=True)
    write_answer(answer)
    forked_process.exit_process(0)


def _make_hook(config: pytest.Config, values: argparse.Namespace) -> StopHook:
    if os.environ.get(process_marks.MARK):
        raise AllowedError("a run of pytest-loop is at work here, and judges by itself")
    if config.pluginmanager.has_plugin("loop"):
        raise AllowedError("the plugin pytest-loop (a test repeater) is active: use -p no:loop")
    if problem := describe_unknown_flag([str(argument) for argument in config.invocation_params.args]):
        raise AllowedError(problem)
    message = stop_message.parse_message(read_message().decode("utf-8", "replace"))
    if message is None:
        raise AllowedError("the message of the hook is not a JSON object")
    settings = read_settings(config, values)
    _ = settings.command  # raises `UsageError` if there are two commands
    return StopHook(config, settings, message)


@dataclass(frozen=True)
class StopHook:
    """One request of an agent to stop."""

    config: pytest.Config
    settings: Settings
    message: stop_message.Message

    @cached_property
    def _blocks(self) -> BlockCounter:
        return BlockCounter(Store(self.settings.root, self.settings.start.dir).root, self.message.session)

    def answer(self) -> str:
        """Return the answer that blocks, with the reason; raise `AllowedError` if the agent may stop.

        Only rules and the agent's state file block: errors while judging, counting or reading let the agent stop.
        """
        blocks, limit = self._count_blocks(), self.settings.commands.gate_blocks
        if blocks >= limit:
            self._blocks.reset()
            raise AllowedError(f"it was kept from stopping {blocks} times in a row: loop_gate_blocks lets go")
        try:
            reason = self._find_reason()
        except LoopError:
            self._blocks.reset()
            raise
        self._save_count(blocks + 1)
        text = f"{reason}\n(kept from stopping {blocks + 1} of {limit} times)"
        return stop_message.format_block_answer(text, self.message)

    def _count_blocks(self) -> int:
        """Return how often this agent was blocked in a row; raise `AllowedError` if that cannot be counted."""
        if not self.message.session and self.message.is_repeated:
            raise AllowedError("it was kept from stopping before, and has no session to count that by")
        return self._blocks.read_count()

    def _save_count(self, count: int) -> None:
        try:
            self._blocks.write_count(count)
        except StateError as error:
            if self.message.is_repeated:
                raise AllowedError(f"it was kept from stopping before, and that cannot be counted: {error}") from None

    def _find_reason(self) -> str:
        """Return why the agent may not stop, by the rules or by its own state file; raise `AllowedError` if it may."""
        agent_state = self._read_agent_state()
        result = self._run_session()
        problems = [text for path, text in result.problems.items() if path.endswith(tuple(DATA_FORMATS_BY_SUFFIX))]
        score = self.config.hook.pytest_loop_score
        criteria, evaluation = assess_session(result, self.settings.judging.threshold, score)
        if criteria.rules and (reason := self.find_objection(criteria, evaluation, result)):
            return reason
        if not agent_state.may_stop:
            return f"The loop in {_AGENT_STATE} is not done: {agent_state.reason}"
        if problems:
            raise AllowedError(f"the rules cannot be read: {' / '.join(map(shorten, problems))}")
        raise AllowedError("the rules pass" if criteria.rules else f"there is nothing to judge ({agent_state.reason})")

    def _read_agent_state(self) -> stop_check.StopAnswer:
        """Return what the agent's own state file says; raise `AllowedError` if its loop is over."""
        try:
            text = (self.settings.root / _AGENT_STATE).read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = None
        answer = stop_check.decide_stop(text)
        if answer.is_final:
            raise AllowedError(f"{_AGENT_STATE}: {answer.reason}")
        return answer

    def _run_session(self) -> SessionResult:
        settings, timeout = self.settings, self.settings.commands.gate_timeout
        artifact = resolve_artifact(settings)
        is_warm = DirectLauncher.is_possible and settings.judging.session != "cold"
        session = SubprocessSession(
            build_judging_arguments(settings),
            settings.folder,
            timeout,
            # Write no bytecode: Python uses it after an edit in the same second that keeps the size of the source.
            {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            lambda _data: None,
            launcher=DirectLauncher() if is_warm else ColdLauncher(),
        )
        judge = start_judge_for_run(self.config, settings)
        order = SessionOrder(
            phase=Phase.B,
            artifact=str(artifact or ""),
            canary=secrets.token_hex(8),
            confirmed_rules=settings.judging.confirm,
            judge_address=judge.address if judge else "",
            judge_key=judge.key if judge else "",
        )
        too_late = f"the rules were not judged within {timeout:g} s (loop_gate_timeout)"
        try:
            result = session.evaluate(order)
        except SessionError as error:
            raise AllowedError(too_late if f"({Ending.DEADLINE.value})" in str(error) else str(error)) from None
        finally:
            if judge:
                judge.close()
        if result.ending == Ending.DEADLINE.value:
            raise AllowedError(too_late)
        return result

    def find_objection(self, criteria: RunCriteria, evaluation: Evaluation, result: SessionResult) -> str:
        """Return why the rules block, or an empty text if they pass; raise `AllowedError` if they cannot be judged."""
        if result.exit_status is not None and not (result.canaries and all(result.canaries)):
            return "A test that must fail did not fail: something patches pytest, and nothing can be judged. Undo that."
        if evaluation.is_waiting_for_setup:
            names = ", ".join(f"{shorten(error.id)} ({shorten(error.message)})" for error in evaluation.errors)
            raise AllowedError(f"rules cannot be judged here: {names}")
        if not evaluation.is_reached:
            return self._render_failure(criteria, evaluation)
        if evaluation.assumptions:
            names = ", ".join(map(shorten, evaluation.assumptions))
            return f"Nobody has confirmed {names}: ask the person (pytest --loop-gate --loop-confirm RULE)."
        return ""

    def _render_failure(self, criteria: RunCriteria, evaluation: Evaluation) -> str:
        critique = critic.build_critique(criteria, evaluation, (), self.settings.agents.critique_tokens)
        hook = self.config.hook.pytest_loop_critique
        critique = hook(evaluation=evaluation, critique=critique) or critique
        threshold = float(criteria.phase[Phase.B].threshold)
        counts = f"{evaluation.passing} of {evaluation.total} rules pass"
        head = f"The rules do not pass: score {format_score(evaluation.score)} of {threshold:g}, {counts}."
        text = fence_text(Redactor(os.environ)(critic.render_critique(critique)), secrets.token_hex(4))
        return f"{head} Fix what fails, and do not change what judges.\n{text}"


def read_message(descriptor: int = 0) -> bytes:
    """Read standard input up to a complete JSON message: the client may leave it open."""
    data = b""
    deadline = time.monotonic() + READ_SECONDS
    with suppress(OSError, ValueError):
        while not os.isatty(descriptor) and len(data) < MAX_MESSAGE_BYTES and not _is_json(data):
            seconds = max(0.0, deadline - time.monotonic())
            if not select.select([descriptor], [], [], seconds)[0] or not (chunk := os.read(descriptor, _CHUNK_BYTES)):
                break
            data += chunk
    return data


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _reserve_stdout() -> PrintLine:
    """Redirect standard output to standard error, and return a function that writes to the original."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)

    def write_answer(answer: str) -> None:
        with suppress(OSError):  # the client has closed its end
            os.write(stdout, f"{answer}\n".encode())
        os.close(stdout)

    return write_answer
