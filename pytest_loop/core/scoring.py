"""From outcomes to verdicts, and from verdicts to the score: exact, and counted from the rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from pytest_loop.core.model import Criteria, Evaluation, Evidence, Outcome, Phase, Result, Rule, Severity, Verdict
from pytest_loop.core.voting import decision, interval, needed

MISSING = Evidence(outcome=Outcome.MISSING, text="not verified: no report arrived")


def verdict(rule: Rule, outcome: Outcome) -> Verdict:
    """The answer of a rule whose items came to `outcome`."""
    if outcome is Outcome.PASSED:
        return Verdict.PASS
    if outcome is Outcome.ASSUMED or (outcome is Outcome.SKIPPED and not rule.blocks):
        return Verdict.NA
    if outcome is Outcome.XFAILED or (rule.severity is Severity.WARN and not rule.must_not):
        return Verdict.WARN
    return Verdict.FAIL


def result(rule: Rule, evidence: Sequence[Evidence]) -> Result:
    """The verdict of one rule from what its items reported; without any report it is not verified."""
    pieces = tuple(evidence) or (MISSING,)
    if rule.repeat > 1:
        return _voted(rule, pieces)
    worst = max(pieces, key=lambda piece: piece.outcome.rank)
    details = "; ".join(text for piece in pieces if piece.outcome is worst.outcome and (text := str(piece)))
    if worst.outcome is Outcome.SKIPPED and rule.blocks:
        details = f"not verified: {details or 'skipped'}"
    return Result(rule=rule, verdict=verdict(rule, worst.outcome), details=details, evidence=pieces)


def _voted(rule: Rule, pieces: tuple[Evidence, ...]) -> Result:
    votes = [piece for piece in pieces if piece.outcome is not Outcome.SKIPPED]
    passes = sum(piece.outcome is Outcome.PASSED for piece in votes)
    need = needed(rule.need, len(pieces))
    certain = decision(passes, len(votes) - passes, len(pieces), need)
    low, high = interval(passes, len(votes))
    details = f"{passes} of {len(votes)} repeats passed, {need} needed of {len(pieces)} (rate {low:.2f} to {high:.2f})"
    worst = max(votes or pieces, key=lambda piece: piece.outcome.rank)
    if not certain and str(worst):
        details = f"{details}: {worst}"
    answer = verdict(rule, Outcome.PASSED if certain else worst.outcome)
    return Result(rule=rule, verdict=answer, details=details, evidence=pieces)


def evaluation(criteria: Criteria, phase: Phase, reported: Mapping[str, Sequence[Evidence]]) -> Evaluation:
    """Judge the rules of `criteria` that are keys of `reported` and active in `phase`."""
    active = [rule for rule in criteria.rules if phase.includes(rule.phase)]
    results = tuple(result(rule, reported[rule.id]) for rule in active if rule.id in reported)
    return Evaluation(
        criteria=criteria.name,
        source=criteria.source,
        phase=phase,
        threshold=criteria.thresholds[phase],
        earned=sum((r.rule.weight for r in results if r.verdict is Verdict.PASS), Fraction(0)),
        possible=sum((r.rule.weight for r in results if r.verdict is not Verdict.NA), Fraction(0)),
        total=len(active),
        results=results,
    )
