"""What a person is asked, and what becomes of the answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.hypotheses import Decision, OnPlateau, OnRegression
from pytest_loop.run.questions import ask_about_plateau, ask_about_regression, ask_for_option
from pytest_loop.workloads.experiment_notes import make_note
from tests.core.laboratory import ExperimentStory


def saying(*words: str) -> Callable[[str], str]:
    answers = iter(words)
    return lambda _question: next(answers)


@pytest.mark.parametrize(
    ("said", "chosen", "feedback"),
    [
        ("", 1, ""),
        (" 2 ", 2, ""),
        ("3", 3, ""),
        ("s", None, ""),
        ("Skip", None, ""),
        ("look at dates", None, "look at dates"),
    ],
)
def test_a_person_chooses_skips_or_answers_in_words(said: str, chosen: int | None, feedback: str) -> None:
    found = ask_for_option(saying(said))
    assert (found.chosen, found.feedback) == (chosen, feedback)
    assert isinstance(found, Decision)
    assert found.reason.endswith("by a person")


@pytest.mark.parametrize(
    ("said", "action"), [(["a"], "accept"), (["what?", "Different"], "different"), (["s"], "stop"), ([""], "stop")]
)
def test_a_loss_is_asked_about_until_it_is_answered(said: list[str], action: str) -> None:
    assert ask_about_regression(saying(*said)) is OnRegression(action)


@pytest.mark.parametrize(("said", "action"), [(["c"], "continue"), (["x", "stop"], "stop"), ([""], "stop")])
def test_a_standstill_is_asked_about_until_it_is_answered(said: list[str], action: str) -> None:
    assert ask_about_plateau(saying(*said)) is OnPlateau(action)


def test_a_person_is_asked_only_where_the_policy_says_so() -> None:
    lost = ExperimentStory().measures(".FF", "F..")
    assert make_note(Kind.REGRESSION_DETECTED, lost.state, saying("a")).dump()["action"] == "accept"
    assert make_note(Kind.REGRESSION_DETECTED, lost.state, None).dump()["action"] == "stop"
    settled = ExperimentStory(on_regression="different").measures(".FF", "F..")
    assert make_note(Kind.REGRESSION_DETECTED, settled.state, saying()).dump()["action"] == "different"
    still = ExperimentStory().measures("F..", "F..", "F..")
    assert make_note(Kind.PLATEAU_REACHED, still.state, saying("c")).dump() == {"flat": 2, "action": "continue"}
    assert make_note(Kind.PLATEAU_REACHED, still.state, None).dump() == {"flat": 2, "action": "stop"}
