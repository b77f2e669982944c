"""Questions of a stopped run to a person, and the answers to them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pytest_loop.core.model.rules import Value


class IterationControl(Value):
    """The settings of retries and escalations, with the names of other tools."""

    auto_retry_on_test_fail: bool = True
    auto_retry_on_review_reject: bool = True
    escalation_includes_diff: bool = True
    feedback_max_length: Annotated[int, Field(ge=1)] = 500


class Alternative(Value):
    """One possible answer to a question.

    For one that `changes_judge`, an agent has to edit a sealed file: `unseal` is its path, if that is known.
    """

    text: str
    changes_judge: bool = False
    unseal: str = ""


class Answer(Value):
    """A person's answer to the question of a stopped run; `evaluations` counts those before it.

    An empty text only lets the run continue. `unsealed` are files that it allows to edit although they judge.
    """

    text: str = ""
    question: str = ""
    iteration: int = 1
    evaluations: int = 0
    unsealed: tuple[str, ...] = ()
