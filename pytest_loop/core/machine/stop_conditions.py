"""Predicates of stop reasons, except breakers and budgets; docs/machine.md shows their docstrings."""

from __future__ import annotations

from pytest_loop.core.judging.tampering import ENVIRONMENT_KINDS, VOID_KINDS
from pytest_loop.core.machine.breakers import is_confident
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.core.workload.hypotheses import OnPlateau, OnRegression

MAX_STEP_ERRORS = 2


def has_forbidden_condition(state: RunState) -> bool:
    """A must-not rule became true."""
    return bool(state.evaluation and state.evaluation.must_not)


def _find_final_evaluation(state: RunState) -> Evaluation | None:
    """Return the evaluation of phase B; None if the agent or a person says that the task is not done."""
    is_refused = state.signals.exit_signal is False or state.is_rejected
    return state.evaluation if state.phase is Phase.B and not is_refused else None


def _needs_confirmation(state: RunState) -> bool:
    """Return whether success needs a person's confirmation of a rule, a review, or work without an edit."""
    is_assumed = bool(state.evaluation and state.evaluation.assumptions)
    return state.is_review_pending or is_assumed or state.has_empty_edit


def is_threshold_reached(state: RunState) -> bool:
    """Phase B passes, the agent has not said that it is not done, and no rule rests on an assumption."""
    evaluation = _find_final_evaluation(state)
    return evaluation is not None and evaluation.is_reached and not _needs_confirmation(state)


def has_converged(state: ExperimentState) -> bool:
    """All cases of a workload pass; cases held out do not count."""
    is_void = state.evaluation is not None and state.evaluation.void
    return state.experiment.has_converged and not is_void


def has_no_major_issues(state: RunState) -> bool:
    """In phase B no rule of severity fail fails, under the same two conditions."""
    evaluation = _find_final_evaluation(state)
    return evaluation is not None and evaluation.is_clean and not _needs_confirmation(state)


def has_high_confidence(state: RunState) -> bool:
    """Phase B passes, and the share `confidence` of it rests on more than an opinion; the agent is not asked."""
    evaluation = state.evaluation if state.phase is Phase.B and not state.is_rejected else None
    if evaluation is None or not evaluation.is_reached or _needs_confirmation(state):
        return False
    return is_confident(state, evaluation)


def is_unconfirmed(state: RunState) -> bool:
    """It would be a success, but a person still has to confirm a rule, a review, or work without an edit."""
    evaluation = _find_final_evaluation(state)
    return evaluation is not None and evaluation.is_clean and _needs_confirmation(state)


def is_waiting_for_setup(state: RunState) -> bool:
    """Rules cannot be judged, and nothing else is left to fix."""
    return state.evaluation is not None and state.evaluation.is_waiting_for_setup


def has_environment_changed(state: RunState) -> bool:
    """The environment is not that of the baseline, and nothing else makes the evaluation void."""
    evaluation = state.evaluation
    kinds = {finding.kind for finding in evaluation.findings} & VOID_KINDS if evaluation and evaluation.void else set()
    return bool(kinds) and kinds <= ENVIRONMENT_KINDS


def is_blocked(state: RunState) -> bool:
    """The agent reports a rule that cannot be met honestly, with a reason."""
    return state.signals.blocked is not None


def is_stop_requested(state: RunState) -> bool:
    """A stop was requested."""
    return bool(state.signals.stop_request)


def has_regression(state: ExperimentState) -> bool:
    """A case of a workload passed before and fails now, and `on_regression` or a person says to stop."""
    return state.experiment.regression is OnRegression.STOP


def has_case_plateau(state: ExperimentState) -> bool:
    """Two iterations were no better than the best, and `on_plateau` or a person says to stop."""
    return state.experiment.plateau is OnPlateau.STOP


def is_calibration_failed(state: ExperimentState) -> bool:
    """The first case of a workload could not be run and judged in three attempts."""
    return state.experiment.is_calibrated is False


def needs_permission(state: RunState) -> bool:
    """An agent's work does not pass, and `rules_fail` or `review_rejects` of `loop_stop_when` is on."""
    control = state.setup.control
    is_allowed = control.auto_retry_on_review_reject if state.is_rejected else control.auto_retry_on_test_fail
    return state.has_agent_worked and not is_allowed


def has_phase_error(state: RunState) -> bool:
    """A step broke its contract twice, or cannot be carried out at all."""
    return any(errors.times >= MAX_STEP_ERRORS for errors in state.progress.step_errors.values())
