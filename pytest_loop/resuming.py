"""A run that goes on: where it stands, what was raised, and who outlived it."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from pytest_loop import background, branching
from pytest_loop.core.events.event import Event
from pytest_loop.core.machine import run_machine
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.errors import BusyError, StateError
from pytest_loop.gates import is_at_terminal
from pytest_loop.looking import chosen
from pytest_loop.processes import process_marks
from pytest_loop.run_options import RunOptions
from pytest_loop.show import run as show
from pytest_loop.store.clock import now
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles


def resumed(
    store: Store, options: RunOptions, values: argparse.Namespace, say: Callable[[str], None]
) -> tuple[RunState, RunFiles]:
    """A run that is there, from where it stands; one that is over stays so unless a limit was raised."""
    files = chosen(store, options.alias or options.resume)
    attempt = background.attempt(files, force=options.force)
    try:
        store.admit(files, is_new=False, force=options.force)
    except BusyError as error:
        raise StateError(f"{error}: watch it with --loop-status={files.alias}, or end it with --loop-stop") from None
    process_marks.end_stragglers(process_marks.mark_of(files.folder))  # who outlived a run that was killed
    state, history = files.read()
    files.mend(history)
    for problem in history.damage:
        say(f"{files.alias}: {problem}; going on from run.json")
    if state.is_over:
        reopened = _reopened(state, options, values)
        if reopened is None:
            say(f"{files.alias} is over: {state.status.value}, {state.stop.reason}")
            say(f"go on: {show.go_on(state)}")
            files.release()
            return state, files
        state = run_machine.step(state, reopened)
        files.append([reopened], state)
    elif attempt:
        files.note_attempt(attempt, state.evaluations)
        say(f"{files.alias}: its process died; going on (attempt {attempt})")
    branching.refuse_overlap(store, files, state)
    files.forget_stop()
    store.point_at(state)
    return state, files


def _reopened(state: RunState, options: RunOptions, values: argparse.Namespace) -> Event | None:
    """The event that opens a run again which a limit has stopped, where that limit was raised."""
    raised: dict[str, Any] = {}
    if options.is_limit_given and options.max_iterations > state.max_iterations:
        raised["max_iterations"] = options.max_iterations
    if options.max_seconds and options.max_seconds > (state.max_completed_phase_seconds or 0):
        raised["max_completed_phase_seconds"] = options.max_seconds
    if values.loop_budget and values.loop_budget > (state.limits.usd or 0):
        raised["usd"] = values.loop_budget
    if values.loop_max_tokens and values.loop_max_tokens > (state.limits.tokens or 0):
        raised["tokens"] = values.loop_max_tokens
    if state.notebook and options.on_regression in ("accept", "different"):
        raised["on_regression"] = options.on_regression
    if state.notebook and options.on_plateau == "continue":
        raised["on_plateau"] = options.on_plateau
    fits = run_machine.REOPENED_BY.get(state.stop.reason, ())
    is_reviewed = state.review is not None and (is_at_terminal() or options.yes)
    confirmed = state.stop.reason == "unconfirmed" and (options.confirmed or is_reviewed)
    if not confirmed and not any(name in fits for name in raised):
        return None
    return Event.of(state, Kind.LIMITS_RAISED.value, raised, now())
