"""From outcomes to verdicts, and from verdicts to the score: exact, and counted from the rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from pytest_loop.core.judging.votes import compute_wilson_interval, count_needed_passes, decide_vote
from pytest_loop.core.model.rules import (
    Criteria,
    Evaluation,
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
    """The answer of a rule whose items came to `outcome`."""
    if outcome is Outcome.PASSED:
        return Verdict.PASS
    if outcome is Outcome.ASSUMED or (outcome is Outcome.SKIPPED and not rule.is_blocking):
        return Verdict.NA
    if outcome is Outcome.XFAILED or (rule.severity is Severity.WARN and not rule.must_not):
        return Verdict.WARN
    return Verdict.FAIL


def judge_rule(rule: Rule, evidence: Sequence[Evidence]) -> Result:
    """The verdict of one rule from what its items reported; without any report it is not verified."""
    pieces = tuple(evidence) or (MISSING,)
    if rule.repeat > 1:
        return _voted(rule, pieces)
    worst = max(pieces, key=lambda piece: piece.outcome.rank)
    details = "; ".join(text for piece in pieces if piece.outcome is worst.outcome and (text := str(piece)))
    if worst.outcome is Outcome.SKIPPED and rule.is_blocking:
        details = f"not verified: {details or 'skipped'}"
    return Result(rule=rule, verdict=decide_verdict(rule, worst.outcome), details=details, evidence=pieces)


def _known(criteria: Criteria, rule: Rule, evidence: Sequence[Evidence]) -> Result:
    """The result of a rule; most pass, and those that do say nothing but that."""
    if len(evidence) == 1 and evidence[0].outcome is Outcome.PASSED and rule.repeat == 1:
        return criteria.passing_results[rule.id]
    return judge_rule(rule, evidence)


def _voted(rule: Rule, pieces: tuple[Evidence, ...]) -> Result:
    votes = [piece for piece in pieces if piece.outcome is not Outcome.SKIPPED]
    passes = sum(piece.outcome is Outcome.PASSED for piece in votes)
    need = count_needed_passes(rule.need, len(pieces))
    certain = decide_vote(passes, len(votes) - passes, len(pieces), need)
    low, high = compute_wilson_interval(passes, len(votes))
    details = f"{passes} of {len(votes)} repeats passed, {need} needed of {len(pieces)} (rate {low:.2f} to {high:.2f})"
    worst = max(votes or pieces, key=lambda piece: piece.outcome.rank)
    if not certain and str(worst):
        details = f"{details}: {worst}"
    answer = decide_verdict(rule, Outcome.PASSED if certain else worst.outcome)
    return Result(rule=rule, verdict=answer, details=details, evidence=pieces)


def apply_custom_score(one: Evaluation, ask: Callable[..., float | None]) -> Evaluation:
    """The evaluation with the score of whoever has a way of their own; `ask` is the hook for that."""
    verdicts = {result.rule.id: result.verdict for result in one.results}
    own = ask(rules=[result.rule for result in one.results], verdicts=verdicts)
    return one if own is None else replace_score(one, own)


def replace_score(one: Evaluation, score: float) -> Evaluation:
    """The evaluation with another score; one that is not a number from 0 to 1 counts as none."""
    valid = isinstance(score, (int, float)) and not isinstance(score, bool) and 0 <= score <= 1
    earned = Fraction(repr(float(score))) if valid else Fraction(0)
    return replace(one, earned=earned, possible=Fraction(1))


def evaluate_criteria(criteria: Criteria, phase: Phase, reported: Mapping[str, Sequence[Evidence]]) -> Evaluation:
    """Judge the rules of `criteria` that are keys of `reported` and active in `phase`."""
    active = criteria.get_active_rules(phase)
    results = tuple([_known(criteria, rule, reported[rule.id]) for rule in active if rule.id in reported])
    whole = criteria.get_weight(phase) if len(results) == len(active) else sum_weights(one.rule for one in results)
    others = [one for one in results if one.verdict is not Verdict.PASS]
    possible = whole - sum_weights(one.rule for one in others if one.verdict is Verdict.NA)
    return Evaluation(
        criteria=criteria.name,
        source=criteria.source,
        phase=phase,
        threshold=criteria.thresholds[phase],
        earned=possible - sum_weights(one.rule for one in others if one.verdict is not Verdict.NA),
        possible=possible,
        total=len(active),
        results=results,
    )
