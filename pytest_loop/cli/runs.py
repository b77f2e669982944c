"""Which run is meant, what became of it, and what machines are told of it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.core.reporting import outcome
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import StateError
from pytest_loop.settings.command_line import NO_VALUE
from pytest_loop.store.history import History
from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

Found = tuple[RunFiles, RunState, History]
_CONDITIONS = {Owner.ALIVE: "", Owner.DEAD: "crashed", Owner.NONE: "paused"}


def chosen(store: Store, alias: str | None) -> RunFiles:
    """The run that is meant: the one named, else the active one, else the latest."""
    if alias and alias != NO_VALUE:
        return store.find_run(alias)
    current = store.find_current_run()
    if current is not None and not _is_left_behind(current, store):
        return current
    readable = [found for files in store.list_runs() if isinstance(found := read(files), tuple)]
    if readable:
        return max(readable, key=lambda one: one[1].updated_at)[0]
    if runs := store.list_runs():
        return runs[0]
    raise StateError(f"there is no run in {store.root}: start one with --loop-task")


def _is_left_behind(files: RunFiles, store: Store) -> bool:
    """Whether the pointer names a run that is over: its process died before it could take the pointer away."""
    found = read(files)
    if isinstance(found, StateError) or not found[1].is_over or files.is_busy:
        return False
    store.clear_current_run(found[1])
    return True


def read(files: RunFiles) -> Found | StateError:
    """A run with its history, or why it cannot be read."""
    try:
        return (files, *files.read())
    except StateError as error:
        return error


def at_work(store: Store, alias: str | None, doing: str) -> RunFiles:
    """The run that is named, or the one that is active: which of several is not for us to guess."""
    if alias and alias != NO_VALUE:
        return store.find_run(alias)
    busy = store.list_busy_runs()
    if len(busy) > 1:
        names = ", ".join(one.alias for one in busy)
        raise StateError(f"several runs are active ({names}): name one with --loop-alias")
    found = busy[0] if busy else store.find_current_run()
    if found is None:
        raise StateError(f"there is no active run to {doing}: --loop-list shows all of them")
    return found


def condition(state: RunState, files: RunFiles) -> str:
    """What became of a run that has not ended and that nobody works on; empty for all others."""
    return _CONDITIONS[files.owner] if state.status is Status.RUNNING else ""


def shown_status(state: RunState, files: RunFiles) -> str:
    """The status in words for a person."""
    found = condition(state, files)
    return f"{state.status.value} ({found})" if found else state.status.value


def give(data: Any, path: str, say: PrintLine) -> None:
    """JSON for machines, into a file or to standard output."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text.encode("utf-8", "replace").decode())
        sys.stdout.flush()
        return
    try:
        Path(path).write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise StateError(f"--loop-json: cannot write {path}: {error.strerror or error}") from None
    say(f"wrote {path}")


def result(files: RunFiles, state: RunState, history: History) -> dict[str, Any]:
    """A run for machines: its result, what became of its process, and what is wrong with its files."""
    about = {"condition": condition(state, files) or None, "damage": history.damage}
    return outcome.build_result(state, history.events, str(files.history)) | about
