"""The enumerations of a run: its status, place and steps, the kinds of its events, and its stop reasons."""

from __future__ import annotations

from enum import Enum

# The name of the agent that needs no model: it searches for small edits.
BUILTIN = "builtin"


class Status(str, Enum):
    """The status of a run."""

    RUNNING = "running"
    STOPPED = "stopped"
    COMPLETED = "completed"
    FAILED = "failed"


class Target(str, Enum):
    """The target of edits: one document, or the files of the project."""

    ARTIFACT = "artifact"
    WORKSPACE = "workspace"


class Place(str, Enum):
    """The place of a run in its machine, which decides what happens next; after an evaluation it is CRITIQUE."""

    PLAN = "PLAN"
    PRODUCE_PREPARE = "PRODUCE_PREPARE"
    PREPARE = "PREPARE"
    EVALUATE = "EVALUATE"
    CRITIQUE = "CRITIQUE"
    REFINE = "REFINE"


class Step(str, Enum):
    """A piece of work, as events and agents name it."""

    PLAN = "PLAN"
    PRODUCE = "PRODUCE"
    PREPARE = "PREPARE"
    EVALUATE = "EVALUATE"
    CRITIQUE = "CRITIQUE"
    REFINE = "REFINE"


class ReviewStatus(str, Enum):
    """A person's opinion of work that passes every rule; PENDING is no answer yet."""

    APPROVE = "approve"
    REJECT = "reject"
    PENDING = "pending"


class Kind(str, Enum):
    """The kind of an event."""

    RUN_STARTED = "run_started"
    RUN_ADOPTED = "run_adopted"
    PLAN_CREATED = "plan_created"
    ARTIFACT_CREATED = "artifact_created"
    CHECKS_PREPARED = "checks_prepared"
    TESTS_PREPARED = "tests_prepared"
    EVALUATION_DONE = "evaluation_done"
    REVIEW_DONE = "review_done"
    CRITIQUE_DONE = "critique_done"
    REFINEMENT_DONE = "refinement_done"
    PHASE_SWITCHED = "phase_switched"
    ITERATION_ADVANCED = "iteration_advanced"
    PHASE_ERROR = "phase_error"
    STOP_REQUESTED = "stop_requested"
    LIMITS_RAISED = "limits_raised"
    ANSWERED = "answered"
    CALIBRATION_DONE = "calibration_done"
    BASELINE_DONE = "baseline_done"
    HYPOTHESIS_FORMED = "hypothesis_formed"
    HYPOTHESIS_JUDGED = "hypothesis_judged"
    REGRESSION_DETECTED = "regression_detected"
    PLATEAU_REACHED = "plateau_reached"
    STOPPED = "stopped"
    FAILED = "failed"


class Reason(str, Enum):
    """Why a run ended; `core/machine/stop_reasons.py` has a row for each."""

    PHASE_ERROR = "phase_error"
    CALIBRATION = "calibration"
    MUST_NOT = "must_not"
    THRESHOLD_REACHED = "threshold_reached"
    CONVERGED = "converged"
    NO_MAJOR_ISSUES = "no_major_issues"
    HIGH_CONFIDENCE = "high_confidence"
    UNCONFIRMED = "unconfirmed"
    SETUP_ERROR = "setup_error"
    ENVIRONMENT_CHANGED = "environment_changed"
    BLOCKED = "blocked"
    USER_STOP = "user_stop"
    REGRESSION = "regression"
    STUCK = "stuck"
    SAME_ERROR = "same_error"
    THRASHING = "thrashing"
    STAGNATION = "stagnation"
    QUALITY_PLATEAU = "quality_plateau"
    DIMINISHING_RETURNS = "diminishing_returns"
    PLATEAU = "plateau"
    BUDGET_EXCEEDED = "budget_exceeded"
    ITERATION_LIMIT = "iteration_limit"
    NO_AUTO_RETRY = "no_auto_retry"


def parse_reason(text: str) -> Reason:
    """Return the reason of that name; any other text comes from a person or plugin and means USER_STOP."""
    return next((reason for reason in Reason if reason.value == text), Reason.USER_STOP)


def name_user_stop(text: str) -> str:
    """Return the text that names a stop by a person or plugin; USER_STOP for an empty text or the name of a reason."""
    return text if text and text not in [reason.value for reason in Reason] else Reason.USER_STOP.value
