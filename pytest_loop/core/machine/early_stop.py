"""Reasons to stop early that a person can switch on: the score stays as it is, or what passes is beyond doubt."""

from __future__ import annotations

from fractions import Fraction

from pytest_loop.core.machine.score_trend import is_flat
from pytest_loop.core.model.rules import sum_weights
from pytest_loop.core.model.run_state import Assessment, RunState

# What is not even as good as this is neither ended by confidence nor chosen because it passed, whatever the threshold.
GOOD = 0.7
# One iteration alone says nothing about the next.
FIRST_ASKED = 2


def is_plateau(state: RunState) -> bool:
    """The score of two iterations in a row changed by less than the share `loop_plateau`."""
    return is_flat(_scores(state), state.breakers.plateau)


def is_diminishing(state: RunState) -> bool:
    """The score of two iterations in a row changed by less than the share `loop_diminishing`."""
    return is_flat(_scores(state), state.breakers.diminishing)


def _scores(state: RunState) -> list[float]:
    """What counts for the agent whose turn it is: sound evaluations of this phase since it came."""
    return [
        one.score
        for one in state.attempts
        if not one.void and one.phase is state.phase and one.iteration >= state.rung_since
    ]


def is_confident(state: RunState, one: Assessment) -> bool:
    """Whether the share `loop_confidence` of all weight was verified by something stronger than an opinion."""
    limit = state.breakers.confidence
    if not limit or state.iteration < FIRST_ASKED or one.score < GOOD:
        return False
    return confidence(state, one) >= Fraction(repr(limit))


def confidence(state: RunState, one: Assessment) -> Fraction:
    """The share of the active weight that passes and rests on more than an opinion."""
    rules = state.criteria.get_active_rules(one.phase)
    others = {result.id for result in one.rule_results}
    whole = sum_weights(rules)
    sure = sum_weights(rule for rule in rules if rule.id not in others and rule.proof.is_strong)
    return sure / whole if whole else Fraction(0)
