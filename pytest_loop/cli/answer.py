"""The answer to a stopped run: read it from the command line, or ask for it at a terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pytest_loop.cli.task import clean_text
from pytest_loop.core.events.run_payloads import LimitsRaised
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason, parse_reason
from pytest_loop.core.reporting.answer import build_answer, find_alternative
from pytest_loop.errors import StateError
from pytest_loop.inference.gates import Confirm
from pytest_loop.run.console import Console
from pytest_loop.settings.options import CommandSettings, StartSettings
from pytest_loop.settings.settings import Settings
from pytest_loop.workspace.seal import format_path_pattern

_FLAG = "--loop-answer"


def make_answer(state: RunState, settings: Settings, limits: Mapping[str, Any]) -> LimitsRaised:
    """Return the payload of the answer on the command line; raises `StateError` if it cannot be given to this run."""
    if state.stop.passed:
        raise StateError(
            f"{state.task_alias} is completed, and has no question to answer: start a new run with --loop-task"
        )
    text = clean_text(_FLAG, settings.start.answer, "an answer")
    unseal = settings.workspace.unseal if "--loop-unseal" in settings.flags else ()
    alternative = find_alternative(state, text)
    if alternative is not None:
        text = alternative.text
        unseal = (*unseal, *([format_path_pattern(alternative.unseal)] if alternative.unseal else []))
        if alternative.changes_judge and not unseal:
            raise StateError("what judges is sealed: name the file with the expectation too, with --loop-unseal PATH")
    return build_answer(state, text, unseal, limits)


def ask_for_answer(state: RunState, settings: Settings, console: Console) -> Settings | None:
    """Ask the user to answer a stopped run; return settings that resume it, or None to leave it as it is.

    A run that was stopped on request has no question, and neither has one whose review was left open just now.
    """
    is_asked = console.can_ask and not settings.start.yes and settings.start.ask != Confirm.NEVER.value
    is_left = parse_reason(state.stop.reason) is Reason.USER_STOP or state.is_review_pending
    if not is_asked or not state.is_over or state.stop.passed or is_left:
        return None
    text = console.read_answer("your answer (empty leaves the run as it is): ")
    if not text or not text.strip():
        return None
    return replace(
        settings,
        start=StartSettings(**settings.start.values | {"answer": text}),
        commands=CommandSettings(**settings.commands.values | {"resume": state.task_alias}),
    )
