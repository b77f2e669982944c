"""The budgets of a run: money, tokens and time."""

from __future__ import annotations

from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.vocabulary import Place


def get_budgets(state: RunState) -> dict[str, tuple[float | None, float | None]]:
    """Return the amount used of each limit, None if unknown, and the limit itself, None without one."""
    usage, limits = state.progress.usage, state.setup.limits
    return {
        "usd": (usage.plus(_count_estimate(state)).cost_usd, limits.usd),
        "tokens": (usage.tokens, limits.tokens),
        "seconds": (state.completed_phase_seconds, state.max_completed_phase_seconds),
    }


def _count_estimate(state: RunState) -> Usage:
    is_counted = state.setup.limits.counts_estimates
    return Usage(cost_usd=state.progress.usage.estimated_usd if is_counted else None)


def is_budget_exceeded(state: RunState) -> bool:
    """Completed steps took too long, or, before an agent is asked again, money or tokens are used up."""
    names = ("seconds", "usd", "tokens") if _asks_agent(state) else ("seconds",)
    budgets = get_budgets(state)
    return any(is_used_up(*budgets[name]) for name in names)


def is_used_up(used: float | None, limit: float | None) -> bool:
    """Return whether a limit is reached, as far as that is known."""
    return used is not None and limit is not None and used >= limit


def _asks_agent(state: RunState) -> bool:
    if state.current_step is Place.CRITIQUE:
        return not state.is_ready_for_b
    asking = (Place.PRODUCE_PREPARE, Place.PREPARE, Place.REFINE)
    return state.current_step in asking and not state.is_refined


def is_iteration_limit_reached(state: RunState) -> bool:
    """`max_iterations` iterations were judged."""
    return state.iteration >= state.max_iterations
