"""A run that goes on: where it stands, what was raised, and who outlived it."""

from __future__ import annotations

import argparse
from typing import Any

from pytest_loop.cli import background
from pytest_loop.cli.runs import chosen
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import PoliciesChanged
from pytest_loop.core.events.run_payloads import LimitsRaised
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import BusyError, StateError
from pytest_loop.processes import process_marks
from pytest_loop.run import worktree
from pytest_loop.run.questions import is_at_terminal
from pytest_loop.settings.settings import Settings
from pytest_loop.show import run as show
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles


def resumed(store: Store, settings: Settings, values: argparse.Namespace, say: PrintLine) -> tuple[RunState, RunFiles]:
    """A run that is there, from where it stands; one that is over stays so unless a limit was raised."""
    files = chosen(store, settings.start.alias or settings.commands.resume)
    attempt = background.attempt(files, force=settings.start.force)
    try:
        store.admit(files, is_new=False, force=settings.start.force)
    except BusyError as error:
        raise StateError(f"{error}: watch it with --loop-status={files.alias}, or end it with --loop-stop") from None
    process_marks.end_marked_processes(process_marks.compute_folder_mark(files.folder))  # left by a killed run
    state, history = files.read()
    files.repair(history)
    for problem in history.damage:
        say(f"{files.alias}: {problem}; going on from run.json")
    if state.is_over:
        reopened = _reopened(state, settings, values)
        if reopened is None:
            say(f"{files.alias} is over: {state.status.value}, {state.stop.reason}")
            say(f"go on: {show.go_on(state)}")
            files.release()
            return state, files
        state = select_machine(state).apply(state, reopened)
        files.append([reopened], state)
    elif attempt:
        files.record_attempt(attempt, state.progress.evaluations)
        say(f"{files.alias}: its process died; going on (attempt {attempt})")
    worktree.refuse_overlap(store, files, state)
    files.clear_requests()
    store.set_current_run(state)
    return state, files


def _reopened(state: RunState, settings: Settings, values: argparse.Namespace) -> Event | None:
    """The event that opens a run again which a limit has stopped, where that limit was raised."""
    raised: dict[str, Any] = {}
    if "--loop-max-iterations" in settings.flags and settings.limits.max_iterations > state.max_iterations:
        raised["max_iterations"] = settings.limits.max_iterations
    if settings.limits.max_seconds and settings.limits.max_seconds > (state.max_completed_phase_seconds or 0):
        raised["max_completed_phase_seconds"] = settings.limits.max_seconds
    if values.loop_budget and values.loop_budget > (state.setup.limits.usd or 0):
        raised["usd"] = values.loop_budget
    if values.loop_max_tokens and values.loop_max_tokens > (state.setup.limits.tokens or 0):
        raised["tokens"] = values.loop_max_tokens
    is_experiment = isinstance(state, ExperimentState)
    if is_experiment and settings.workload.on_regression in ("accept", "different"):
        raised["on_regression"] = settings.workload.on_regression
    if is_experiment and settings.workload.on_plateau == "continue":
        raised["on_plateau"] = settings.workload.on_plateau
    fits = find_row(state.stop.reason).reopened_by
    is_reviewed = state.signals.review is not None and (is_at_terminal() or settings.start.yes)
    confirmed = state.stop.reason == Reason.UNCONFIRMED.value and (settings.judging.confirmed or is_reviewed)
    if not confirmed and not any(name in fits for name in raised):
        return None
    payload_class = PoliciesChanged if is_experiment else LimitsRaised
    return Event.create(state, payload_class(**raised), read_clock())
