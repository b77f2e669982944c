"""The gate of a coding agent: judges once when the agent wants to stop, and answers its Stop hook."""

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

from pytest_loop.cli.draft import NewRun
from pytest_loop.cli.task import Understood
from pytest_loop.core.judging import critique as critic
from pytest_loop.core.model import stop_message
from pytest_loop.core.model.evaluation import Assessment
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.redaction import Redactor
from pytest_loop.core.text.sanitizer import fence_text
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import LoopError, StateError
from pytest_loop.inference import stop_check
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.processes import process_marks
from pytest_loop.processes.child import Ending
from pytest_loop.processes.interrupts import interrupt_on_signals
from pytest_loop.rules.syntax import FORMATS
from pytest_loop.session.assess import judged
from pytest_loop.session.judge_service import seated
from pytest_loop.session.runner import ChildSession, Judgement, SessionError
from pytest_loop.session.warm import fork
from pytest_loop.session.warm.direct import Here
from pytest_loop.settings.command_line import find_unknown_flag
from pytest_loop.settings.settings import Settings, find_root, read_settings
from pytest_loop.store.project_runs import Store
from pytest_loop.store.stop_blocks import BlockCounter

PATIENCE = 5.0
MOST = 16 * 1024 * 1024
_PIECE = 64 * 1024
_OWN_STATE = Path(".loop/state.json")


class AllowedError(LoopError):
    """The agent may stop; the text says why nothing is in its way."""


@dataclass(frozen=True)
class Gate:
    """One question of an agent."""

    config: pytest.Config
    values: argparse.Namespace
    settings: Settings
    message: stop_message.Message

    @cached_property
    def root(self) -> Path:
        return find_root(self.config, self.values)

    @cached_property
    def _blocks(self) -> BlockCounter:
        return BlockCounter(Store(self.root, self.settings.start.dir).root, self.message.session)

    def answer(self) -> str:
        """Block with what is to be mended; raises `AllowedError` where the agent may stop.

        Only rules decide. What cannot be judged, counted or read is no reason to keep anybody.
        """
        before = self._counted()
        if before >= self.settings.commands.gate_blocks:
            self._blocks.reset()
            raise AllowedError(f"it was kept from stopping {before} times in a row: loop_gate_blocks lets go")
        try:
            reason = self._judged()
        except LoopError:
            self._blocks.reset()
            raise
        self._note(before + 1)
        return stop_message.format_block_answer(
            f"{reason}\n(kept from stopping {before + 1} of {self.settings.commands.gate_blocks} times)"
        )

    def _counted(self) -> int:
        """How often it was kept from stopping; without a name of its own only its word ends it."""
        if not self.message.session and self.message.is_repeated:
            raise AllowedError("it was kept from stopping before, and has no session to count that by")
        return self._blocks.read_count()

    def _note(self, count: int) -> None:
        try:
            self._blocks.write_count(count)
        except StateError as error:
            if self.message.is_repeated:
                raise AllowedError(f"it was kept from stopping before, and nobody can count that: {error}") from None

    # -- what judges

    def _judged(self) -> str:
        """Why it may not stop: what the rules say, and then what its own state file says."""
        own = self._own_state()
        judgement = self._session()
        bad = [text for name, text in judgement.problems.items() if name.endswith(tuple(FORMATS))]
        criteria, one = judged(judgement, self.settings.judging.threshold, self.config.hook.pytest_loop_score)
        if criteria.rules and (reason := self._against(criteria, one, judgement)):
            return reason
        if not own.may_stop:
            return f"The loop in {_OWN_STATE} is not done: {own.reason}"
        if bad:
            raise AllowedError(f"the rules cannot be read: {' / '.join(map(shorten, bad))}")
        raise AllowedError("the rules pass" if criteria.rules else f"there is nothing to judge ({own.reason})")

    def _own_state(self) -> stop_check.StopAnswer:
        """What an agent that keeps a state of its own says there; one that says that it is over judges nothing."""
        try:
            text = (self.root / _OWN_STATE).read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = None
        found = stop_check.decide_stop(text)
        if found.is_final:
            raise AllowedError(f"{_OWN_STATE}: {found.reason}")
        return found

    def _session(self) -> Judgement:
        new = NewRun(self.config, self.values, self.settings, self.root, Understood(parse_task("")))
        artifact = new.artifact()
        court = seated(self.config, self.settings)
        order = SessionOrder(
            phase=Phase.B,
            artifact=str(artifact or ""),
            canary=secrets.token_hex(8),
            confirmed_rules=self.settings.judging.confirmed,
            judge_address=court.address if court else "",
            judge_key=court.key if court else "",
        )
        session = ChildSession(
            new.arguments(),
            Path(self.config.invocation_params.dir),
            self.settings.commands.gate_timeout,
            os.environ,
            lambda _data: None,
            warm=Here() if Here.is_possible and self.settings.judging.session != "cold" else None,
        )
        late = f"the rules were not judged within {self.settings.commands.gate_timeout:g} s (loop_gate_timeout)"
        try:
            found = session.evaluate(order)
        except SessionError as error:
            raise AllowedError(late if f"({Ending.DEADLINE.value})" in str(error) else str(error)) from None
        finally:
            if court:
                court.close()
        if found.ending == Ending.DEADLINE.value:
            raise AllowedError(late)
        return found

    def _against(self, criteria: RunCriteria, one: Assessment, judgement: Judgement) -> str:
        """What the rules have against the end; empty where they have nothing."""
        if judgement.finished is not None and not (judgement.canaries and all(judgement.canaries)):
            return "A test that must fail did not fail: something patches pytest, and nothing can be judged. Undo that."
        if not one.is_reached:
            return self._told(criteria, one)
        if one.assumptions:
            names = ", ".join(map(shorten, one.assumptions))
            return f"Nobody has confirmed {names}: ask the person (pytest --loop-gate --loop-confirm RULE)."
        return ""

    def _told(self, criteria: RunCriteria, one: Assessment) -> str:
        made = critic.build_critique(criteria, one, (), self.settings.agents.critique_tokens)
        made = self.config.hook.pytest_loop_critique(evaluation=one, critique=made) or made
        threshold = float(criteria.phase[Phase.B].threshold)
        head = (
            f"The rules do not pass: score {one.score:.3g} of {threshold:g}, {one.passing} of {one.total} rules pass."
        )
        said = fence_text(Redactor(os.environ)(critic.render_critique(made)), secrets.token_hex(4))
        return f"{head} Mend what fails, and do not change what judges.\n{said}"


def main(config: pytest.Config, values: argparse.Namespace) -> NoReturn:
    """Answer in one JSON object on standard output, whatever happens; all other words go to standard error.

    Ends the process, because pytest's capture would give others standard output back.
    """
    give = _aside()
    answer, reason = stop_message.ALLOW, ""
    try:
        with interrupt_on_signals():
            answer = _gate(config, values).answer()
    except KeyboardInterrupt:
        reason = "it was interrupted"
    except (LoopError, pytest.UsageError) as error:
        reason = str(error)
    except BaseException as error:
        reason = f"internal error: {type(error).__name__}: {error}"
    if reason:
        print(f"the agent may stop: {reason}", file=sys.stderr, flush=True)
    give(answer)
    fork.end(0)


def _gate(config: pytest.Config, values: argparse.Namespace) -> Gate:
    if os.environ.get(process_marks.MARK):
        raise AllowedError("a run of pytest-loop is at work here, and judges by itself")
    if config.pluginmanager.has_plugin("loop"):
        raise AllowedError("the plugin pytest-loop (a test repeater) is active: use -p no:loop")
    if unknown := find_unknown_flag([str(word) for word in config.invocation_params.args]):
        raise AllowedError(unknown)
    found = stop_message.parse_message(_heard().decode("utf-8", "replace"))
    if found is None:
        raise AllowedError("the message of the hook is not a JSON object")
    settings = read_settings(config, values)
    _ = settings.command  # two of them are refused
    return Gate(config, values, settings, found)


def _heard(descriptor: int = 0) -> bytes:
    """What is on standard input; who leaves it open is not waited for once a whole message is there."""
    data = b""
    until = time.monotonic() + PATIENCE
    with suppress(OSError, ValueError):
        while not os.isatty(descriptor) and len(data) < MOST:
            left = max(0.0, until - time.monotonic())
            if not select.select([descriptor], [], [], left)[0] or not (piece := os.read(descriptor, _PIECE)):
                break
            data += piece
            if _is_whole(data):
                break
    return data


def _is_whole(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


def _aside() -> PrintLine:
    """Keep standard output for one answer: what others print from now on goes where words for a person go."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)

    def give(answer: str) -> None:
        with suppress(OSError):  # nobody listens
            os.write(kept, f"{answer}\n".encode())
        os.close(kept)

    return give
