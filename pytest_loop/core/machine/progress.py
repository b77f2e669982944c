"""How far an evaluation brought a run: its attempts, its best score, and what fails since when."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import Assessment, Attempt, Best, Failing, RunState

KEPT_ATTEMPTS = 8
OPEN_SHOWN = 5
_TOLERANCE = 1e-9


def judged(state: RunState, payload: Mapping[str, Any]) -> dict[str, Any]:
    """What an evaluation changes in the state; a void one says nothing about progress."""
    one = Assessment.model_validate({**payload, "phase": state.phase})
    earlier = tuple(
        attempt.model_copy(update={"failing": {}}) for attempt in state.attempts if attempt.iteration != state.iteration
    )
    return {
        "evaluation": one,
        "tampered": (),
        "evaluations": state.evaluations + 1,
        "attempts": (*earlier, _attempt(state, one, payload))[-KEPT_ATTEMPTS:],
        "artifact_hash": _judged_hash(state, one),
        **({} if one.void else _progress(state, one)),
    }


def _judged_hash(state: RunState, one: Assessment) -> str:
    """What was judged is what is there, also where a person has edited it."""
    is_known = state.artifact_hash.startswith(one.artifact_hash)
    return state.artifact_hash if is_known else one.artifact_sha256 or one.artifact_hash


def _progress(state: RunState, one: Assessment) -> dict[str, Any]:
    """How the score moved; the first evaluation of a phase has nothing to be compared with."""
    is_first = state.evaluation is None or state.evaluation.phase is not one.phase
    gained = one.score - state.last_score >= state.breakers.min_gain - _TOLERANCE
    count = 0 if is_first or gained or state.review else state.stagnation_count + (0 if one.failed else 1)
    best = state.best
    if best is None or best.phase is not one.phase or one.score > best.score:
        best = Best(iteration=state.iteration, score=one.score, phase=one.phase)
    return {"last_score": one.score, "stagnation_count": count, "best": best}


def _attempt(state: RunState, one: Assessment, payload: Mapping[str, Any]) -> Attempt:
    last = state.attempts[-1] if state.attempts else None
    before = last.failing if last else {}
    failing = _failing(state, one, before)
    same = last is not None and failing.keys() == before.keys()
    counted = last if last and last.iteration == state.iteration else None
    return Attempt(
        iteration=state.iteration,
        phase=one.phase,
        score=one.score,
        passed=one.passed,
        void=one.void,
        artifact_hash=one.artifact_hash,
        rewrites=payload.get("rewrites", 0),
        open=tuple(failing)[:OPEN_SHOWN],
        unmet=len(failing),
        mended=len(before.keys() - failing.keys()) + (counted.mended if counted else 0),
        broken=len(one.regressions) + (counted.broken if counted else 0),
        failing=failing,
        same_since=last.same_since if last and same else state.iteration,
    )


def _failing(state: RunState, one: Assessment, before: Mapping[str, Failing]) -> dict[str, Failing]:
    signatures = {result.id: result.signature for result in one.rule_results}
    found = {}
    for name in sorted(one.unmet):
        signature = signatures.get(name, "")
        known = before.get(name)
        since = known.since if known and known.signature == signature else state.iteration
        found[name] = Failing(signature=signature, since=since)
    return found


def rescored(one: Assessment, threshold: Fraction) -> Assessment:
    """The same verdicts against the threshold of B."""
    if one.earned is None or one.possible is None:
        reached = one.score >= float(threshold) - _TOLERANCE
    else:
        reached = not one.possible or one.earned / one.possible >= threshold
    return one.model_copy(update={"phase": Phase.B, "passed": reached and one.is_clean})
