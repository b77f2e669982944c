"""Questions of a stopped run to a person, and the answers to them."""

from __future__ import annotations

from pytest_loop.core.model.rules import Value


class Alternative(Value):
    """One possible answer to a question.

    `changes_judge` means that the answer needs an edit of a sealed file; `unseal` is the path of this file, or empty.
    """

    text: str
    changes_judge: bool = False
    unseal: str = ""


class Answer(Value):
    """A person's answer to the question of a stopped run; an empty text only lets the run continue.

    `evaluations` counts the evaluations before the answer, `unsealed` are sealed files that it allows agents to edit.
    """

    text: str = ""
    question: str = ""
    iteration: int = 1
    evaluations: int = 0
    unsealed: tuple[str, ...] = ()
