"""Automatic stops: repeated failures, a flat score, and high confidence."""

from __future__ import annotations

from fractions import Fraction

from pytest_loop.core.machine.score_trend import is_flat
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import sum_weights
from pytest_loop.core.model.run_state import RunState

# Below this score, confidence does not end a run, and no iteration counts as verified, whatever the threshold.
GOOD_SCORE = 0.7
# One iteration is too few to be confident.
FIRST_CONFIDENT_ITERATION = 2


def count_repetitions(state: RunState) -> dict[str, tuple[int, int]]:
    """Return for each breaker its count of repetitions, and its limit; a limit of 0 switches it off.

    An undone edit reaches the limit of thrashing at once.
    """
    breakers, attempts = state.setup.breakers, state.progress.attempts
    is_current = bool(attempts) and attempts[-1].iteration >= state.progress.agent_since
    rewrites = attempts[-1].rewrites if is_current else 0
    rewrites = max(rewrites, breakers.thrashing) if has_undone_edit(state) else rewrites
    return {
        "stuck": (_count_stuck(state), breakers.stuck),
        "same_error": (_count_same_errors(state), breakers.same_error),
        "thrashing": (rewrites, breakers.thrashing),
        "stagnation": (state.stagnation_count, breakers.stagnation),
    }


def find_tripped_breakers(state: RunState) -> frozenset[str]:
    """Return the names of the breakers that have reached their limits; none if the last edit fixed a rule."""
    if _has_fixed_rule(state):
        return frozenset()
    return frozenset(name for name, (times, limit) in count_repetitions(state).items() if 0 < limit <= times)


def _has_fixed_rule(state: RunState) -> bool:
    """Return whether the last edit fixed a rule, other than by undoing the edit before it."""
    attempts = state.progress.attempts
    return bool(attempts) and attempts[-1].fixed > 0 and not has_undone_edit(state)


def _count_stuck(state: RunState) -> int:
    last = state.progress.attempts[-1] if state.progress.attempts else None
    return _count_since(state, last.same_since) if last and last.failing else 0


def _count_same_errors(state: RunState) -> int:
    """Count the latest iterations in which every failing rule gave the same message; warnings do not count."""
    attempts = state.progress.attempts
    if not state.evaluation or not state.evaluation.failed or not attempts:
        return 0
    failing = attempts[-1].failing
    failed = [complaint.id for complaint in state.evaluation.failed]
    return min(_count_since(state, failing[name].since) if name in failing else 0 for name in failed)


def _count_since(state: RunState, since: int) -> int:
    """Count the iterations from `since` to the last one, without the iterations of earlier agents."""
    return max(0, state.iteration - max(since, state.progress.agent_since) + 1)


def has_undone_edit(state: RunState) -> bool:
    """Return whether the last edit restored what the edit before it had changed."""
    attempts = [attempt for attempt in state.progress.attempts[-3:] if attempt.iteration >= state.progress.agent_since]
    hashes = [attempt.artifact_hash for attempt in attempts]
    return len(hashes) == 3 and bool(hashes[0]) and hashes[0] == hashes[2] != hashes[1]


def is_stuck(state: RunState) -> bool:
    """The same rules failed in `stuck` iterations in a row."""
    return "stuck" in find_tripped_breakers(state)


def repeats_errors(state: RunState) -> bool:
    """Every rule that still fails gave the same message in `same_error` iterations in a row."""
    return "same_error" in find_tripped_breakers(state)


def is_thrashing(state: RunState) -> bool:
    """An edit undoes the one before (A, B, A), or one file was rewritten `thrashing` times in an iteration."""
    return "thrashing" in find_tripped_breakers(state)


def is_stagnating(state: RunState) -> bool:
    """The score gained less than `min_gain`, `stagnation` times, with no blocker."""
    return "stagnation" in find_tripped_breakers(state)


def is_stalled(state: RunState) -> bool:
    """Return whether the current agent has stopped making progress."""
    return bool(find_tripped_breakers(state)) or is_plateau(state) or is_diminishing(state)


def is_plateau(state: RunState) -> bool:
    """The score of two iterations in a row changed by less than the share `plateau`."""
    return not _has_fixed_rule(state) and is_flat(_list_scores(state), state.setup.breakers.plateau)


def is_diminishing(state: RunState) -> bool:
    """The score of two iterations in a row changed by less than the share `diminishing`."""
    return not _has_fixed_rule(state) and is_flat(_list_scores(state), state.setup.breakers.diminishing)


def _list_scores(state: RunState) -> list[float]:
    """Return the scores that the current agent reached in this phase, without those of void evaluations."""
    since = state.progress.agent_since
    return [
        attempt.score
        for attempt in state.progress.attempts
        if not attempt.void and attempt.phase is state.phase and attempt.iteration >= since
    ]


def is_confident(state: RunState, evaluation: Evaluation) -> bool:
    """Return whether the share `confidence` of all weight was verified by more than an opinion."""
    limit = state.setup.breakers.confidence
    if not limit or state.iteration < FIRST_CONFIDENT_ITERATION or evaluation.score < GOOD_SCORE:
        return False
    return compute_confidence(state, evaluation) >= Fraction(repr(limit))


def compute_confidence(state: RunState, evaluation: Evaluation) -> Fraction:
    """Return the share of the active weight that passes and rests on more than an opinion."""
    rules = state.criteria.get_active_rules(evaluation.phase)
    not_passing = {result.id for result in evaluation.rule_results}
    total = sum_weights(rules)
    sure = sum_weights(rule for rule in rules if rule.id not in not_passing and rule.proof.is_strong)
    return sure / total if total else Fraction(0)
