"""Why a run ends: one row per reason, with its predicate, status, sentence, question and what reopens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pytest_loop.core.machine.breakers import (
    is_confident,
    is_diminishing,
    is_plateau,
    is_stagnating,
    is_stuck,
    is_thrashing,
    repeats_errors,
)
from pytest_loop.core.machine.budgets import is_budget_exceeded, is_iteration_limit_reached
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Reason, Status, parse_reason
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.core.workload.hypotheses import OnPlateau, OnRegression

MAX_STEP_ERRORS = 2
_WORTH_IT = "Is {rule} worth more rounds, or is it good enough?"
_MORE_ITERATIONS = "--loop-max-iterations {more_iterations}"


@dataclass(frozen=True)
class StopRow:
    """One reason to stop.

    `sentence` explains it in the report; `question` is what a person has to answer, with `{rule}` for the first rule
    that fails. A limit of `reopened_by` that is raised, or the flags of `resume_with`, let the run continue;
    `restarts_breakers` then counts repetitions anew. An interruption may end a run between evaluations.
    """

    reason: Reason
    holds: Callable[[Any], bool]
    sentence: str
    status: Status = Status.STOPPED
    question: str = "What does the agent not know about {rule}?"
    reopened_by: tuple[str, ...] = ()
    resume_with: str = ""
    restarts_breakers: bool = False
    is_interruption: bool = False
    in_runs: bool = True
    in_experiments: bool = False

    @property
    def is_success(self) -> bool:
        return self.status is Status.COMPLETED


def find_row(reason: Reason | str) -> StopRow:
    """Return the row of a reason; a text of a person or plugin counts as USER_STOP."""
    return _BY_REASON[reason if isinstance(reason, Reason) else parse_reason(reason)]


def _is_must_not(state: RunState) -> bool:
    """A must-not rule became true."""
    return bool(state.evaluation and state.evaluation.must_not)


def _find_final_evaluation(state: RunState) -> Evaluation | None:
    """Return the evaluation of phase B, unless the agent or a person says that it is not done."""
    is_refused = state.signals.exit_signal is False or state.is_rejected
    return state.evaluation if state.phase is Phase.B and not is_refused else None


def _is_waiting(state: RunState) -> bool:
    """Return whether a person has to confirm a rule or give a review before it is a success."""
    return state.is_review_pending or bool(state.evaluation and state.evaluation.assumptions)


def _is_threshold_reached(state: RunState) -> bool:
    """Phase B passes, the agent has not said that it is not done, and no rule rests on an assumption."""
    evaluation = _find_final_evaluation(state)
    return evaluation is not None and evaluation.is_reached and not _is_waiting(state)


def _has_converged(state: ExperimentState) -> bool:
    """All cases of a workload pass; cases held out do not count."""
    is_void = state.evaluation is not None and state.evaluation.void
    return state.experiment.has_converged and not is_void


def _has_no_major_issues(state: RunState) -> bool:
    """In phase B no rule of severity fail fails, under the same two conditions."""
    evaluation = _find_final_evaluation(state)
    return evaluation is not None and evaluation.is_clean and not _is_waiting(state)


def _has_high_confidence(state: RunState) -> bool:
    """Phase B passes, and the share `loop_confidence` of it rests on more than an opinion; the agent is not asked."""
    evaluation = state.evaluation if state.phase is Phase.B and not state.is_rejected else None
    if evaluation is None or not evaluation.is_reached or _is_waiting(state):
        return False
    return is_confident(state, evaluation)


def _is_unconfirmed(state: RunState) -> bool:
    """It would be a success, but a person still has to confirm a rule or give a review."""
    evaluation = _find_final_evaluation(state)
    return evaluation is not None and evaluation.is_clean and _is_waiting(state)


def _is_blocked(state: RunState) -> bool:
    """The agent reports a rule that cannot be met honestly, with a reason."""
    return state.signals.blocked is not None


def _is_stop_requested(state: RunState) -> bool:
    """A stop was requested."""
    return bool(state.signals.stop_request)


def _has_regression(state: ExperimentState) -> bool:
    """A case of a workload passed before and fails now, and `loop_on_regression` or a person says to stop."""
    return state.experiment.regression is OnRegression.STOP


def _has_case_plateau(state: ExperimentState) -> bool:
    """Two iterations were no better than the best, and `loop_on_plateau` or a person says to stop."""
    return state.experiment.plateau is OnPlateau.STOP


def _is_calibration_failed(state: ExperimentState) -> bool:
    """The first case of a workload could not be run and judged in three attempts."""
    return state.experiment.is_calibrated is False


def _has_phase_error(state: RunState) -> bool:
    """A step broke its contract twice, or cannot be carried out at all."""
    return any(errors.times >= MAX_STEP_ERRORS for errors in state.progress.step_errors.values())


# The first reason that holds wins: a success is never relabelled by a limit.
STOP_ROWS = (
    StopRow(
        Reason.PHASE_ERROR,
        _has_phase_error,
        "A step went wrong twice, or cannot be carried out at all.",
        status=Status.FAILED,
        question="Why does the agent not answer as it should?",
        is_interruption=True,
        in_experiments=True,
    ),
    StopRow(
        Reason.CALIBRATION,
        _is_calibration_failed,
        "The first case of the workload cannot be run and judged.",
        status=Status.FAILED,
        question="What does the first case need to be run and judged?",
        is_interruption=True,
        in_runs=False,
        in_experiments=True,
    ),
    StopRow(
        Reason.MUST_NOT,
        _is_must_not,
        "A thing that must not be so became so.",
        question="How did the forbidden thing come about, and is it undone?",
        in_experiments=True,
    ),
    StopRow(
        Reason.THRESHOLD_REACHED,
        _is_threshold_reached,
        "The score reaches what was asked for, and nothing blocks.",
        status=Status.COMPLETED,
    ),
    StopRow(
        Reason.CONVERGED,
        _has_converged,
        "All cases of the workload pass.",
        status=Status.COMPLETED,
        in_runs=False,
        in_experiments=True,
    ),
    StopRow(
        Reason.NO_MAJOR_ISSUES,
        _has_no_major_issues,
        "Nothing blocks any more; the score is below the threshold because of warnings.",
        status=Status.COMPLETED,
    ),
    StopRow(
        Reason.HIGH_CONFIDENCE,
        _has_high_confidence,
        "Everything passes beyond an opinion, although the agent did not say that it is done.",
        status=Status.COMPLETED,
    ),
    StopRow(
        Reason.UNCONFIRMED,
        _is_unconfirmed,
        "All else passes, and a rule waits for a person to confirm it.",
        resume_with="{confirmations}",
    ),
    StopRow(Reason.BLOCKED, _is_blocked, "The agent says that a rule cannot be met honestly.", in_experiments=True),
    StopRow(
        Reason.USER_STOP,
        _is_stop_requested,
        "Somebody asked for the end.",
        question="What should be different next time?",
        is_interruption=True,
        in_experiments=True,
    ),
    StopRow(
        Reason.REGRESSION,
        _has_regression,
        "Cases of the workload passed before, and fail now.",
        question="Is what was gained worth the cases that became worse?",
        reopened_by=("on_regression",),
        resume_with="-o loop_on_regression=accept",
        in_runs=False,
        in_experiments=True,
    ),
    StopRow(
        Reason.STUCK,
        is_stuck,
        "The same rules failed again and again.",
        reopened_by=("max_iterations",),
        resume_with=_MORE_ITERATIONS,
        restarts_breakers=True,
    ),
    StopRow(
        Reason.SAME_ERROR,
        repeats_errors,
        "Every failure said the same again and again.",
        reopened_by=("max_iterations",),
        resume_with=_MORE_ITERATIONS,
        restarts_breakers=True,
    ),
    StopRow(
        Reason.THRASHING,
        is_thrashing,
        "Edits undid the edits before them.",
        question="Which of the two versions is right about {rule}?",
        reopened_by=("max_iterations",),
        resume_with=_MORE_ITERATIONS,
        restarts_breakers=True,
    ),
    StopRow(
        Reason.STAGNATION,
        is_stagnating,
        "The score hardly rose any more.",
        question=_WORTH_IT,
        reopened_by=("max_iterations", "max_completed_phase_seconds"),
        resume_with=_MORE_ITERATIONS,
    ),
    StopRow(
        Reason.QUALITY_PLATEAU,
        is_plateau,
        "The score has stayed as it is.",
        question=_WORTH_IT,
        reopened_by=("max_iterations",),
        resume_with=_MORE_ITERATIONS,
        restarts_breakers=True,
    ),
    StopRow(
        Reason.DIMINISHING_RETURNS,
        is_diminishing,
        "The score changes less and less.",
        question=_WORTH_IT,
        reopened_by=("max_iterations",),
        resume_with=_MORE_ITERATIONS,
        restarts_breakers=True,
    ),
    StopRow(
        Reason.PLATEAU,
        _has_case_plateau,
        "No more cases of the workload pass than at its best.",
        question="Which approach has not been tried yet?",
        reopened_by=("on_plateau",),
        resume_with="-o loop_on_plateau=continue",
        in_runs=False,
        in_experiments=True,
    ),
    StopRow(
        Reason.BUDGET_EXCEEDED,
        is_budget_exceeded,
        "A budget of money, tokens or time is used up.",
        question="Is the result worth a larger budget?",
        reopened_by=("max_completed_phase_seconds", "usd", "tokens"),
        resume_with="with a higher --loop-budget, --loop-max-tokens or --loop-max-seconds",
        is_interruption=True,
        in_experiments=True,
    ),
    StopRow(
        Reason.ITERATION_LIMIT,
        is_iteration_limit_reached,
        "As many iterations as were allowed are done.",
        question="Is another round worth it, or is {rule} asking for the wrong thing?",
        reopened_by=("max_iterations",),
        resume_with=_MORE_ITERATIONS,
        in_experiments=True,
    ),
)
_BY_REASON = {row.reason: row for row in STOP_ROWS}
