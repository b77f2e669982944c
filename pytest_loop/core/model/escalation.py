"""Questions of a stopped run to a person, and the answers to them."""

from __future__ import annotations

from pytest_loop.core.model.rules import Value


class Alternative(Value):
    """One possible answer to a question.

    One that `changes_judge` needs an edit of a sealed file: `unseal` is its path, if that is known.
    """

    text: str
    changes_judge: bool = False
    unseal: str = ""


class Answer(Value):
    """A person's answer to the question of a stopped run; an empty text only lets the run continue.

    `evaluations` counts the evaluations before it, `unsealed` are sealed files that it allows to edit.
    """

    text: str = ""
    question: str = ""
    iteration: int = 1
    evaluations: int = 0
    unsealed: tuple[str, ...] = ()
