"""Questions of a stopped run to a person, and the answers to them."""

from __future__ import annotations

from pytest_loop.core.model.rules import Value


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
