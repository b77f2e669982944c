"""Find the run that a command is about, and describe its state."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.errors import StateError
from pytest_loop.settings.command_line import NO_VALUE
from pytest_loop.store.history import History
from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

_CONDITIONS = {Owner.ALIVE: "", Owner.DEAD: "crashed", Owner.NONE: "paused"}


class SavedRun(NamedTuple):
    """A run with the state and history that its files hold."""

    files: RunFiles
    state: RunState
    history: History


def read_run(files: RunFiles) -> SavedRun | StateError:
    """Return a run, or the error of reading its files."""
    try:
        return SavedRun(files, *files.read())
    except StateError as error:
        return error


def find_run(store: Store, alias: str | None) -> RunFiles:
    """Return the named run, else the current one, else the latest; `NO_VALUE` counts as no name."""
    if alias and alias != NO_VALUE:
        return store.find_run(alias)
    current = store.find_current_run()
    if current is not None and not _clear_stale_pointer(current, store):
        return current
    all_files = store.list_runs()
    if saved_runs := [run for files in all_files if isinstance(run := read_run(files), SavedRun)]:
        return max(saved_runs, key=lambda run: run.state.updated_at).files
    if all_files:  # none can be read: let the command report why
        return all_files[0]
    raise StateError(f"there is no run in {store.root}: start one with --loop-task")


def _clear_stale_pointer(files: RunFiles, store: Store) -> bool:
    """Make another run the current one if this run is over; return whether it was."""
    run = read_run(files)
    if isinstance(run, StateError) or not run.state.is_over or files.is_busy:
        return False
    store.update_current_run(run.state)  # a process that crashes does not do this
    return True


def find_active_run(store: Store, alias: str | None, purpose: str) -> RunFiles:
    """Return the named, else the only busy, else the current run; raise `StateError` for several or no active runs.

    `purpose` is a verb for the error, such as `stop`.
    """
    if alias and alias != NO_VALUE:
        return store.find_run(alias)
    busy_runs = store.list_busy_runs()
    if len(busy_runs) > 1:
        names = ", ".join(files.alias for files in busy_runs)
        raise StateError(f"several runs are active ({names}): name one with --loop-alias")
    files = busy_runs[0] if busy_runs else store.find_current_run()
    if files is None:
        raise StateError(f"there is no active run to {purpose}: pytest-loop list shows all runs")
    return files


def get_exit_code(state: RunState) -> int:
    """Return the exit code for a run that is over."""
    return int(pytest.ExitCode.OK if state.status is Status.COMPLETED else pytest.ExitCode.TESTS_FAILED)


def describe_condition(state: RunState, files: RunFiles) -> str:
    """Return "crashed" or "paused" for an unfinished run without a process, empty for all others."""
    return _CONDITIONS[files.owner] if state.status is Status.RUNNING else ""


def describe_status(state: RunState, files: RunFiles) -> str:
    """Return the status of a run with its condition."""
    condition = describe_condition(state, files)
    return f"{state.status.value} ({condition})" if condition else state.status.value
