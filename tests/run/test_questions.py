"""Questions to the user, and the decisions made from the answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.workload.hypotheses import OnPlateau, OnRegression, OptionDecision
from pytest_loop.core.workload.measurement import Change
from pytest_loop.inference.gates import Confirm
from pytest_loop.run.questions import Gates, ask_about_plateau, ask_about_regression, ask_for_option
from pytest_loop.workloads.experiment_notes import make_note
from tests.core.scripted_experiment import ScriptedExperiment, make_measurement


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
    assert isinstance(decision, OptionDecision)
    assert decision.reason.endswith("by a person")


@pytest.mark.parametrize(
    ("answers", "action"), [(["a"], "accept"), (["what?", "Different"], "different"), (["s"], "stop"), ([""], "stop")]
)
def test_question_about_a_regression_repeats_until_answered(answers: list[str], action: str) -> None:
    assert ask_about_regression(make_ask(*answers), Change(regressions=("a",)), "") is OnRegression(action)


@pytest.mark.parametrize(("answers", "action"), [(["c"], "continue"), (["x", "stop"], "stop"), ([""], "stop")])
def test_question_about_a_plateau_repeats_until_answered(answers: list[str], action: str) -> None:
    assert ask_about_plateau(make_ask(*answers), 2, make_measurement("F..")) is OnPlateau(action)


def record_questions(state: RunState, kind: Kind) -> list[str]:
    """Return the questions of a note, answered with Enter."""
    questions: list[str] = []
    make_note(kind, state, lambda question: questions.append(question) or "")  # type: ignore[func-returns-value, arg-type]
    return questions


def test_questions_say_first_what_happened() -> None:
    regression = ScriptedExperiment().measure(".FF", "F..").state
    assert record_questions(regression, Kind.REGRESSION_DETECTED)[0].splitlines() == [
        "REGRESSION after o11: a passed before; b, c improved",
        "accept it, try something different, or stop? [a/d/s, Enter stops] ",
    ]
    loss = ScriptedExperiment().measure(".FF", "FFF").state
    assert (
        "REGRESSION after o11: a passed before; no case improved\n"
        in record_questions(loss, Kind.REGRESSION_DETECTED)[0]
    )
    plateau = ScriptedExperiment().measure("F..", "F..", "F..").state
    assert record_questions(plateau, Kind.PLATEAU_REACHED)[0].splitlines() == [
        "PLATEAU: 2 times no better than 2/3 passing (67%) of iteration 0",
        "continue with a different approach, or stop? [c/s, Enter stops] ",
    ]


@pytest.mark.parametrize(
    ("answer", "goes_on"), [("", True), ("y", True), ("n", None), ("let me see", None), (None, None)]
)
def test_first_edit_is_composed_once_the_baseline_is_confirmed(answer: str | None, goes_on: bool | None) -> None:
    questions: list[str] = []

    def read_answer(question: str) -> str | None:
        questions.append(question)
        return answer

    state = ScriptedExperiment().measure("F..").state
    assert Gates(is_terminal=True, read_answer=read_answer).allow_iteration(state) is goes_on
    assert questions == ["baseline: 2/3 passing (67%). Ready to begin? [Y/n, n pauses] "]


def test_baseline_is_confirmed_once_and_only_by_a_person() -> None:
    run = ScriptedExperiment().measure("F..")
    assert Gates().allow_iteration(run.state)
    assert Gates(is_terminal=True, is_agreed=True).allow_iteration(run.state)
    assert Gates(Confirm.NEVER, is_terminal=True).allow_iteration(run.state)
    composed = ScriptedExperiment().measure("F..").advance_to(Kind.REFINEMENT_DONE)
    assert Gates(is_terminal=True).allow_iteration(composed.state)
    run.record(Kind.PHASE_ERROR, step="CRITIQUE", reason="no mechanism")
    assert Gates(is_terminal=True).allow_iteration(run.state)


def test_next_agent_of_a_ladder_composes_after_a_plateau() -> None:
    run = ScriptedExperiment(agents=("one", "two"), on_plateau="stop").measure("F..", "F..", "F..")
    run.advance_to(Kind.CRITIQUE_DONE)
    assert run.events[-1].payload.dump() == {"flat": 2, "action": "continue", "next_agent": "two"}
    assert (run.state.progress.agent_index, run.state.progress.agent_since) == (1, 4)
    run.measure("F..", "F..").finish()
    assert (run.state.stop.reason, run.state.progress.agent_index) == ("plateau", 1)


def test_user_is_asked_only_if_the_policy_is_to_ask() -> None:
    regression = ScriptedExperiment().measure(".FF", "F..")
    assert make_note(Kind.REGRESSION_DETECTED, regression.state, make_ask("a")).dump()["action"] == "accept"
    assert make_note(Kind.REGRESSION_DETECTED, regression.state, None).dump()["action"] == "stop"
    decided = ScriptedExperiment(on_regression="different").measure(".FF", "F..")
    assert make_note(Kind.REGRESSION_DETECTED, decided.state, make_ask()).dump()["action"] == "different"
    plateau = ScriptedExperiment().measure("F..", "F..", "F..")
    assert make_note(Kind.PLATEAU_REACHED, plateau.state, make_ask("c")).dump() == {"flat": 2, "action": "continue"}
    assert make_note(Kind.PLATEAU_REACHED, plateau.state, None).dump() == {"flat": 2, "action": "stop"}
