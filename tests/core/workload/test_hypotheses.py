from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.workload.analysis import Analysis
from pytest_loop.core.workload.hypotheses import (
    MODES,
    Decision,
    Hypothesis,
    Judgement,
    OnPlateau,
    Policy,
    Trend,
    Truth,
    classify_trend,
    count_flat_measurements,
    decide_on_plateau,
    decide_on_regression,
    form_hypothesis,
    judge_hypothesis,
)
from pytest_loop.core.workload.measurement import Measurement
from tests.core.laboratory import measured


def series(*letters: str) -> list[Measurement]:
    return [measured(one, at) for at, one in enumerate(letters)]


@pytest.mark.parametrize(
    ("before", "after", "prediction", "guards", "truth"),
    [
        ("FF..", "....", "ab", "", Truth.CONFIRMED),
        ("FF..", "..F.", "ab", "", Truth.CONFIRMED),
        ("FF..", "..F.", "ab", "c", Truth.PARTIALLY_CONFIRMED),
        ("FF..", ".F..", "ab", "", Truth.PARTIALLY_CONFIRMED),
        ("FF..", "FF..", "ab", "", Truth.REJECTED),
        ("FF..", "F.F.", "a", "c", Truth.REJECTED),
        ("FF..", "EE..", "ab", "", Truth.REJECTED),
        ("FF..", "....", "", "", Truth.UNTESTED),
        ("FF..", "....", "abc", "", Truth.PARTIALLY_CONFIRMED),
    ],
)
def test_a_hypothesis_is_judged_by_the_cases_that_it_names_and_by_the_guards(
    before: str, after: str, prediction: str, guards: str, truth: Truth
) -> None:
    said = Hypothesis(iteration=1, theory="t", prediction=tuple(prediction))
    assert judge_hypothesis(said, measured(before), measured(after, 1), set(guards)).truth is truth


def test_regressions_are_named_whatever_came_true() -> None:
    said = Hypothesis(iteration=1, theory="t", prediction=("a", "b"), regresses=("c",))
    assert judge_hypothesis(said, measured("FF.."), measured(".FFF", 1), {"d"}) == Judgement(
        iteration=1,
        truth=Truth.PARTIALLY_CONFIRMED,
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
    found = form_hypothesis(analysis(), Decision(chosen=2), 4)
    assert found == Hypothesis(
        iteration=4, theory="t", mechanism="m2", observation="r", prediction=("2",), regresses=("z",)
    )
    assert form_hypothesis(analysis(), Decision(chosen=None, feedback="look at dates"), 4) is None


def test_the_prediction_of_the_composer_belongs_to_what_it_recommends() -> None:
    said = analysis(prediction=["1", "2"], observation="o")
    found = [form_hypothesis(said, Decision(chosen=number), 1) for number in (1, 2)]
    assert [one.prediction for one in found if one] == [("1", "2"), ("2",)]
    assert [Decision(chosen=number).is_override for number in (1, 2, None)] == [False, True, False]


@pytest.mark.parametrize(
    ("letters", "asked", "action", "attended"),
    [
        # What was measured first: nothing to compare with.
        (["F."], {}, None, None),
        # A case that passed fails, although more cases pass than before.
        ([".FF", "F.."], {}, "stop", "ask"),
        ([".FF", "F.."], {"on_regression": "ask"}, "stop", "ask"),
        ([".FF", "F.."], {"on_regression": "stop"}, "stop", "stop"),
        ([".FF", "F.."], {"on_regression": "accept"}, "accept", "accept"),
        ([".FF", "F.."], {"on_regression": "different"}, "different", "different"),
        ([".FF", "E.."], {}, None, None),
        (["FF", ".F"], {}, None, None),
        # Who explores minds only if it has become worse on the whole, and not at once.
        (["..F", "FF."], {"mode": "exploration"}, "accept", "accept"),
        (["..F", "FF.", "F.F", "FF."], {"mode": "exploration"}, "stop", "ask"),
        (["..F", "FF.", "F..", "F.F"], {"mode": "exploration"}, "stop", "ask"),
        (["..F", "FF."], {"mode": "exploration", "on_regression": "stop"}, "stop", "stop"),
    ],
)
def test_a_regression_is_accepted_asked_about_or_the_end(
    letters: list[str], asked: dict[str, Any], action: str | None, attended: str | None
) -> None:
    policy = Policy.model_validate(asked)
    found = [decide_on_regression(series(*letters), policy, is_attended=one) for one in (False, True)]
    assert [one and one.value for one in found] == [action, attended]


@pytest.mark.parametrize(
    ("letters", "asked", "action", "attended"),
    [
        ([], {}, None, None),
        (["F."], {}, None, None),
        (["F.", "F."], {}, None, None),
        # Twice no better than the best.
        (["F.", "F.", "F."], {}, "stop", "ask"),
        (["F.", "F.", "F."], {"on_plateau": "continue"}, "continue", "continue"),
        (["F.", "F.", "F."], {"on_plateau": "stop"}, "stop", "stop"),
        (["FF.", "F..", "F.."], {}, None, None),
        (["..F", "F..", "..F"], {"mode": "exploration"}, "stop", "ask"),
    ],
)
def test_a_plateau_is_asked_about_or_the_end(
    letters: list[str], asked: dict[str, Any], action: str | None, attended: str | None
) -> None:
    policy = Policy.model_validate(asked)
    found = [decide_on_plateau(series(*letters), policy, is_attended=one) for one in (False, True)]
    assert [one and one.value for one in found] == [action, attended]


def test_a_plateau_that_was_gone_on_from_is_counted_anew() -> None:
    ones = series("F.", "F.", "F.", "F.", "F.")
    found = [decide_on_plateau(ones[:count], Policy(), continued_after=2, is_attended=False) for count in (3, 4, 5)]
    assert found == [None, None, OnPlateau.STOP]


def test_improvement_is_more_than_the_best_so_far_and_not_more_than_before() -> None:
    assert count_flat_measurements(series("F..", "FF.", "F..")) == 2


def test_the_mode_is_precision_unless_somebody_says_otherwise() -> None:
    assert Policy().mode == "precision"


def test_every_mode_is_data() -> None:
    assert set(MODES) == {"precision", "exploration", "convergence", "custom"}
    assert [name for name, one in MODES.items() if one.tolerates_regressions] == ["exploration"]
    assert all(one.role and one.focus and one.hypothesis and one.success for one in MODES.values())


@pytest.mark.parametrize(
    ("before", "after", "expected"), [("F.", "..", Trend.IMPROVED), ("F.", ".F", Trend.NEUTRAL), ("..", "F.", Trend.DEGRADED)]
)  # fmt: skip
def test_the_direction_of_an_iteration_is_told_in_a_word(before: str, after: str, expected: Trend) -> None:
    assert classify_trend(measured(before), measured(after)) is expected
