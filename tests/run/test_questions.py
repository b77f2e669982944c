"""Questions to the user, and the decisions made from the answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.hypotheses import Decision, OnPlateau, OnRegression
from pytest_loop.run.questions import ask_about_plateau, ask_about_regression, ask_for_option
from pytest_loop.workloads.experiment_notes import make_note
from tests.core.scripted_experiment import ScriptedExperiment


def make_ask(*words: str) -> Callable[[str], str]:
    answers = iter(words)
    return lambda _question: next(answers)


@pytest.mark.parametrize(
    ("answer", "chosen", "feedback"),
    [
        ("", 1, ""),
        (" 2 ", 2, ""),
        ("3", 3, ""),
        ("s", None, ""),
        ("Skip", None, ""),
        ("look at dates", None, "look at dates"),
    ],
)
def test_answer_chooses_an_option_skips_or_is_feedback(answer: str, chosen: int | None, feedback: str) -> None:
    decision = ask_for_option(make_ask(answer))
    assert (decision.chosen, decision.feedback) == (chosen, feedback)
    assert isinstance(decision, Decision)
    assert decision.reason.endswith("by a person")


@pytest.mark.parametrize(
    ("answers", "action"), [(["a"], "accept"), (["what?", "Different"], "different"), (["s"], "stop"), ([""], "stop")]
)
def test_question_about_a_regression_repeats_until_answered(answers: list[str], action: str) -> None:
    assert ask_about_regression(make_ask(*answers)) is OnRegression(action)


@pytest.mark.parametrize(("answers", "action"), [(["c"], "continue"), (["x", "stop"], "stop"), ([""], "stop")])
def test_question_about_a_plateau_repeats_until_answered(answers: list[str], action: str) -> None:
    assert ask_about_plateau(make_ask(*answers)) is OnPlateau(action)


def test_user_is_asked_only_if_the_policy_is_to_ask() -> None:
    regression = ScriptedExperiment().measure(".FF", "F..")
    assert make_note(Kind.REGRESSION_DETECTED, regression.state, make_ask("a")).dump()["action"] == "accept"
    assert make_note(Kind.REGRESSION_DETECTED, regression.state, None).dump()["action"] == "stop"
    decided = ScriptedExperiment(on_regression="different").measure(".FF", "F..")
    assert make_note(Kind.REGRESSION_DETECTED, decided.state, make_ask()).dump()["action"] == "different"
    plateau = ScriptedExperiment().measure("F..", "F..", "F..")
    assert make_note(Kind.PLATEAU_REACHED, plateau.state, make_ask("c")).dump() == {"flat": 2, "action": "continue"}
    assert make_note(Kind.PLATEAU_REACHED, plateau.state, None).dump() == {"flat": 2, "action": "stop"}
