"""From what items reported to the assessment that a run remembers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pytest_loop.core.judging.score import MISSING, apply_custom_score, evaluate_criteria
from pytest_loop.core.model.evaluation import Assessment, Complaint, RuleResult
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Result, Verdict, sum_weights
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_state import HASH_SHOWN
from pytest_loop.core.text.lengths import clip_text, shorten
from pytest_loop.core.text.sanitizer import clean_text
from pytest_loop.core.text.signature import compute_fingerprint

# How much of a failure is remembered: of each, and less where there are many.
DETAILS = 2_000
LEAST_DETAILS = 200
ALL_DETAILS = 400_000
FINDINGS = 5
_SHORT = 300


def assess(
    criteria: RunCriteria,
    phase: Phase,
    reported: Mapping[str, Sequence[Evidence]],
    artifact_hash: str,
    previous: Assessment | None = None,
    absent: Evidence = MISSING,
    ask: Callable[..., float | None] = lambda **_: None,
) -> Assessment:
    """Judge all active rules of a run: one that nobody reported on has not passed, and `absent` says why.

    `ask` is asked for another score than the usual one.
    """
    unreported = (absent,)
    found = {rule.id: reported.get(rule.key or rule.id, unreported) for rule in criteria.get_active_rules(phase)}
    judged = apply_custom_score(evaluate_criteria(criteria.session_criteria, phase, found), ask)
    others = judged.not_passed
    share = max(LEAST_DETAILS, min(DETAILS, ALL_DETAILS // max(1, len(others))))
    kept = {one.rule.id: _kept(one, share) for one in others}
    return Assessment(
        artifact_hash=artifact_hash[:HASH_SHOWN],
        artifact_sha256=artifact_hash,
        phase=phase,
        score=round(float(judged.score), 6),
        passed=judged.passed,
        earned=judged.earned,
        possible=judged.possible,
        total=len(judged.results),
        passing=len(judged.results) - len(others),
        failed=tuple(_complaint(one, kept) for one in judged.blockers),
        warnings=tuple(_complaint(one, kept) for one in others if one.verdict is Verdict.WARN),
        rule_results=tuple(kept.values()),
        assumptions=tuple(one.rule.id for one in others if one.verdict is Verdict.NA and _is_assumed(one)),
        must_not=tuple(one.rule.id for one in judged.blockers if one.rule.must_not),
        regressions=_regressions(kept.values(), criteria, previous),
        held_out=_held_out(judged.results),
    )


def _held_out(results: Iterable[Result]) -> float | None:
    """The score of the rules that no agent sees; None where there are none."""
    hidden = [one for one in results if one.rule.holdout and one.verdict is not Verdict.NA]
    if not hidden:
        return None
    whole = sum_weights(one.rule for one in hidden)
    earned = sum_weights(one.rule for one in hidden if one.verdict is Verdict.PASS)
    return round(float(earned / whole), 6) if whole else 1.0


def _kept(one: Result, share: int) -> RuleResult:
    """What is remembered of a rule that did not pass; of one that is held out, nothing that would give it away."""
    if one.rule.holdout:
        return RuleResult(id=one.rule.id, verdict=one.verdict, signature=compute_fingerprint(one.details[:DETAILS]))
    details = clean_text(one.details)
    findings = [finding for piece in one.evidence for finding in piece.findings]
    most = FINDINGS if share == DETAILS else 1
    return RuleResult(
        id=one.rule.id,
        verdict=one.verdict,
        details=clip_text(details, share),
        findings=tuple(_harmless(finding, share) for finding in findings[:most]),
        more=max(0, len(findings) - most),
        signature=compute_fingerprint(details[:DETAILS]),
    )


def _harmless(finding: Finding, share: int) -> Finding:
    return Finding(
        expected=shorten(finding.expected, _SHORT),
        found=shorten(finding.found, _SHORT),
        where=shorten(finding.where),
        detail=clip_text(clean_text(finding.detail), share),
    )


def _complaint(one: Result, kept: Mapping[str, RuleResult]) -> Complaint:
    return Complaint(id=one.rule.id, severity=one.rule.severity, message=shorten(kept[one.rule.id].details, _SHORT))


def _is_assumed(one: Result) -> bool:
    return any(piece.outcome is Outcome.ASSUMED for piece in one.evidence)


def _regressions(kept: Iterable[RuleResult], criteria: RunCriteria, previous: Assessment | None) -> tuple[str, ...]:
    """The rules that passed in the evaluation before, and fail now."""
    if previous is None:
        return ()
    others = {one.id for one in previous.rule_results if one.verdict is not Verdict.PASS} | previous.unmet
    judged = criteria.get_active_ids(previous.phase)
    worse = (one.id for one in kept if one.verdict is not Verdict.NA)
    return tuple(name for name in worse if name in judged and name not in others)
