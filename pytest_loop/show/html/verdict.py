"""The verdict of a run in words: what became of it, why, and how far it is from success."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pytest_loop.core.model.run_state import Complaint, Reason, RunState, Status
from pytest_loop.core.reporting.outcome import ArtifactStatus, artifact_status
from pytest_loop.show.score_section import format_decimal

_WORDS = {
    Reason.MUST_NOT: "A thing that must not be so became so.",
    Reason.THRESHOLD_REACHED: "The score reaches what was asked for, and nothing blocks.",
    Reason.CONVERGED: "All cases of the workload pass.",
    Reason.NO_MAJOR_ISSUES: "Nothing blocks any more; the score is below the threshold because of warnings.",
    Reason.HIGH_CONFIDENCE: "Everything passes beyond an opinion, although the agent did not say that it is done.",
    Reason.UNCONFIRMED: "All else passes, and a rule waits for a person to confirm it.",
    Reason.BLOCKED: "The agent says that a rule cannot be met honestly.",
    Reason.USER_STOP: "Somebody asked for the end.",
    Reason.STUCK: "The same rules failed again and again.",
    Reason.SAME_ERROR: "Every failure said the same again and again.",
    Reason.THRASHING: "Edits undid the edits before them.",
    Reason.STAGNATION: "The score hardly rose any more.",
    Reason.QUALITY_PLATEAU: "The score has stayed as it is.",
    Reason.DIMINISHING_RETURNS: "The score changes less and less.",
    Reason.REGRESSION: "Cases of the workload passed before, and fail now.",
    Reason.PLATEAU: "No more cases of the workload pass than at its best.",
    Reason.CALIBRATION: "The first case of the workload cannot be run and judged.",
    Reason.BUDGET_EXCEEDED: "A budget of money, tokens or time is used up.",
    Reason.ITERATION_LIMIT: "As many iterations as were allowed are done.",
    Reason.PHASE_ERROR: "A step went wrong twice, or cannot be carried out at all.",
}
_TITLES = {
    Status.RUNNING: "Not over yet",
    Status.STOPPED: "Stopped without success",
    Status.COMPLETED: "Completed",
    Status.FAILED: "Failed",
}
_DOUBTS = {
    ArtifactStatus.NOT_CREATED: "There is nothing to judge yet.",
    ArtifactStatus.UNEVALUATED: "What there is has not been judged yet.",
    ArtifactStatus.STALE: "It was edited since it was judged last: the score is that of the version before.",
    ArtifactStatus.EVALUATED: "",
}


@dataclass(frozen=True)
class VerdictShown:
    """What stands at the top; numbers are None where nothing was judged."""

    title: str
    reason: str
    words: str
    doubt: str
    phase: str = ""
    score: str | None = None
    threshold: str | None = None
    gap: str | None = None
    share: float = 0.0
    mark: float = 0.0
    passing: int = 0
    total: int = 0
    is_void: bool = False
    blocking: tuple[Complaint, ...] = ()
    warnings: tuple[Complaint, ...] = ()
    assumptions: tuple[str, ...] = ()
    held_out: str | None = None


def verdict(state: RunState) -> VerdictShown:
    """The verdict on the last evaluation, whatever the run was doing since."""
    reason = next((one for one in Reason if one.value == state.stop.reason), None)
    if reason:
        words = _WORDS.get(reason, "")
    else:
        words = "The run has been asked to end in words of its own." if state.stop.reason else ""
    head = (_TITLES[state.status], state.stop.reason, words, _DOUBTS[artifact_status(state)])
    one = state.evaluation
    if one is None:
        return VerdictShown(*head)
    threshold = state.criteria.phase[one.phase].threshold
    score = exact(one.score)
    shown = format_decimal(score)
    return VerdictShown(
        *head,
        phase=one.phase.value,
        score=shown,
        threshold=format_decimal(threshold),
        gap=format_decimal(threshold - Fraction(shown)) if score < threshold else None,
        share=one.score,
        mark=float(threshold),
        passing=one.passing,
        total=one.total or len(state.criteria.get_active_rules(one.phase)),
        is_void=one.void,
        blocking=one.failed,
        warnings=one.warnings,
        assumptions=one.assumptions,
        held_out=None if one.held_out is None else format_decimal(exact(one.held_out)),
    )


def exact(score: float) -> Fraction:
    """The number that was written down, so that 0.9 is nine tenths."""
    return Fraction(repr(score))
