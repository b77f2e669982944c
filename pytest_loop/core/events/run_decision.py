"""The decision after an evaluation or at the end of a run, as its event records it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationError

from pytest_loop.core.model.escalation import Alternative
from pytest_loop.core.model.rules import Value


class Action(str, Enum):
    """The consequence of an evaluation."""

    PROCEED = "proceed"
    RETRY = "retry"
    ESCALATE = "escalate"
    HOLD = "hold"


class Feedback(Value):
    """The instructions for the next iteration."""

    summary: str
    actionable_items: tuple[str, ...]
    priority: str


class EscalationContext(Value):
    """A summary of the attempts so far, for a person; `diff` is the change that they made."""

    attempts_summary: tuple[str, ...]
    pattern_detected: str
    diff: str = ""


class RunDecision(Value):
    """The decision after an evaluation; which keys are set depends on the action."""

    action: Action
    message: str | None = None
    iteration: int | None = None
    feedback: Feedback | None = None
    waiting_for: tuple[str, ...] | None = None
    context: EscalationContext | None = None
    question: str | None = None
    alternatives: tuple[Alternative, ...] | None = None
    task_id: str = ""

    def dump(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_unset=True)


def _parse_decision(value: Any) -> Any:
    """Return the decision, or None if it is invalid, as those of other tools may be."""
    try:
        return RunDecision.model_validate(value)
    except ValidationError:
        return None


OptionalDecision = Annotated[RunDecision | None, BeforeValidator(_parse_decision)]
