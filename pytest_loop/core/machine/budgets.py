"""The budgets of a run: money, tokens and time."""

from __future__ import annotations

from pytest_loop.core.model.run_state import RunState, sum_known
from pytest_loop.core.model.vocabulary import Place


def get_budgets(state: RunState) -> dict[str, tuple[float | None, float | None]]:
    """Return for each budget the amount used, None if unknown, and its limit, None if there is none."""
    usage, limits = state.progress.usage, state.setup.limits
    estimate = usage.estimated_usd if limits.counts_estimates else None
    return {
        "usd": (sum_known((usage.cost_usd, estimate)), limits.usd),
        "tokens": (usage.tokens, limits.tokens),
        "seconds": (state.completed_phase_seconds, state.max_completed_phase_seconds),
    }


def is_budget_exceeded(state: RunState) -> bool:
    """Completed steps took too long, or, before an agent is asked again, money or tokens are used up."""
    names = ("seconds", "usd", "tokens") if _is_agent_next(state) else ("seconds",)
    budgets = get_budgets(state)
    return any(is_used_up(*budgets[name]) for name in names)


def is_used_up(used: float | None, limit: float | None) -> bool:
    """Return whether a limit is reached; False if the amount used is unknown."""
    return used is not None and limit is not None and used >= limit


def _is_agent_next(state: RunState) -> bool:
    """Return whether the run is going to ask an agent before it evaluates again."""
    if state.current_step is Place.CRITIQUE:
        return not state.is_ready_for_b
    places = (Place.PRODUCE_PREPARE, Place.PREPARE, Place.REFINE)
    return state.current_step in places and not state.is_refined


def is_iteration_limit_reached(state: RunState) -> bool:
    """`max_iterations` iterations were judged."""
    return state.iteration >= state.max_iterations
