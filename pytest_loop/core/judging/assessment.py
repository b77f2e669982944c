"""Make the evaluation that a run stores from the evidence of one session."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_loop.core.judging.score import MISSING, apply_custom_score, evaluate_criteria
from pytest_loop.core.model.evaluation import Complaint, Evaluation, RuleResult
from pytest_loop.core.model.rules import Evidence, Finding, Phase, Result, Severity, Verdict, sum_weights
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH
from pytest_loop.core.text.lengths import clip_text, shorten
from pytest_loop.core.text.sanitizer import clean_text
from pytest_loop.core.text.signature import compute_fingerprint

# Limits of the details that an evaluation stores, in characters: for one rule at most, at least, and for all rules.
MAX_DETAILS = 2_000
MIN_DETAILS = 200
MAX_ALL_DETAILS = 400_000
MAX_FINDINGS = 5
_MAX_TEXT_LENGTH = 300


def assess(
    criteria: RunCriteria,
    phase: Phase,
    evidence_by_rule: Mapping[str, Sequence[Evidence]],
    artifact_hash: str,
    previous: Evaluation | None = None,
    missing: Evidence = MISSING,
    compute_score: Callable[..., float | None] = lambda **_: None,
) -> Evaluation:
    """Judge all active rules of a run; a rule without a report gets the evidence `missing`.

    The hook `compute_score` replaces the usual score, unless it returns None.
    """
    active = criteria.get_active_rules(phase)
    evidence = {rule.id: evidence_by_rule.get(rule.key or rule.id, (missing,)) for rule in active}
    criteria_score = apply_custom_score(evaluate_criteria(criteria.session_criteria, phase, evidence), compute_score)
    goals = [result for result in criteria_score.results if not result.rule.guard]
    failed = [result for result in criteria_score.blockers if result.verdict is Verdict.FAIL]
    not_passed = criteria_score.not_passed
    limit = max(MIN_DETAILS, min(MAX_DETAILS, MAX_ALL_DETAILS // max(1, len(not_passed))))
    stored = {result.rule.id: _reduce_result(result, limit) for result in not_passed}
    return Evaluation(
        artifact_hash=artifact_hash[:SHORT_HASH_LENGTH],
        artifact_sha256=artifact_hash,
        phase=phase,
        score=round(float(criteria_score.score), 6),
        passed=criteria_score.passed,
        earned=criteria_score.earned,
        possible=criteria_score.possible,
        total=len(goals),
        passing=sum(result.verdict is Verdict.PASS for result in goals),
        failed=_build_complaints(failed, stored),
        warnings=_build_complaints((result for result in not_passed if result.verdict is Verdict.WARN), stored),
        errors=_build_complaints((result for result in not_passed if result.verdict is Verdict.ERROR), stored),
        rule_results=tuple(stored.values()),
        assumptions=tuple(result.rule.id for result in not_passed if result.is_assumed),
        must_not=tuple(result.rule.id for result in failed if result.rule.must_not),
        regressions=_find_regressions(stored.values(), criteria, previous),
        held_out=_score_held_out_rules(criteria_score.results),
    )


def group_verdicts(criteria: RunCriteria, evaluation: Evaluation) -> dict[Verdict, dict[Severity, list[str]]]:
    """Group the ids of all active rules by verdict, then by severity."""
    verdicts = {result.id: result.verdict for result in evaluation.rule_results}
    groups: dict[Verdict, dict[Severity, list[str]]] = {}
    for rule in criteria.get_active_rules(evaluation.phase):
        verdict = verdicts.get(rule.id, Verdict.PASS)
        groups.setdefault(verdict, {}).setdefault(rule.severity, []).append(rule.id)
    return groups


def _score_held_out_rules(results: Iterable[Result]) -> float | None:
    """Return the score of the rules that agents do not see, or None if there are none."""
    held_out = [result for result in results if result.rule.held_out and result.verdict is not Verdict.NA]
    if not held_out:
        return None
    total = sum_weights(result.rule for result in held_out)
    earned = sum_weights(result.rule for result in held_out if result.verdict is Verdict.PASS)
    return round(float(earned / total), 6) if total else 1.0


def _reduce_result(result: Result, limit: int) -> RuleResult:
    """Return a result in the short form that a run stores; a held-out rule keeps no details."""
    if result.rule.held_out:
        signature = compute_fingerprint(result.details[:MAX_DETAILS])
        return RuleResult(id=result.rule.id, verdict=result.verdict, signature=signature)
    details = clean_text(result.details)
    findings = [finding for piece in result.evidence for finding in piece.findings]
    max_findings = MAX_FINDINGS if limit == MAX_DETAILS else 1
    return RuleResult(
        id=result.rule.id,
        verdict=result.verdict,
        details=clip_text(details, limit),
        findings=tuple(_sanitize_finding(finding, limit) for finding in findings[:max_findings]),
        more=max(0, len(findings) - max_findings),
        signature=compute_fingerprint(details[:MAX_DETAILS]),
    )


def _sanitize_finding(finding: Finding, limit: int) -> Finding:
    return Finding(
        expected=shorten(finding.expected, _MAX_TEXT_LENGTH),
        found=shorten(finding.found, _MAX_TEXT_LENGTH),
        where=shorten(finding.where),
        detail=clip_text(clean_text(finding.detail), limit),
    )


def _build_complaints(results: Iterable[Result], stored: Mapping[str, RuleResult]) -> tuple[Complaint, ...]:
    """Return a complaint for each result; blocking rules, must-not rules included, get severity FAIL."""
    return tuple(
        Complaint(
            id=result.rule.id,
            severity=Severity.FAIL if result.is_blocking else result.rule.severity,
            message=shorten(stored[result.rule.id].details, _MAX_TEXT_LENGTH),
        )
        for result in results
    )


def _find_regressions(
    stored: Iterable[RuleResult], criteria: RunCriteria, previous: Evaluation | None
) -> tuple[str, ...]:
    """Return the rules that passed in the previous evaluation and fail or warn now."""
    if previous is None:
        return ()
    judged = {rule.id for rule in criteria.get_active_rules(previous.phase)}
    failed = {result.id for result in previous.rule_results if result.verdict is not Verdict.PASS}
    passed = judged - failed - previous.unmet
    unmet = (result.id for result in stored if result.verdict not in (Verdict.NA, Verdict.ERROR))
    return tuple(name for name in unmet if name in passed)
