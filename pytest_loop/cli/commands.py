"""Commands around runs: status, list, history, report, stop, clean. None of them starts an iteration."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from pathlib import Path

from pytest_loop.agents.installed_clients import find_clients
from pytest_loop.cli import report
from pytest_loop.cli.runs import Found, at_work, chosen, condition, give, read, result, shown_status
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import Stopped, StopRequested
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason
from pytest_loop.core.reporting import iteration_records, outcome
from pytest_loop.core.reporting.closing_verdict import render_status_block
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import StateError
from pytest_loop.inference.project_files import read_project
from pytest_loop.inference.proposal import render_proposal
from pytest_loop.inference.synthesis import infer_criteria
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.inference.task_refusal import Refusal
from pytest_loop.run import restore
from pytest_loop.settings.command_line import NO_VALUE
from pytest_loop.settings.settings import Settings
from pytest_loop.show import run as show
from pytest_loop.show.agents import agent_lines
from pytest_loop.show.analysis import analysis_lines
from pytest_loop.show.closing import breaker_line
from pytest_loop.store.clock import read_clock
from pytest_loop.store.history import History
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workloads.debrief import debrief

_REFUSED = 4  # pytest's word for a command line that cannot be carried out
Ask = Callable[[str], bool]


def carry_out(name: str, settings: Settings, store: Store, say: PrintLine, ask: Ask) -> int:
    """The exit code of a command."""
    if name == "clean":
        return _clean(settings, store, say, ask)
    plain = {
        "status": _status,
        "list": _list,
        "history": _history,
        "stop": _stop,
        "restore": _restore,
        "agents": _agents,
        "infer": _infer,
        "report": _report,
        "debrief": _debrief,
    }
    return plain[name](settings, store, say)


def _agents(settings: Settings, _store: Store, say: PrintLine) -> int:
    found = find_clients()
    for line in agent_lines(found):
        say(line)
    if settings.output.json:
        give([one.model_dump(mode="json") for one in found], settings.output.json, say)
    return 0


def _infer(settings: Settings, store: Store, say: PrintLine) -> int:
    found = infer_criteria(parse_task(settings.commands.infer or ""), read_project(store.project))
    if isinstance(found, Refusal):
        say(str(found))
        return _REFUSED
    say(render_proposal(found).rstrip("\n"))
    return 0


def _status(settings: Settings, store: Store, say: PrintLine) -> int:
    files = chosen(store, settings.start.alias or settings.commands.status)
    state, history = files.read()
    if settings.output.json:
        give(result(files, state, history), settings.output.json, say)
        return 0
    if settings.output.status_block:
        for line in render_status_block(state, show.following(state)):
            say(line)
        return 0
    for line in show.table(show.status_rows([(state, shown_status(state, files))], is_detailed=True)):
        say(line)
    say(breaker_line(state))
    _say_damage(history, say)
    if state.is_over:
        for line in show.end_lines(state):
            say(line)
    else:
        say(f"go on: {show.go_on(state)}" if condition(state, files) else f"working: process {files.pid}")
    return 0


def _say_damage(history: History, say: PrintLine) -> None:
    for problem in history.damage:
        say(f"damage: {problem}")


def _list(settings: Settings, store: Store, say: PrintLine) -> int:
    found: list[Found] = []
    broken: dict[str, str] = {}
    for files in store.list_runs():
        one = read(files)
        if isinstance(one, StateError):
            broken[files.alias] = str(one)
        else:
            found.append(one)
    if settings.output.json:
        unreadable = [{"task_alias": alias, "status": None, "error": error} for alias, error in broken.items()]
        give([*(result(*one) for one in found), *unreadable], settings.output.json, say)
        return 0
    if not found and not broken:
        say(f"there is no run in {store.root}")
    if found:
        rows = show.status_rows(((state, shown_status(state, files)) for files, state, _ in found), is_detailed=False)
        for line in show.table(rows):
            say(line)
    for alias, error in broken.items():
        say(f"{alias}: {error}")
    return 0


def _history(settings: Settings, store: Store, say: PrintLine) -> int:
    files = chosen(store, settings.start.alias or settings.commands.history)
    state, history = files.read()
    told = iteration_records.build_records(state, history.events)
    if settings.output.json:
        whole = {
            "run": result(files, state, history) | {"analytics": iteration_records.build_analysis(state, told)},
            "iterations": [one.model_dump(mode="json") for one in told],
            "events": [event.model_dump(mode="json") for event in history.events],
        }
        give(whole, settings.output.json, say)
        return 0
    for line in (*show.history_lines(history.events), *analysis_lines(state, told)):
        say(line.rstrip())
    _say_damage(history, say)
    return 0


def _report(settings: Settings, store: Store, say: PrintLine) -> int:
    files = chosen(store, settings.start.alias)
    state, history = files.read()
    report.write(settings, state, history.events, say, shown_status(state, files))
    _say_damage(history, say)
    if settings.output.json:
        give(result(files, state, history), settings.output.json, say)
    return 0


def _stop(settings: Settings, store: Store, say: PrintLine) -> int:
    files = at_work(store, settings.start.alias, "stop")
    words = Reason.USER_STOP.value if settings.commands.stop in (None, NO_VALUE) else str(settings.commands.stop)
    if files.is_busy:
        files.request_stop(words)
        say(f"asked {files.alias} to stop ({words})")
    elif before := _ended(files, store, words):
        say(f"{files.alias} is over already: {before.status.value}, {before.stop.reason}")
    else:
        say(f"stopped {files.alias} ({words})")
    if settings.output.json:
        give(result(files, *files.read()), settings.output.json, say)
    return 0


def _ended(files: RunFiles, store: Store, words: str) -> RunState | None:
    """End a run that nobody works on; gives its state if it was over already.

    The reason is the machine's own, so that no words of anybody make it a success.
    """
    files.acquire()
    try:
        before, history = files.read()
        files.repair(history)
        after = before
        if not before.is_over:
            decision = outcome.decide(before, Reason.USER_STOP)
            payloads = (StopRequested(reason=words), Stopped(reason=Reason.USER_STOP.value, decision=decision))
            events = [Event.create(before, payload, read_clock()) for payload in payloads]
            after = reduce(select_machine(before).apply, events, before)
            files.append(events, after)
        store.clear_current_run(after)
    finally:
        files.release()
    return before if before.is_over else None


def _debrief(settings: Settings, store: Store, say: PrintLine) -> int:
    debriefed(chosen(store, settings.start.alias), settings.workload.debrief, say)
    return 0


def debriefed(files: RunFiles, path: str, say: PrintLine) -> None:
    """Write the debrief of an experiment, made from its events alone."""
    state, history = files.read()
    if not isinstance(state, ExperimentState):
        raise StateError(f"--loop-debrief: expected a run of a workload, found {files.alias}, which has no cases")
    try:
        Path(path).write_text(debrief(history.events), encoding="utf-8", errors="replace")
    except OSError as error:
        raise StateError(f"--loop-debrief: cannot write {path}: {error.strerror or error}") from None
    say(f"wrote {path}")


def _restore(settings: Settings, store: Store, say: PrintLine) -> int:
    """The files of an iteration that the run has judged."""
    files = chosen(store, settings.start.alias)
    if files.is_busy:
        raise StateError(f"{files.alias} is running: stop it first with --loop-stop --loop-alias {files.alias}")
    state, history = files.read()
    if state.setup.seal is None:
        raise StateError(f"{files.alias} has improved one document, whose versions are not kept")
    project = restore.open_project(store.project, files, state.setup.seal)
    try:
        done = restore.restore_iteration(project, history.events, settings.commands.restore or 0)
    finally:
        project.close()
    for path, reason in done.lost:
        say(f"{path}: {reason}")
    counts = f"{len(done.restored)} written, {len(done.removed)} removed"
    say(f"the files are those of iteration {settings.commands.restore} of {files.alias}: {counts}")
    return 1 if done.lost else 0


def _clean(settings: Settings, store: Store, say: PrintLine, ask: Ask) -> int:
    wanted = (
        store.list_runs()
        if settings.commands.clean == "all"
        else [store.get_existing_run(str(settings.commands.clean))]
    )
    free = [files for files in wanted if not files.is_busy]
    kept = [files.alias for files in wanted if files not in free]
    for alias in kept:
        say(f"{alias} is running and stays: stop it first with --loop-stop --loop-alias {alias}")
    names = [files.alias for files in free]
    if free and not settings.start.yes and not ask(f"delete {', '.join(names)} for good?"):
        say("nothing was deleted; --loop-yes deletes without asking")
        kept, names, free = [*kept, *names], [], []
    for files in free:
        found = read(files)
        if isinstance(found, tuple):
            restore.remove_checkpoints(store.project, found[1])
        restore.remove_worktree(store.project, files)
        store.remove_run(files)
    if names:
        say(f"deleted {', '.join(names)}")
    elif not wanted:
        say(f"there is no run in {store.root}")
    if settings.output.json:
        give({"deleted": names, "kept": kept}, settings.output.json, say)
    return 1 if kept else 0
