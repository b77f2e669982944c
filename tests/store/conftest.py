from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

MakeEvent = Callable[..., Event]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


@pytest.fixture
def files(store: Store) -> Iterator[RunFiles]:
    """The files of a run that this process works on."""
    files_of_run = store.get_run("guide")
    files_of_run.acquire()
    yield files_of_run
    files_of_run.release()


@pytest.fixture
def event() -> MakeEvent:
    def make_event(kind: str, iteration: int = 1, **payload: Any) -> Event:
        return Event(
            ts="2026-01-01T00:00:00.000Z",
            run_id="guide-1",
            iteration=iteration,
            phase=Phase.A,
            step="PLAN",
            event=kind,
            payload=payload,
        )

    return make_event


@pytest.fixture
def started(files: RunFiles, event: MakeEvent) -> RunState:
    """A run with its first event on disk."""
    state = RunState(run_id="guide-1", task_alias="guide", task=Task(prompt="Write a guide"), created_at="then")
    first = event("run_started", state=state.model_dump(mode="json"))
    files.append([first], state)
    return state


@pytest.fixture
def planned(files: RunFiles, started: RunState, event: MakeEvent) -> RunState:
    """A run with three events on disk, the last of an unknown kind."""
    events = [event("plan_created", plan=["one", "two"]), event("coffee_made", cups=2)]
    state = started
    for planned_event in events:
        state = RUN_MACHINE.apply(state, planned_event)
    files.append(events, state)
    return state
