"""Decide at which points of a run a person is asked."""

from __future__ import annotations

from enum import Enum

from pytest_loop.core.text.wording import format_count
from pytest_loop.inference.clarity import Shape


class Confirm(str, Enum):
    """The gates at which a person is asked: those that the clarity of the draft requires (its shape), all, or none."""

    SHAPE = "shape"
    ALWAYS = "always"
    NEVER = "never"


class GateDecision(str, Enum):
    """The decision at a gate: pass, ask a person, or refuse."""

    PASS = "pass"  # noqa: S105 - not a password
    ASK = "ask"
    REFUSE = "refuse"


class Gate(str, Enum):
    """A point at which a person may be asked: before the run, after a baseline or an iteration, before success."""

    DRAFT = "G1"
    BASELINE = "baseline"
    ITERATION = "G2"
    SUCCESS = "G3"


def render_iteration_question(iteration: int, max_iterations: int, open_rules: int) -> str:
    """Return the question after an iteration."""
    return f"iteration {iteration} of {max_iterations} is over, {format_count(open_rules, 'rule')} left: go on?"


def render_baseline_question(metrics: str) -> str:
    """Return the question after the baseline of an experiment."""
    return f"baseline: {metrics}. Ready to begin?"


def render_success_question(rules: int) -> str:
    """Return the question before success."""
    return f"{format_count(rules, 'rule')} judged, and it passes: is it done?"


def decide_gate(
    gate: Gate, shape: Shape, confirm: Confirm, *, is_agreed: bool, is_terminal: bool, skips_gates: bool = False
) -> GateDecision:
    """Decide whether a run passes a gate, asks a person or is refused.

    An unclear draft is always refused. With `is_agreed`, the user has agreed to everything in advance. Without a
    terminal, any other draft is refused, and later gates pass.
    `skips_gates` comes from the words of the task: it skips questions during the run, never the one about the draft.
    """
    if shape is Shape.UNCLEAR:
        return GateDecision.REFUSE
    if is_agreed or confirm is Confirm.NEVER:
        return GateDecision.PASS
    if gate is Gate.DRAFT:
        return GateDecision.ASK if is_terminal else GateDecision.REFUSE
    runs_alone = confirm is Confirm.SHAPE and shape is Shape.TOOL and gate is not Gate.BASELINE
    return GateDecision.PASS if runs_alone or skips_gates or not is_terminal else GateDecision.ASK
