"""Why a run ends: one ordered list of small predicates, asked after every EVALUATE."""

from __future__ import annotations

from collections.abc import Callable

from pytest_loop.core.machine.early_stop import is_confident, is_diminishing, is_plateau
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import Assessment, Opinion, Place, Reason, RunState
from pytest_loop.core.workload.experiment_state import due_note
from pytest_loop.core.workload.hypotheses import OnPlateau, OnRegression

MOST_ERRORS = 2
# What can end a run between evaluations: nothing is judged there, so that nothing there is a success.
INTERRUPTIONS = frozenset((Reason.PHASE_ERROR, Reason.CALIBRATION, Reason.USER_STOP, Reason.BUDGET_EXCEEDED))


def stop_reason(state: RunState) -> Reason | None:
    """The first reason that holds where the run stands; success is never relabelled by a resource."""
    asked = _asked(state)
    return next((reason for reason, holds in PREDICATES if reason in asked and holds(state)), None)


def is_borne_out(reason: Reason, state: RunState) -> bool:
    """Whether a reason holds where evaluations are decided on, whatever comes before it in the order."""
    return state.current_step is Place.CRITIQUE and dict(PREDICATES)[reason](state)


def _asked(state: RunState) -> frozenset[Reason]:
    if state.current_step is Place.CRITIQUE and is_ready_for_b(state):
        # B decides. Where it adds no rules that costs nothing, so that nothing may come in between.
        return INTERRUPTIONS if state.criteria.has_phase_b else frozenset()
    if state.current_step is Place.CRITIQUE and state.notebook and due_note(state.notebook):
        return frozenset()
    if state.current_step is Place.CRITIQUE:
        return frozenset(Reason)
    if is_refined(state):
        return INTERRUPTIONS | {Reason.ITERATION_LIMIT}
    return INTERRUPTIONS


def is_ready_for_b(state: RunState) -> bool:
    """Whether phase A passes; an experiment has one phase."""
    if state.notebook is not None:
        return False
    return state.phase is Phase.A and state.evaluation is not None and state.evaluation.is_reached


def is_refined(state: RunState) -> bool:
    """Whether the critique has been answered, so that the next iteration begins."""
    return state.current_step is Place.REFINE and state.critique is None


def _must_not(state: RunState) -> bool:
    """A must-not rule became true."""
    return bool(state.evaluation and state.evaluation.must_not)


def _last_word(state: RunState) -> Assessment | None:
    """The evaluation that may be a success: of phase B, and who has a say, agent or person, agrees that it is done."""
    is_refused = state.exit_signal is False or is_rejected(state)
    return state.evaluation if state.phase is Phase.B and not is_refused else None


def is_rejected(state: RunState) -> bool:
    """Whether a person wants something else, although the rules pass."""
    return state.review is not None and state.review.status is Opinion.REJECT


def _is_waiting(state: RunState) -> bool:
    """Whether somebody has to say something before it is a success: a rule is assumed, or a review is outstanding."""
    is_pending = state.review is not None and state.review.status is Opinion.PENDING
    return is_pending or bool(state.evaluation and state.evaluation.assumptions)


def _threshold_reached(state: RunState) -> bool:
    """Phase B passes, the agent's exit signal (where it gives one) is true, and no rule rests on an assumption."""
    one = _last_word(state)
    return one is not None and one.is_reached and not _is_waiting(state)


def _converged(state: RunState) -> bool:
    """All cases of a workload pass (but for those held out, whose gap is told)."""
    is_void = state.evaluation is not None and state.evaluation.void
    return state.notebook is not None and state.notebook.has_converged and not is_void


def _no_major_issues(state: RunState) -> bool:
    """Phase B, no fail-severity rule fails, with the same two conditions."""
    one = _last_word(state)
    return one is not None and one.is_clean and not _is_waiting(state)


def _high_confidence(state: RunState) -> bool:
    """Phase B passes, `loop_confidence` of it beyond an opinion: then an agent that wants to go on is not asked."""
    one = state.evaluation if state.phase is Phase.B and not is_rejected(state) else None
    return one is not None and one.is_reached and not _is_waiting(state) and is_confident(state, one)


def _unconfirmed(state: RunState) -> bool:
    """It would be a success, but for a rule that nobody has confirmed, or a review that is outstanding."""
    one = _last_word(state)
    return one is not None and one.is_clean and _is_waiting(state)


def _blocked(state: RunState) -> bool:
    """The agent says, naming a rule and a reason, that the rule cannot be met honestly."""
    return state.blocked is not None


def _user_stop(state: RunState) -> bool:
    """Asked for."""
    return bool(state.stop_asked)


def _regression(state: RunState) -> bool:
    """A case of a workload passed before and fails now, and `loop_on_regression` or a person says to stop."""
    return state.notebook is not None and state.notebook.regression is OnRegression.STOP


def _plateau(state: RunState) -> bool:
    """Twice no better than the best, and `loop_on_plateau` or a person says to stop."""
    return state.notebook is not None and state.notebook.plateau is OnPlateau.STOP


def _calibration(state: RunState) -> bool:
    """The first case of a workload could not be run and judged in three tries."""
    return state.notebook is not None and state.notebook.is_calibrated is False


def _stuck(state: RunState) -> bool:
    """The same rules failed in so many iterations in a row (`loop_stuck`)."""
    return _is_tripped(state, "stuck")


def _times_stuck(state: RunState) -> int:
    last = state.attempts[-1] if state.attempts else None
    return _times(state, last.same_since) if last and last.failing else 0


def _same_error(state: RunState) -> bool:
    """Every rule that still fails has said the same in so many iterations in a row (`loop_same_error`)."""
    return _is_tripped(state, "same_error")


def _times_the_same(state: RunState) -> int:
    """Warnings do not count: where nothing else is left, the score says whether there is progress."""
    if not state.evaluation or not state.evaluation.failed or not state.attempts:
        return 0
    failing = state.attempts[-1].failing
    return min(_times(state, failing[one.id].since) if one.id in failing else 0 for one in state.evaluation.failed)


def _times(state: RunState, since: int) -> int:
    """In how many iterations; what failed before the agent came whose turn it is, is not its own failure."""
    return max(0, state.iteration - max(since, state.rung_since) + 1)


def _is_tripped(state: RunState, name: str) -> bool:
    times, limit = breakers(state)[name]
    return 0 < limit <= times


def _thrashing(state: RunState) -> bool:
    """An edit undoes the one before (A, B, A), or one file was rewritten `loop_thrashing` times in an iteration."""
    return _is_tripped(state, "thrashing")


def is_undone(state: RunState) -> bool:
    """Whether the last edit brought back what the edit before it had changed."""
    hashes = [one.artifact_hash for one in state.attempts[-3:] if one.iteration >= state.rung_since]
    return len(hashes) == 3 and bool(hashes[0]) and hashes[0] == hashes[2] != hashes[1]


def _stagnation(state: RunState) -> bool:
    """So many times (`loop_stagnation`) the score gained less than `loop_min_gain` with no blocker."""
    return _is_tripped(state, "stagnation")


def breakers(state: RunState) -> dict[str, tuple[int, int]]:
    """How often each thing has repeated, and how often is too often; 0 there is never."""
    last = state.attempts[-1] if state.attempts else None
    rewrites = last.rewrites if last and last.iteration >= state.rung_since else 0
    rewrites = max(rewrites, state.breakers.thrashing) if is_undone(state) else rewrites
    return {
        "stuck": (_times_stuck(state), state.breakers.stuck),
        "same_error": (_times_the_same(state), state.breakers.same_error),
        "thrashing": (rewrites, state.breakers.thrashing),
        "stagnation": (state.stagnation_count, state.breakers.stagnation),
    }


def is_stalled(state: RunState) -> bool:
    """Whether the agent whose turn it is has stopped making progress."""
    return any(is_so(state) for is_so in (_stuck, _same_error, _thrashing, _stagnation, is_plateau, is_diminishing))


def _budget_exceeded(state: RunState) -> bool:
    """Completed steps took too long, or, before an agent is asked again, money or tokens are used up."""
    asked = ("seconds", "usd", "tokens") if _asks_an_agent(state) else ("seconds",)
    used = budgets(state)
    return any(_is_used_up(*used[name]) for name in asked)


def _is_used_up(used: float | None, limit: float | None) -> bool:
    return used is not None and limit is not None and used >= limit


def _asks_an_agent(state: RunState) -> bool:
    if state.current_step is Place.CRITIQUE:
        return not is_ready_for_b(state)
    asking = (Place.PRODUCE_PREPARE, Place.PREPARE, Place.REFINE)
    return state.current_step in asking and not is_refined(state)


def budgets(state: RunState) -> dict[str, tuple[float | None, float | None]]:
    """What was used of each limit; None is unknown on the left, unlimited on the right."""
    return {
        "usd": (state.usage.cost_usd, state.limits.usd),
        "tokens": (state.usage.tokens, state.limits.tokens),
        "seconds": (state.completed_phase_seconds, state.max_completed_phase_seconds),
    }


def _iteration_limit(state: RunState) -> bool:
    """`max_iterations` iterations were judged."""
    return state.iteration >= state.max_iterations


def _phase_error(state: RunState) -> bool:
    """A step broke its contract twice, or cannot be carried out at all."""
    return any(one.times >= MOST_ERRORS for one in state.troubles.values())


PREDICATES: tuple[tuple[Reason, Callable[[RunState], bool]], ...] = (
    (Reason.PHASE_ERROR, _phase_error),
    (Reason.CALIBRATION, _calibration),
    (Reason.MUST_NOT, _must_not),
    (Reason.THRESHOLD_REACHED, _threshold_reached),
    (Reason.CONVERGED, _converged),
    (Reason.NO_MAJOR_ISSUES, _no_major_issues),
    (Reason.HIGH_CONFIDENCE, _high_confidence),
    (Reason.UNCONFIRMED, _unconfirmed),
    (Reason.BLOCKED, _blocked),
    (Reason.USER_STOP, _user_stop),
    (Reason.REGRESSION, _regression),
    (Reason.STUCK, _stuck),
    (Reason.SAME_ERROR, _same_error),
    (Reason.THRASHING, _thrashing),
    (Reason.STAGNATION, _stagnation),
    (Reason.QUALITY_PLATEAU, is_plateau),
    (Reason.DIMINISHING_RETURNS, is_diminishing),
    (Reason.PLATEAU, _plateau),
    (Reason.BUDGET_EXCEEDED, _budget_exceeded),
    (Reason.ITERATION_LIMIT, _iteration_limit),
)
