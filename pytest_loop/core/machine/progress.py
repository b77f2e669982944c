"""Compute the progress of a run from an evaluation: attempts, best score, and rules that keep failing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from pytest_loop.core.events.run_payloads import EvaluationDone
from pytest_loop.core.judging.tampering import FORBIDDEN
from pytest_loop.core.model.attempt import Attempt, Best, Failing
from pytest_loop.core.model.evaluation import Evaluation, SealFinding
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten

_MAX_ATTEMPTS = 8
_MAX_OPEN_RULES = 5
_MAX_MESSAGE_LENGTH = 150
_TOLERANCE = 1e-9


def compute_evaluation_changes(state: RunState, payload: EvaluationDone) -> dict[str, Any]:
    """Return the fields that an evaluation changes; a void one changes neither scores nor the stagnation count."""
    evaluation = payload.extract_evaluation(state.phase)
    earlier = tuple(
        attempt.model_copy(update={"failing": {}})
        for attempt in state.progress.attempts
        if attempt.iteration != state.iteration
    )
    attempt = _make_attempt(state, evaluation, max(payload.rewrites, state.progress.rewrites))
    return {
        "evaluation": evaluation,
        "tampering": (),
        "put_back": state.progress.put_back | find_put_back_edits(evaluation.findings),
        "evaluations": state.progress.evaluations + 1,
        "attempts": (*earlier, attempt)[-_MAX_ATTEMPTS:],
        "artifact_hash": _find_artifact_hash(state, evaluation),
        **({} if evaluation.void else _compute_gain(state, evaluation)),
    }


def find_put_back_edits(findings: Iterable[SealFinding]) -> dict[str, str]:
    """Return the kinds of edits that were undone, by the path of the file."""
    kinds = ("sealed", FORBIDDEN)
    return {finding.path: finding.kind for finding in findings if finding.path and finding.kind in kinds}


def _find_artifact_hash(state: RunState, evaluation: Evaluation) -> str:
    """Return the hash of the judged artifact; it differs from the last known hash if a person edited the artifact."""
    current = state.progress.artifact_hash
    is_same = current.startswith(evaluation.artifact_hash)
    return current if is_same else evaluation.artifact_sha256 or evaluation.artifact_hash


def _compute_gain(state: RunState, evaluation: Evaluation) -> dict[str, Any]:
    """Return the last score, the best evaluation, and the number of evaluations in a row without a gain.

    The number is zero at the first evaluation of a phase and after a review, and does not grow while a rule blocks.
    """
    is_first = state.evaluation is None or state.evaluation.phase is not evaluation.phase
    has_gained = evaluation.score - state.last_score >= state.setup.breakers.min_gain - _TOLERANCE
    is_reset = is_first or has_gained or state.signals.review is not None
    count = 0 if is_reset else state.stagnation_count + (0 if evaluation.failed else 1)
    best = state.progress.best
    if best is None or best.phase is not evaluation.phase or evaluation.score > best.score:
        best = Best(iteration=state.iteration, score=evaluation.score, phase=evaluation.phase)
    return {"last_score": evaluation.score, "stagnation_count": count, "best": best}


def _make_attempt(state: RunState, evaluation: Evaluation, rewrites: int) -> Attempt:
    last = state.progress.attempts[-1] if state.progress.attempts else None
    before = last.failing if last else {}
    failing = _find_failing_rules(state, evaluation, before)
    is_same = last is not None and failing.keys() == before.keys()
    # An iteration is judged again after a switch of phase or an answer: its counts add up.
    earlier = last if last and last.iteration == state.iteration else None
    return Attempt(
        iteration=state.iteration,
        phase=evaluation.phase,
        score=evaluation.score,
        passed=evaluation.passed,
        void=evaluation.void,
        artifact_hash=evaluation.artifact_hash,
        unchanged=last is not None and earlier is None and last.artifact_hash == evaluation.artifact_hash,
        rewrites=rewrites,
        rewritten=state.progress.rewritten,
        message=_find_message(evaluation),
        open=tuple(failing)[:_MAX_OPEN_RULES],
        unmet=len(failing),
        fixed=len(before.keys() - failing.keys()) + (earlier.fixed if earlier else 0),
        broken=len(evaluation.regressions) + (earlier.broken if earlier else 0),
        failing=failing,
        same_since=last.same_since if last and is_same else state.iteration,
    )


def _find_message(evaluation: Evaluation) -> str:
    """Return the first line of the first failure, or of the first warning."""
    first = next(iter((*evaluation.failed, *evaluation.warnings)), None)
    details = [result.details for result in evaluation.rule_results if first and result.id == first.id]
    lines = "".join(details[:1]).strip().splitlines()
    return shorten(lines[0], _MAX_MESSAGE_LENGTH) if lines else ""


def _find_failing_rules(state: RunState, evaluation: Evaluation, before: Mapping[str, Failing]) -> dict[str, Failing]:
    signatures = {result.id: result.signature for result in evaluation.rule_results}
    failing = {}
    for name in sorted(evaluation.unmet):
        signature = signatures.get(name, "")
        earlier = before.get(name)
        since = earlier.since if earlier and earlier.signature == signature else state.iteration
        failing[name] = Failing(signature=signature, since=since)
    return failing


def rescore(evaluation: Evaluation, threshold: Fraction) -> Evaluation:
    """Return the evaluation as one of phase B: the same verdicts, judged by another threshold."""
    if evaluation.earned is None or evaluation.possible is None:
        is_reached = evaluation.score >= float(threshold) - _TOLERANCE
    else:
        is_reached = not evaluation.possible or evaluation.earned / evaluation.possible >= threshold
    return evaluation.model_copy(update={"phase": Phase.B, "passed": is_reached and evaluation.is_clean})
