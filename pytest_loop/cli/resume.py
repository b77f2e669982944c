"""Resume a run: after a pause, after a crash, with an answer, or after a limit was raised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pytest_loop.cli import background
from pytest_loop.cli.runs import find_run
from pytest_loop.cli.task import can_ask, clean_text
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import PoliciesChanged
from pytest_loop.core.events.run_payloads import Answered, LimitsRaised
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason, parse_reason
from pytest_loop.core.reporting.answer import build_answer, find_alternative, is_recorded
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import BusyError, NothingToJudgeError, StateError
from pytest_loop.processes import process_marks
from pytest_loop.rules.sources import list_templates
from pytest_loop.run import worktree
from pytest_loop.run.console import Console
from pytest_loop.settings.options import CommandSettings, StartSettings
from pytest_loop.settings.settings import Settings
from pytest_loop.show import ending_text
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.store.signature import Trust
from pytest_loop.workspace.seal import format_path_pattern


def resume_run(store: Store, settings: Settings, console: Console) -> tuple[RunState, RunFiles]:
    """Acquire a run, and reopen it if it may continue; return its state and files, unlocked if it stays over."""
    files = find_run(store, settings.start.alias or settings.commands.resume)
    attempt = background.check_attempts(files, force=settings.start.force)
    try:
        store.acquire_run(files, is_new=False, force=settings.start.force)
    except BusyError as error:
        raise StateError(f"{error}: watch it with --loop-status={files.alias}, or end it with --loop-stop") from None
    process_marks.end_marked_processes(process_marks.compute_folder_mark(files.folder))  # left by a killed run
    state, history = files.read()
    _refuse_rewritten_history(files)
    if not (state.criteria.rules or state.is_over or state.setup.work_seal):
        files.release()
        raise NothingToJudgeError(
            f"the run {files.alias!r} has no rules, so that nothing can be judged: add them to `criteria.rules` in "
            f"{files.snapshot}, or start a run with --loop-task and --loop-template ({', '.join(list_templates())})"
        )
    try:
        event = make_reopening_event(state, settings, can_review=console.can_ask or settings.start.yes)
        is_adopted = files.trust is Trust.UNKNOWN and not (event is None and state.is_over)
        if is_adopted:
            _confirm_unsigned(files, settings, console)
    except BaseException:
        files.release()
        raise
    files.repair(history, is_adopted=is_adopted)
    for problem in history.damage:
        console.print_line(f"{files.alias}: {problem}; going on from run.json")
    state = state.replace(is_unsigned=state.setup.is_unsigned or is_adopted)
    if event is None and state.is_over:
        console.print_line(f"{files.alias} is over: {state.status.value}, {state.stop.reason}")
        console.print_lines(ending_text.render_question(state))
        store.update_current_run(state)  # a process that was killed during its last writes has not done this
        files.release()
        return state, files
    if event is not None:
        console.print_lines(_describe_reopening(state, event))
        state = select_machine(state).apply(state, event)
        files.append([event], state)
    elif attempt:
        files.record_attempt(attempt, state.progress.evaluations)
        console.print_line(f"{files.alias}: its process died; going on (attempt {attempt})")
    worktree.refuse_overlap(store, files, state)
    files.requests.clear()
    store.set_current_run(state)
    return state, files


def _refuse_rewritten_history(files: RunFiles) -> None:
    if files.trust is Trust.REWRITTEN:
        files.release()
        raise StateError(
            f"the run {files.alias!r} was rewritten: its files do not have the signature of this machine; "
            "bring them back, or start anew with --loop-task"
        )


def _confirm_unsigned(files: RunFiles, settings: Settings, console: Console) -> None:
    """Ask whether a run that was not signed here may go on; raise `StateError` if not."""
    console.print_line(f"{files.alias}: another machine or another tool began it; its result is at best MONITOR")
    if not (settings.start.yes or console.confirm("Go on with this run?")):
        raise StateError(f"the run {files.alias!r} is not signed here: confirm that it may go on with --loop-yes")


def _describe_reopening(state: RunState, event: Event) -> Iterator[str]:
    """Yield why a run continues: its stop reason, errors of its steps, the answer and the raised limits."""
    if state.is_over:
        yield f"{state.task_alias} continues after {state.stop.reason}"
    yield from ending_text.render_step_errors(state)
    if isinstance(event.payload, Answered) and event.payload.text:
        yield f"answered: {shorten(event.payload.text)}"
    values = event.payload.dump()
    limits = [f"{name} {values[name]:g}" for name in LimitsRaised.model_fields if name in values]
    if limits:
        yield f"raised: {', '.join(limits)}"


def make_reopening_event(state: RunState, settings: Settings, *, can_review: bool) -> Event | None:
    """Return the event that reopens a run or records an answer, or None if there is nothing new.

    A run reopens after an answer, after its limit was raised, or if it waits for a review that can be given now
    (`can_review`). After some stop reasons the command alone is enough. An answer recorded before a crash is not
    recorded again.
    """
    raised = _find_raised_limits(state, settings)
    row = find_row(state.stop.reason)
    limits = {name: value for name, value in raised.items() if name in LimitsRaised.model_fields}
    if is_recorded(state, settings.start.answer):
        return None
    if settings.start.answer or "--loop-answer" in settings.flags:
        return Event.create(state, make_answer(state, settings, limits), read_clock())
    if not state.is_over:
        return None
    if row.reason is Reason.NO_AUTO_RETRY:
        return Event.create(state, build_answer(state, "", limits=limits), read_clock())
    is_reviewed = state.signals.review is not None and can_review
    is_confirmed = row.reason is Reason.UNCONFIRMED and (settings.judging.confirm or is_reviewed)
    if not (is_confirmed or row.reopens_on_resume or any(name in row.reopened_by for name in raised)):
        return None
    payload_class = PoliciesChanged if isinstance(state, ExperimentState) else LimitsRaised
    return Event.create(state, payload_class(**raised), read_clock())


def _find_raised_limits(state: RunState, settings: Settings) -> dict[str, Any]:
    """Return the limits that exceed those of the run, and policies that let an experiment continue."""
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


def make_answer(state: RunState, settings: Settings, limits: Mapping[str, Any]) -> LimitsRaised:
    """Return the payload of the answer on the command line; raises `StateError` if it cannot be given to this run."""
    if state.stop.passed:
        raise StateError(
            f"{state.task_alias} is completed, and has no question to answer: start a new run with --loop-task"
        )
    text = clean_text("--loop-answer", settings.start.answer, "an answer")
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

    Ask nothing after a stop on request, or if the user has just left a review open.
    """
    has_no_question = parse_reason(state.stop.reason) is Reason.USER_STOP or state.is_review_pending
    if not can_ask(settings, console) or not state.is_over or state.stop.passed or has_no_question:
        return None
    text = console.read_answer("your answer (empty leaves the run as it is): ")
    if not text or not text.strip():
        return None
    return replace(
        settings,
        start=StartSettings(**settings.start.values | {"answer": text}),
        commands=CommandSettings(**settings.commands.values | {"resume": state.task_alias}),
    )
