"""The verdict at the top of the report: the result of the run, its reason, and the distance to success."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason, Status
from pytest_loop.core.reporting.closing_verdict import decide_closing
from pytest_loop.core.reporting.outcome import ArtifactStatus, get_artifact_status
from pytest_loop.core.text.score_text import format_decimal, format_score

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
class VerdictPanel:
    """Texts at the top of the report; scores are empty without an evaluation.

    `doubt` says why the last evaluation may not be about the current document, `gap` what the score lacks, `mark` where
    the threshold is drawn, and `total` how many rules are active.
    """

    title: str
    explanation: str
    doubt: str
    score: str = ""
    threshold: str = ""
    gap: str = ""
    mark: float = 0.0
    total: int = 0
    held_out: str = ""


def build_verdict_panel(state: RunState) -> VerdictPanel:
    """Build the panel from the last evaluation."""
    head = (_TITLES[state.status], _explain_stop(state), _DOUBTS[get_artifact_status(state)])
    evaluation = state.evaluation
    if evaluation is None:
        return VerdictPanel(*head)
    threshold = state.criteria.phase[evaluation.phase].threshold
    score = format_score(evaluation.score)
    return VerdictPanel(
        *head,
        score=score,
        threshold=format_decimal(threshold),
        gap=format_decimal(threshold - Fraction(score)) if Fraction(repr(evaluation.score)) < threshold else "",
        mark=float(threshold),
        total=evaluation.total or len(state.criteria.get_active_rules(evaluation.phase)),
        held_out="" if evaluation.held_out is None else format_score(evaluation.held_out),
    )


def _explain_stop(state: RunState) -> str:
    if state.stop.reason and state.stop.reason not in [reason.value for reason in Reason]:
        return "The run has been asked to end in words of its own."
    return find_row(state.stop.reason).sentence if state.stop.reason else ""


def describe_closing(state: RunState) -> tuple[str, ...]:
    """Return the closing verdict of a run that is over, and its reason; an empty tuple for other runs."""
    if not state.is_over:
        return ()
    word, because = decide_closing(state)
    return word.value, because
