"""The verdict of a run in words: what became of it, why, and how far it is from success."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.evaluation import Complaint
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason, Status
from pytest_loop.core.reporting.outcome import ArtifactStatus, get_artifact_status
from pytest_loop.show.score_section import format_decimal

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
    words = find_row(state.stop.reason).sentence if state.stop.reason else ""
    if state.stop.reason and state.stop.reason not in [reason.value for reason in Reason]:
        words = "The run has been asked to end in words of its own."
    head = (_TITLES[state.status], state.stop.reason, words, _DOUBTS[get_artifact_status(state)])
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
