"""Events made from the name of a kind and plain data, as they are read from a history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind


def make_event(state: RunState, kind: str, payload: Mapping[str, Any], ts: str = "now") -> Event:
    """Return what happens to a run where it stands; the baseline of an experiment is iteration 0."""
    return Event(
        ts=ts,
        run_id=state.run_id,
        iteration=0 if kind == Kind.BASELINE_DONE.value else state.iteration,
        phase=state.phase,
        step=state.current_step.value,
        event=kind,
        payload=dict(payload),
    )
