"""Resume a run: after a pause, after a crash, or after a limit was raised."""

from __future__ import annotations

from typing import Any

from pytest_loop.cli import background
from pytest_loop.cli.runs import find_run
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import PoliciesChanged
from pytest_loop.core.events.run_payloads import LimitsRaised
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import BusyError, StateError
from pytest_loop.processes import process_marks
from pytest_loop.run import worktree
from pytest_loop.run.console import Console
from pytest_loop.settings.settings import Settings
from pytest_loop.show import run_text
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles


def resume_run(store: Store, settings: Settings, console: Console) -> tuple[RunState, RunFiles]:
    """Return a run that this process now owns; a run that is over stays so unless its limit was raised."""
    files = find_run(store, settings.start.alias or settings.commands.resume)
    attempt = background.count_attempt(files, force=settings.start.force)
    try:
        store.acquire_run(files, is_new=False, force=settings.start.force)
    except BusyError as error:
        raise StateError(f"{error}: watch it with --loop-status={files.alias}, or end it with --loop-stop") from None
    process_marks.end_marked_processes(process_marks.compute_folder_mark(files.folder))  # left by a killed run
    state, history = files.read()
    files.repair(history)
    for problem in history.damage:
        console.print_line(f"{files.alias}: {problem}; going on from run.json")
    if state.is_over:
        event = reopen(state, settings, can_review=console.can_ask or settings.start.yes)
        if event is None:
            console.print_line(f"{files.alias} is over: {state.status.value}, {state.stop.reason}")
            console.print_line(f"go on: {run_text.format_resume_command(state)}")
            files.release()
            return state, files
        state = select_machine(state).apply(state, event)
        files.append([event], state)
    elif attempt:
        files.record_attempt(attempt, state.progress.evaluations)
        console.print_line(f"{files.alias}: its process died; going on (attempt {attempt})")
    worktree.refuse_overlap(store, files, state)
    files.clear_requests()
    store.set_current_run(state)
    return state, files


def reopen(state: RunState, settings: Settings, *, can_review: bool) -> Event | None:
    """Return the event that reopens a run, or None if its stop reason still holds.

    A run reopens if the limit that stopped it was raised, or if it waits for a confirmation that can be given now.
    """
    raised = _find_raised_limits(state, settings)
    is_reviewed = state.signals.review is not None and can_review
    is_confirmed = state.stop.reason == Reason.UNCONFIRMED.value and (settings.judging.confirm or is_reviewed)
    reopening = find_row(state.stop.reason).reopened_by
    if not is_confirmed and not any(name in reopening for name in raised):
        return None
    payload_class = PoliciesChanged if isinstance(state, ExperimentState) else LimitsRaised
    return Event.create(state, payload_class(**raised), read_clock())


def _find_raised_limits(state: RunState, settings: Settings) -> dict[str, Any]:
    """Return the settings that allow more than the run was allowed so far."""
    limits, flags = settings.limits, settings.flags
    raised: dict[str, Any] = {}
    if "--loop-max-iterations" in flags and limits.max_iterations > state.max_iterations:
        raised["max_iterations"] = limits.max_iterations
    if limits.max_seconds and limits.max_seconds > (state.max_completed_phase_seconds or 0):
        raised["max_completed_phase_seconds"] = limits.max_seconds
    if "--loop-budget" in flags and (limits.budget or 0) > (state.setup.limits.usd or 0):
        raised["usd"] = limits.budget
    if "--loop-max-tokens" in flags and (limits.max_tokens or 0) > (state.setup.limits.tokens or 0):
        raised["tokens"] = limits.max_tokens
    is_experiment = isinstance(state, ExperimentState)
    if is_experiment and settings.workload.on_regression in ("accept", "different"):
        raised["on_regression"] = settings.workload.on_regression
    if is_experiment and settings.workload.on_plateau == "continue":
        raised["on_plateau"] = settings.workload.on_plateau
    return raised
