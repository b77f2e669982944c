from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.composing import Analysis
from pytest_loop.core.experiment import (
    MODES,
    RECOMMENDED,
    Decision,
    Ending,
    Hypothesis,
    Judgement,
    Move,
    Policy,
    Trend,
    Truth,
    course,
    flat,
    hypothesis,
    judged,
    trend,
)
from pytest_loop.core.measuring import CaseOutcome, CaseResult, Measurement

OUTCOMES = {".": CaseOutcome.PASSED, "F": CaseOutcome.FAILED, "E": CaseOutcome.INFRASTRUCTURE}


def measured(letters: str, iteration: int = 0) -> Measurement:
    results = tuple(CaseResult(id=chr(97 + at), outcome=OUTCOMES[one]) for at, one in enumerate(letters))
    return Measurement(iteration=iteration, results=results)


def series(*letters: str) -> list[Measurement]:
    return [measured(one, at) for at, one in enumerate(letters)]


@pytest.mark.parametrize(
    ("before", "after", "prediction", "guards", "truth"),
    [
        ("FF..", "....", "ab", "", Truth.CONFIRMED),
        ("FF..", "..F.", "ab", "", Truth.CONFIRMED),
        ("FF..", "..F.", "ab", "c", Truth.PARTIALLY),
        ("FF..", ".F..", "ab", "", Truth.PARTIALLY),
        ("FF..", "FF..", "ab", "", Truth.REJECTED),
        ("FF..", "F.F.", "a", "c", Truth.REJECTED),
        ("FF..", "EE..", "ab", "", Truth.REJECTED),
        ("FF..", "....", "", "", Truth.UNTESTED),
        ("FF..", "....", "abc", "", Truth.PARTIALLY),
    ],
)
def test_a_hypothesis_is_judged_by_the_cases_that_it_names_and_by_the_guards(
    before: str, after: str, prediction: str, guards: str, truth: Truth
) -> None:
    said = Hypothesis(iteration=1, theory="t", prediction=tuple(prediction))
    assert judged(said, measured(before), measured(after, 1), set(guards)).truth is truth


def test_regressions_are_named_whatever_came_true() -> None:
    said = Hypothesis(iteration=1, theory="t", prediction=("a", "b"), regresses=("c",))
    assert judged(said, measured("FF.."), measured(".FFF", 1), {"d"}) == Judgement(
        iteration=1,
        truth=Truth.PARTIALLY,
        improved=("a",),
        missed=("b",),
        regressions=("c", "d"),
        guards=("d",),
        unexpected=("d",),
    )


def analysis(**claim: Any) -> Analysis:
    options = [
        {"name": f"o{number}", "file": "p.md", "mechanism": f"m{number}", "improves": [number], "regresses": ["z"]}
        for number in "123"
    ]
    return Analysis.model_validate({"root_cause": "r", "hypothesis": {"theory": "t", **claim}, "options": options})


def test_a_hypothesis_is_made_of_what_was_decided() -> None:
    found = hypothesis(analysis(), Decision(chosen=2), 4)
    assert found == Hypothesis(
        iteration=4, theory="t", mechanism="m2", observation="r", prediction=("2",), regresses=("z",)
    )
    assert hypothesis(analysis(), Decision(chosen=None, feedback="look at dates"), 4) is None


def test_the_prediction_of_the_composer_belongs_to_what_it_recommends() -> None:
    said = analysis(prediction=["1", "2"], observation="o")
    found = [hypothesis(said, Decision(chosen=number), 1) for number in (1, 2)]
    assert [one.prediction for one in found if one] == [("1", "2"), ("2",)]
    assert [Decision(chosen=number).overrides for number in (1, 2, None)] == [False, True, False]


@pytest.mark.parametrize(
    ("letters", "asked", "move", "ending"),
    [
        # What was measured first: nothing to compare with.
        (["F."], {}, Move.GO_ON, None),
        ([".."], {}, Move.STOP, Ending.CONVERGED),
        (["F."], {"max_iterations": 1}, Move.STOP, Ending.ITERATION_LIMIT),
        ([".."], {"max_iterations": 1}, Move.STOP, Ending.CONVERGED),
        ([".E"], {}, Move.GO_ON, None),
        # A case that passed fails, although more cases pass than before.
        ([".FF", "F.."], {}, Move.STOP, Ending.REGRESSION),
        ([".FF", "F.."], {"is_attended": True}, Move.ASK_REGRESSION, None),
        ([".FF", "F.."], {"on_regression": "ask"}, Move.STOP, Ending.REGRESSION),
        ([".FF", "F.."], {"on_regression": "stop", "is_attended": True}, Move.STOP, Ending.REGRESSION),
        ([".FF", "F.."], {"on_regression": "accept"}, Move.GO_ON, None),
        ([".FF", "F.."], {"on_regression": "different"}, Move.DIFFERENT, None),
        ([".FF", "F.."], {"on_regression": "different", "max_iterations": 2}, Move.STOP, Ending.ITERATION_LIMIT),
        ([".FF", "F.."], {"is_attended": True, "max_iterations": 2}, Move.STOP, Ending.ITERATION_LIMIT),
        ([".FF", "E.."], {}, Move.GO_ON, None),
        # Twice no better than the best.
        (["F.", "F."], {}, Move.GO_ON, None),
        (["F.", "F.", "F."], {}, Move.STOP, Ending.PLATEAU),
        (["F.", "F.", "F."], {"is_attended": True}, Move.ASK_PLATEAU, None),
        (["F.", "F.", "F."], {"on_plateau": "continue"}, Move.GO_ON, None),
        (["F.", "F.", "F."], {"on_plateau": "stop", "is_attended": True}, Move.STOP, Ending.PLATEAU),
        (["FF.", "F..", "F.."], {}, Move.GO_ON, None),
        # Who explores minds only if it has become worse on the whole, and not at once.
        (["..F", "F..", "..F"], {"mode": "exploration"}, Move.STOP, Ending.PLATEAU),
        (["..F", "FF."], {"mode": "exploration"}, Move.GO_ON, None),
        (["..F", "FF.", "F.F", "FF."], {"mode": "exploration"}, Move.STOP, Ending.REGRESSION),
        (["..F", "FF.", "F.F", "FF."], {"mode": "exploration", "is_attended": True}, Move.ASK_REGRESSION, None),
        (["..F", "FF."], {"mode": "exploration", "on_regression": "stop"}, Move.STOP, Ending.REGRESSION),
    ],
)
def test_an_experiment_goes_on_asks_or_ends_as_the_policies_say(
    letters: list[str], asked: dict[str, Any], move: Move, ending: Ending | None
) -> None:
    found = course(series(*letters), Policy.model_validate(asked), iteration=len(letters))
    assert (found.move, found.ending) == (move, ending)


def test_a_regression_is_in_the_answer_also_where_it_is_accepted() -> None:
    found = course(series(".FF", "F.."), Policy.model_validate({"on_regression": "accept"}), 2)
    assert (found.change.regressions, found.change.fixed) == (("a",), ("b", "c"))


def test_what_a_person_has_settled_is_not_asked_again() -> None:
    policy = Policy(is_attended=True)
    assert course(series(".F", "F."), policy, 2, settled=1).move is Move.GO_ON
    flat_ones = series("F.", "F.", "F.", "F.", "F.")
    assert [course(flat_ones[:count], policy, count, settled=2).move for count in (3, 4, 5)] == [
        Move.GO_ON,
        Move.GO_ON,
        Move.ASK_PLATEAU,
    ]


def test_improvement_is_more_than_the_best_so_far_and_not_more_than_before() -> None:
    assert flat(series("F..", "FF.", "F..")) == 2


@pytest.mark.parametrize(
    ("asked", "decision"),
    [({}, RECOMMENDED), ({"is_attended": True}, None), ({"is_attended": True, "decide": "recommended"}, RECOMMENDED)],
)
def test_a_person_decides_where_one_can_be_asked(asked: dict[str, Any], decision: Decision | None) -> None:
    assert Policy.model_validate(asked).decision == decision


def test_the_mode_is_precision_and_ten_iterations_are_allowed_unless_somebody_says_otherwise() -> None:
    assert (Policy().mode, Policy().max_iterations) == ("precision", 10)


def test_every_mode_is_data() -> None:
    assert set(MODES) == {"precision", "exploration", "convergence", "custom"}
    assert [name for name, one in MODES.items() if one.tolerates_regressions] == ["exploration"]
    assert all(one.role and one.focus and one.hypothesis and one.success for one in MODES.values())


@pytest.mark.parametrize(
    ("before", "after", "expected"), [("F.", "..", Trend.IMPROVED), ("F.", ".F", Trend.NEUTRAL), ("..", "F.", Trend.DEGRADED)]
)  # fmt: skip
def test_the_direction_of_an_iteration_is_told_in_a_word(before: str, after: str, expected: Trend) -> None:
    assert trend(measured(before), measured(after)) is expected
