"""Render the state and history of a run as short text (with `-v`, `run_tables` shows all fields and events)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.run_machine import IllegalTransition
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Place
from pytest_loop.show.ending_text import format_cost, render_end
from pytest_loop.show.look import Look, format_clock, shorten_agent
from pytest_loop.show.run_story import RunStory

_ACTIVITIES = {
    Place.PLAN: "the run plans",
    Place.PRODUCE_PREPARE: "{agent} writes",
    Place.PREPARE: "sentences are turned into checks",
    Place.EVALUATE: "pytest judges",
    Place.CRITIQUE: "waiting for the next step or an answer",
    Place.REFINE: "{agent} edits",
}


def render_position(state: RunState, status: str, look: Look) -> Iterator[str]:
    """Render the position of a run; leave the result of a run that is over to `render_end`."""
    alias, iteration = look.paint(state.task_alias, "bold"), f"iteration {state.iteration} of {state.max_iterations}"
    if state.is_over:
        yield from look.wrap_parts(alias, iteration)
    else:
        yield from look.wrap_parts(
            alias, status, iteration, _count_passing(state), _format_time(state), format_cost(state)
        )


def _count_passing(state: RunState) -> str:
    evaluation = state.evaluation
    return f"{evaluation.passing} of {evaluation.total} pass" if evaluation else "not judged yet"


def _format_time(state: RunState) -> str:
    """Return how long the finished steps took, and the limit if there is one."""
    used, limit = get_budgets(state)["seconds"]
    return format_clock(used or 0) + (f" of {format_clock(limit)}" if limit else "")


def describe_activity(state: RunState, seconds: float) -> str:
    """Describe the current step of a working run, and how many seconds it has taken."""
    agents = state.setup.agents
    agent = agents[min(state.progress.agent_index, len(agents) - 1)] if agents else "the agent"
    activity = _ACTIVITIES[state.current_step].format(agent=shorten_agent(agent))
    return f"now: {activity}, for {format_clock(max(seconds, 0))}"


def render_story(events: Sequence[Event], state: RunState, look: Look, diffstat: str) -> list[str]:
    """Render a run from its events as it was shown live; empty if the events do not suffice."""
    try:
        lines = list(_tell_events(events, look))
    except (IllegalTransition, ValueError, LookupError):
        return []
    if lines and state.is_over:
        lines += render_end(state, replace(look, verbosity=-2), diffstat)
    return lines


def _tell_events(events: Sequence[Event], look: Look) -> Iterator[str]:
    story = RunStory(look)
    state: RunState | None = None
    for event in events:
        if isinstance(event.payload, RunStarted):  # the first event, or a complete state written after damage
            state = event.payload.state
        elif state is not None:
            state = select_machine(state).apply(state, event)
            yield from story.tell(event, state)
