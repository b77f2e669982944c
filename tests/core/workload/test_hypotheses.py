from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.workload.analysis import Analysis
from pytest_loop.core.workload.hypotheses import (
    MODES,
    Hypothesis,
    HypothesisOutcome,
    OnPlateau,
    OptionDecision,
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
from tests.core.scripted_experiment import make_measurement


def make_series(*letters: str) -> list[Measurement]:
    return [make_measurement(results, index) for index, results in enumerate(letters)]


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
def test_hypothesis_is_judged_by_its_cases_and_the_guards(
    before: str, after: str, prediction: str, guards: str, truth: Truth
) -> None:
    hypothesis = Hypothesis(iteration=1, theory="t", prediction=tuple(prediction))
    assert (
        judge_hypothesis(hypothesis, make_measurement(before), make_measurement(after, 1), set(guards)).truth is truth
    )


def test_regressions_are_listed_whatever_the_verdict() -> None:
    hypothesis = Hypothesis(iteration=1, theory="t", prediction=("a", "b"), regresses=("c",))
    assert judge_hypothesis(
        hypothesis, make_measurement("FF.."), make_measurement(".FFF", 1), {"d"}
    ) == HypothesisOutcome(
        iteration=1,
        truth=Truth.PARTIALLY_CONFIRMED,
        improved=("a",),
        missed=("b",),
        regressions=("c", "d"),
        guards=("d",),
        unexpected=("d",),
    )


def make_analysis(**claim: Any) -> Analysis:
    options = [
        {"name": f"o{number}", "file": "p.md", "mechanism": f"m{number}", "improves": [number], "regresses": ["z"]}
        for number in "123"
    ]
    return Analysis.model_validate({"root_cause": "r", "hypothesis": {"theory": "t", **claim}, "options": options})


def test_hypothesis_is_made_from_the_chosen_option() -> None:
    hypothesis = form_hypothesis(make_analysis(), OptionDecision(chosen=2), 4)
    assert hypothesis == Hypothesis(
        iteration=4, theory="t", mechanism="m2", observation="r", prediction=("2",), regresses=("z",)
    )
    assert form_hypothesis(make_analysis(), OptionDecision(chosen=None, feedback="look at dates"), 4) is None


def test_composer_predicts_only_for_its_recommended_option() -> None:
    answer = make_analysis(prediction=["1", "2"], observation="o")
    hypotheses = [form_hypothesis(answer, OptionDecision(chosen=number), 1) for number in (1, 2)]
    assert [hypothesis.prediction for hypothesis in hypotheses if hypothesis] == [("1", "2"), ("2",)]


@pytest.mark.parametrize(
    ("letters", "settings", "action", "attended"),
    [
        # The first measurement has nothing to compare with.
        (["F."], {}, None, None),
        # A case that passed fails, although more cases pass than before.
        ([".FF", "F.."], {}, "stop", "ask"),
        ([".FF", "F.."], {"on_regression": "ask"}, "stop", "ask"),
        ([".FF", "F.."], {"on_regression": "stop"}, "stop", "stop"),
        ([".FF", "F.."], {"on_regression": "accept"}, "accept", "accept"),
        ([".FF", "F.."], {"on_regression": "different"}, "different", "different"),
        ([".FF", "E.."], {}, None, None),
        (["FF", ".F"], {}, None, None),
        # Exploration reacts only if fewer cases pass, and not at once.
        (["..F", "FF."], {"mode": "exploration"}, "accept", "accept"),
        (["..F", "FF.", "F.F", "FF."], {"mode": "exploration"}, "stop", "ask"),
        (["..F", "FF.", "F..", "F.F"], {"mode": "exploration"}, "stop", "ask"),
        (["..F", "FF."], {"mode": "exploration", "on_regression": "stop"}, "stop", "stop"),
    ],
)
def test_policy_decides_on_a_regression(
    letters: list[str], settings: dict[str, Any], action: str | None, attended: str | None
) -> None:
    policy = Policy.model_validate(settings)
    decisions = [
        decide_on_regression(make_series(*letters), policy, is_attended=is_attended) for is_attended in (False, True)
    ]
    assert [decision and decision.value for decision in decisions] == [action, attended]


@pytest.mark.parametrize(
    ("letters", "settings", "action", "attended"),
    [
        ([], {}, None, None),
        (["F."], {}, None, None),
        (["F.", "F."], {}, None, None),
        # Two measurements without a new best.
        (["F.", "F.", "F."], {}, "stop", "ask"),
        (["F.", "F.", "F."], {"on_plateau": "continue"}, "continue", "continue"),
        (["F.", "F.", "F."], {"on_plateau": "stop"}, "stop", "stop"),
        (["FF.", "F..", "F.."], {}, None, None),
        (["..F", "F..", "..F"], {"mode": "exploration"}, "stop", "ask"),
    ],
)
def test_policy_decides_on_a_plateau(
    letters: list[str], settings: dict[str, Any], action: str | None, attended: str | None
) -> None:
    policy = Policy.model_validate(settings)
    decisions = [
        decide_on_plateau(make_series(*letters), policy, is_attended=is_attended) for is_attended in (False, True)
    ]
    assert [decision and decision.value for decision in decisions] == [action, attended]


def test_plateau_count_restarts_after_a_decision_to_continue() -> None:
    measurements = make_series("F.", "F.", "F.", "F.", "F.")
    decisions = [
        decide_on_plateau(measurements[:count], Policy(), continued_after=2, is_attended=False) for count in (3, 4, 5)
    ]
    assert decisions == [None, None, OnPlateau.STOP]


def test_improvement_is_compared_with_the_best_measurement() -> None:
    assert count_flat_measurements(make_series("F..", "FF.", "F..")) == 2


def test_default_mode_is_precision() -> None:
    assert Policy().mode == "precision"


def test_every_mode_is_complete() -> None:
    assert set(MODES) == {"precision", "exploration", "convergence", "custom"}
    assert [name for name, mode in MODES.items() if mode.tolerates_regressions] == ["exploration"]
    assert all(mode.role and mode.focus and mode.hypothesis and mode.success for mode in MODES.values())


@pytest.mark.parametrize(
    ("before", "after", "expected"), [("F.", "..", Trend.IMPROVED), ("F.", ".F", Trend.NEUTRAL), ("..", "F.", Trend.DEGRADED)]
)  # fmt: skip
def test_trend_of_an_iteration(before: str, after: str, expected: Trend) -> None:
    assert classify_trend(make_measurement(before), make_measurement(after)) is expected
