"""Judge rules by the evidence of their items, and compute the score of a set of criteria."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from pytest_loop.core.judging.votes import compute_wilson_interval, count_needed_passes, decide_vote
from pytest_loop.core.model.rules import (
    Criteria,
    CriteriaScore,
    Evidence,
    Outcome,
    Phase,
    Result,
    Rule,
    Severity,
    Verdict,
    sum_weights,
)

MISSING = Evidence(outcome=Outcome.MISSING, text="not verified: no report arrived")


def decide_verdict(rule: Rule, outcome: Outcome) -> Verdict:
    """Return the verdict of a rule for the worst outcome of its items."""
    if outcome is Outcome.PASSED:
        return Verdict.PASS
    if outcome is Outcome.UNCHECKED:
        return Verdict.ERROR
    if outcome is Outcome.ASSUMED or (outcome is Outcome.SKIPPED and not rule.is_blocking):
        return Verdict.NA
    if outcome is Outcome.XFAILED or (rule.severity is Severity.WARN and not rule.must_not):
        return Verdict.WARN
    return Verdict.FAIL


def judge_rule(rule: Rule, evidence: Sequence[Evidence]) -> Result:
    """Judge one rule by the reports of its items; a rule without reports is not verified."""
    pieces = tuple(evidence) or (MISSING,)
    if rule.repeat > 1:
        return _judge_repeated_rule(rule, pieces)
    worst = pieces[0] if len(pieces) == 1 else _find_worst(pieces)
    details = "; ".join(text for piece in pieces if piece.outcome is worst.outcome and (text := str(piece)))
    if worst.outcome is Outcome.SKIPPED and rule.is_blocking:
        details = f"not verified: {details or 'skipped'}"
    return Result(rule=rule, verdict=decide_verdict(rule, worst.outcome), details=details, evidence=pieces)


def _judge_repeated_rule(rule: Rule, pieces: tuple[Evidence, ...]) -> Result:
    votes = [piece for piece in pieces if piece.outcome is not Outcome.SKIPPED]
    passes = sum(piece.outcome is Outcome.PASSED for piece in votes)
    need = count_needed_passes(rule.need, len(pieces))
    has_passed = decide_vote(passes, len(votes) - passes, len(pieces), need)
    low, high = compute_wilson_interval(passes, len(votes))
    details = f"{passes} of {len(votes)} repeats passed, {need} needed of {len(pieces)} (rate {low:.2f} to {high:.2f})"
    worst = _find_worst(votes or pieces)
    if not has_passed and str(worst):
        details = f"{details}: {worst}"
    verdict = decide_verdict(rule, Outcome.PASSED if has_passed else worst.outcome)
    return Result(rule=rule, verdict=verdict, details=details, evidence=pieces)


def _find_worst(pieces: Sequence[Evidence]) -> Evidence:
    return max(pieces, key=lambda piece: piece.outcome.rank)


def apply_custom_score(criteria_score: CriteriaScore, compute_score: Callable[..., float | None]) -> CriteriaScore:
    """Replace the score by what the hook `compute_score` returns, unless this is None."""
    verdicts = {result.rule.id: result.verdict for result in criteria_score.results}
    score = compute_score(rules=[result.rule for result in criteria_score.results], verdicts=verdicts)
    return criteria_score if score is None else replace_score(criteria_score, score)


def replace_score(criteria_score: CriteriaScore, score: float) -> CriteriaScore:
    """Replace the score; anything but a number from 0 to 1 counts as 0."""
    is_valid = isinstance(score, (int, float)) and not isinstance(score, bool) and 0 <= score <= 1
    earned = Fraction(repr(float(score))) if is_valid else Fraction(0)
    return replace(criteria_score, earned=earned, possible=Fraction(1))


def evaluate_criteria(
    criteria: Criteria, phase: Phase, evidence_by_rule: Mapping[str, Sequence[Evidence]]
) -> CriteriaScore:
    """Judge the rules that are active in `phase`; leave out rules without a key in `evidence_by_rule`."""
    active = criteria.get_active_rules(phase)
    results = tuple(judge_rule(rule, evidence_by_rule[rule.id]) for rule in active if rule.id in evidence_by_rule)
    return CriteriaScore(
        criteria=criteria.name,
        source=criteria.source,
        phase=phase,
        threshold=criteria.thresholds[phase],
        earned=sum_weights(result.rule for result in results if result.verdict is Verdict.PASS),
        possible=sum_weights(result.rule for result in results if result.verdict is not Verdict.NA),
        total=len(active),
        results=results,
    )
