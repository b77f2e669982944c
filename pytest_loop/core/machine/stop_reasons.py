"""Why a run ends: one row per reason, with its predicate, status, sentence, question and what reopens it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from pytest_loop.core.machine.breakers import (
    is_diminishing,
    is_plateau,
    is_stagnating,
    is_stuck,
    is_thrashing,
    repeats_errors,
)
from pytest_loop.core.machine.budgets import is_budget_exceeded, is_iteration_limit_reached
from pytest_loop.core.machine.stop_conditions import (
    has_case_plateau,
    has_converged,
    has_environment_changed,
    has_forbidden_condition,
    has_high_confidence,
    has_no_major_issues,
    has_phase_error,
    has_regression,
    is_blocked,
    is_calibration_failed,
    is_stop_requested,
    is_threshold_reached,
    is_unconfirmed,
    is_waiting_for_setup,
    needs_permission,
)
from pytest_loop.core.model.vocabulary import Reason, Status, parse_reason

_WORTH_IT = "Is {rule} worth more rounds, or is it good enough?"
_MORE_ITERATIONS = "--max-iterations {more_iterations}"


@dataclass(frozen=True)
class StopRow:
    """One reason to stop, and what continues the run: an answer does, unless the reason is a success.

    - `holds`: the predicate; its docstring is in docs/machine.md.
    - `sentence`: the explanation in reports.
    - `question`: what a person has to answer; `{rule}` is the first rule that fails.
    - `reopened_by`: the limits of which a higher one continues the run too; `resume_with`: the flags to suggest.
    - `reopens_on_resume`: whether `--loop-resume` alone continues it.
    - `offers_choice`: whether the question is which of two values is right, if the first failure compares two.
    - `restarts_breakers`: whether a continued run counts repetitions from zero.
    - `is_interruption`, `is_after_edit`: whether it may end a run anywhere, or also after REFINE; every reason may
      after an evaluation.
    - `in_runs`, `in_experiments`: where the reason applies.
    """

    reason: Reason
    holds: Callable[[Any], bool]
    sentence: str
    status: Status = Status.STOPPED
    question: str = "What does the agent not know about {rule}?"
    reopened_by: tuple[str, ...] = ()
    resume_with: str = ""
    reopens_on_resume: bool = False
    offers_choice: bool = False
    restarts_breakers: bool = False
    is_interruption: bool = False
    is_after_edit: bool = False
    in_runs: bool = True
    in_experiments: bool = False

    @property
    def is_success(self) -> bool:
        return self.status is Status.COMPLETED

    @property
    def needs_answer(self) -> bool:
        """Whether nothing but an answer lets the run continue."""
        return not (self.is_success or self.resume_with or self.reopens_on_resume)


def find_row(reason: Reason | str) -> StopRow:
    """Return the row of a reason; a text of a person or plugin counts as USER_STOP."""
    return _BY_REASON[reason if isinstance(reason, Reason) else parse_reason(reason)]


# After a breaker, more iterations continue the run.
_make_breaker_row = partial(
    StopRow, reopened_by=("max_iterations",), resume_with=_MORE_ITERATIONS, restarts_breakers=True
)
# The first reason that holds wins: a success is never relabelled by a limit.
STOP_ROWS = (
    StopRow(
        Reason.PHASE_ERROR,
        has_phase_error,
        "A step failed twice, or cannot be executed at all.",
        status=Status.FAILED,
        question="Why does the agent not answer as it should?",
        reopens_on_resume=True,
        is_interruption=True,
        in_experiments=True,
    ),
    StopRow(
        Reason.CALIBRATION,
        is_calibration_failed,
        "The first case of the workload cannot be run and judged.",
        status=Status.FAILED,
        question="What does the first case need to be run and judged?",
        reopens_on_resume=True,
        is_interruption=True,
        in_runs=False,
        in_experiments=True,
    ),
    StopRow(
        Reason.MUST_NOT,
        has_forbidden_condition,
        "A forbidden condition became true.",
        question="How did the forbidden condition come about, and is it undone?",
        in_experiments=True,
    ),
    StopRow(
        Reason.THRESHOLD_REACHED,
        is_threshold_reached,
        "The score reached the threshold, and no required rule fails.",
        status=Status.COMPLETED,
    ),
    StopRow(
        Reason.CONVERGED,
        has_converged,
        "All cases of the workload pass.",
        status=Status.COMPLETED,
        in_runs=False,
        in_experiments=True,
    ),
    StopRow(
        Reason.NO_MAJOR_ISSUES,
        has_no_major_issues,
        "No required rule fails; only warnings keep the score below the threshold.",
        status=Status.COMPLETED,
    ),
    StopRow(
        Reason.HIGH_CONFIDENCE,
        has_high_confidence,
        "Enough rules pass by evidence, although the agent did not say that it is done.",
        status=Status.COMPLETED,
    ),
    StopRow(
        Reason.UNCONFIRMED,
        is_unconfirmed,
        "All other rules pass; a person has to confirm a rule, a review, or work that changed no file.",
        resume_with="{confirmations}",
    ),
    StopRow(
        Reason.SETUP_ERROR,
        is_waiting_for_setup,
        "Rules cannot be judged here because the set-up is incomplete.",
        status=Status.FAILED,
        question="What does {rule} need here, so that it can be judged?",
        reopens_on_resume=True,
    ),
    StopRow(
        Reason.ENVIRONMENT_CHANGED,
        has_environment_changed,
        "Packages, plugins or configuration outside the project have changed since the first edit.",
        question="Is this change of the environment intended? If not, undo it, and resume.",
        resume_with="--fence-allow PATH",
        reopens_on_resume=True,
    ),
    StopRow(
        Reason.BLOCKED,
        is_blocked,
        "The agent reports that a rule cannot be met honestly.",
        is_after_edit=True,
        in_experiments=True,
    ),
    StopRow(
        Reason.USER_STOP,
        is_stop_requested,
        "A person or a plugin stopped the run.",
        question="What should be different from here on?",
        reopens_on_resume=True,
        is_interruption=True,
        in_experiments=True,
    ),
    StopRow(
        Reason.REGRESSION,
        has_regression,
        "Cases of the workload that passed before fail now.",
        question="Is the gain worth the cases that became worse?",
        reopened_by=("on_regression",),
        resume_with="--workload 'on_regression accept'",
        in_runs=False,
        in_experiments=True,
    ),
    _make_breaker_row(
        Reason.STUCK,
        is_stuck,
        "The same rules failed in several iterations in a row.",
        offers_choice=True,
    ),
    _make_breaker_row(
        Reason.SAME_ERROR,
        repeats_errors,
        "The same error messages appeared in several iterations in a row.",
        offers_choice=True,
    ),
    _make_breaker_row(
        Reason.THRASHING,
        is_thrashing,
        "Edits undid each other, or one file was rewritten many times.",
        question="What does the agent need to know about {rule}?",
        offers_choice=True,
    ),
    StopRow(
        Reason.STAGNATION,
        is_stagnating,
        "The score hardly improves any more.",
        question=_WORTH_IT,
        reopened_by=("max_iterations", "max_completed_phase_seconds"),
        resume_with=_MORE_ITERATIONS,
    ),
    _make_breaker_row(
        Reason.QUALITY_PLATEAU,
        is_plateau,
        "The score no longer changes.",
        question=_WORTH_IT,
    ),
    _make_breaker_row(
        Reason.DIMINISHING_RETURNS,
        is_diminishing,
        "The score changes less and less.",
        question=_WORTH_IT,
    ),
    StopRow(
        Reason.PLATEAU,
        has_case_plateau,
        "No further cases of the workload pass.",
        question="Which approach has not been tried yet?",
        reopened_by=("on_plateau",),
        resume_with="--workload 'on_plateau continue'",
        in_runs=False,
        in_experiments=True,
    ),
    StopRow(
        Reason.BUDGET_EXCEEDED,
        is_budget_exceeded,
        "A limit of money, tokens or time is used up.",
        question="Is the result worth a higher limit?",
        reopened_by=("max_completed_phase_seconds", "usd", "tokens"),
        resume_with="--limit LIMIT (a higher one, such as '10 USD, 1 h')",
        is_interruption=True,
        in_experiments=True,
    ),
    StopRow(
        Reason.ITERATION_LIMIT,
        is_iteration_limit_reached,
        "The maximum number of iterations is reached.",
        question="Is another round worth it, or is {rule} asking for the wrong thing?",
        reopened_by=("max_iterations",),
        resume_with=_MORE_ITERATIONS,
        is_after_edit=True,
        in_experiments=True,
        offers_choice=True,
    ),
    StopRow(
        Reason.NO_AUTO_RETRY,
        needs_permission,
        "It does not pass yet, and you decide about every retry.",
        question="Shall the agent try again, and what should it know about {rule}?",
        reopens_on_resume=True,
        offers_choice=True,
    ),
)
_BY_REASON = {row.reason: row for row in STOP_ROWS}
