"""The record of each iteration, made from events."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.model.run_setup import Breakers, Limits
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.reporting.iteration_records import IterationRecord, Verification, build_analysis, build_records
from tests.core.scripted_run import ScriptedRun, make_rule
from tests.event_factory import make_event

NAMES = [f"a.x.n{number:03}" for number in range(200)]


def make_run_with_scores(*scores: float, **fields: Any) -> ScriptedRun:
    """Return a run with these scores, in percent."""
    run = ScriptedRun(*map(make_rule, NAMES), max_iterations=9, **fields)
    for number, score in enumerate(scores):
        run.evaluate(*NAMES[round(score * 2) :], message=f"{number}")
    return run


def build_run_records(run: ScriptedRun) -> list[IterationRecord]:
    return build_records(run.state, run.events)


def test_best_iteration_is_not_the_last_if_that_is_worse() -> None:
    run = make_run_with_scores(60, 85, 83)
    records = build_run_records(run)
    assert [(record.iteration_number, record.quality_score, record.quality_delta) for record in records] == [
        (1, 60, 0),
        (2, 85, 25),
        (3, 83, -2),
    ]
    assert build_analysis(run.state, records) == {
        "best_iteration": 2,
        "best_quality": 85,
        "final_iteration": 3,
        "final_quality": 83,
        "degradation_detected": True,
        "trajectory": "fluctuating",
        "early_stop": {
            "stop": False,
            "trigger": "none",
            "confidence": 0.83,
            "changes": [0.4167, 0.0235],
            "direction": "up",
        },
        "unobservable": ["usd"],
    }


@pytest.mark.parametrize(
    ("scores", "trigger", "changes"),
    [
        ((80, 81, 81.5), "quality_plateau", [0.0125, 0.0062]),
        ((0, 90, 90), "none", [None, 0.0]),
        ((80, 83, 86), "diminishing_returns", [0.0375, 0.0361]),
        ((80, 80), "none", []),
    ],
)
def test_early_stop_is_named_even_if_switched_off(
    scores: tuple[float, ...], trigger: str, changes: list[float | None]
) -> None:
    run = make_run_with_scores(*scores)
    early_stop = build_analysis(run.state, build_run_records(run))["early_stop"]
    assert (early_stop["trigger"], early_stop["changes"]) == (trigger, changes)


@pytest.mark.parametrize(("failing", "trigger"), [((), "high_confidence"), (("b.x.y",), "none")])
def test_confidence_triggers_only_with_a_pass(failing: tuple[str, ...], trigger: str) -> None:
    run = ScriptedRun(make_rule(weight=96), make_rule("b.x.y", weight=4), breakers=Breakers(confidence=0.95))
    run.complete(Kind.ARTIFACT_CREATED, exit_signal=False).evaluate().evaluate("b.x.y").evaluate(*failing).finish()
    early_stop = build_analysis(run.state, build_run_records(run)[:2])["early_stop"]
    assert (early_stop["trigger"], early_stop["stop"]) == (trigger, trigger != "none")
    assert early_stop["confidence"] >= 0.95


def test_single_iteration_has_no_trigger() -> None:
    run = ScriptedRun().evaluate().evaluate()
    assert build_analysis(run.state, build_run_records(run))["early_stop"]["trigger"] == "none"


def test_cost_of_an_iteration_includes_all_its_steps() -> None:
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, usage={"tokens": 500, "cost_usd": 0.5}, seconds=20)
    run.evaluate("a.x.y", seconds=10).complete(Kind.REFINEMENT_DONE, usage={"tokens": 700}, seconds=30).evaluate(
        seconds=5
    )
    run.evaluate(seconds=5)
    first, second = build_run_records(run)
    assert (first.tokens_used, first.token_cost_usd, first.execution_time_ms) == (500, 0.5, 30_000)
    assert (second.tokens_used, second.token_cost_usd, second.execution_time_ms) == (700, None, 40_000)
    assert (first.quality_per_1k_tokens, first.quality_per_minute) == (0, 0)
    assert (second.quality_per_1k_tokens, second.quality_per_minute) == (142.857, 150)


def test_record_has_the_plan_and_the_change_of_its_iteration() -> None:
    run = ScriptedRun(max_iterations=2).complete(Kind.ARTIFACT_CREATED, change={"is_first": True}).evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE, change={"added": ["Usage"]})
    run.complete(Kind.PLAN_CREATED, plan=["add more"]).evaluate("b.x.y")
    first, second = build_run_records(run)
    assert (first.plan, str(first.changed)) == (("one", "two", "three"), "initial generation")
    assert (second.plan, str(second.changed)) == (("add more",), "added Usage")
    assert run.state.progress.last_change == second.changed
    assert build_run_records(ScriptedRun().evaluate("a.x.y"))[0].changed is None


def test_unreported_usage_is_unknown_and_never_zero() -> None:
    run = ScriptedRun(limits=Limits(usd=5, tokens=100)).evaluate("a.x.y")
    (record,) = build_run_records(run)
    unknown = ("tokens_used", "token_cost_usd", "input_tokens", "output_tokens", "tool_calls", "quality_per_1k_tokens")
    assert [getattr(record, name) for name in unknown] == [None] * len(unknown)
    assert (record.quality_per_minute, record.execution_time_ms) == (None, 0)
    assert build_analysis(run.state, [record])["unobservable"] == ["usd", "tokens"]


def test_void_iteration_is_not_compared_and_never_the_best() -> None:
    run = ScriptedRun().evaluate("a.x.y").evaluate(void=True, findings=[{"kind": "sealed_edited"}])
    first, second = build_run_records(run)
    assert (second.verification_status, second.quality_delta, second.baseline_comparison) == (
        Verification.VOID,
        0,
        None,
    )
    assert second.eval_harness_result is not None
    assert second.eval_harness_result["void_reason"] == "sealed_edited"
    analysis = build_analysis(run.state, [first, second])
    assert (analysis["best_iteration"], analysis["final_quality"], analysis["degradation_detected"]) == (1, None, True)


def test_iterations_are_compared_within_their_phase() -> None:
    run = ScriptedRun().evaluate("a.x.y").evaluate().evaluate("b.x.y").evaluate()
    first, second, third = build_run_records(run)
    assert [record.phase.value for record in (first, second, third)] == ["A", "B", "B"]
    assert (second.quality_score, second.quality_delta, second.baseline_comparison) == (50, 0, None)
    assert third.baseline_comparison is not None
    assert (third.quality_delta, third.baseline_comparison.iteration_number) == (50, 2)
    assert build_analysis(run.state, [first, second, third])["best_iteration"] == 3


def test_passing_iteration_is_better_than_a_higher_score() -> None:
    rules = (make_rule("a.x.y", weight=1), make_rule("b.x.w", weight=99))
    run = ScriptedRun(*rules, max_iterations=9).evaluate().evaluate("a.x.y").evaluate()
    records = build_run_records(run)
    assert [(record.quality_score, record.verification_status.value) for record in records] == [
        (99, "failed"),
        (100, "passed"),
    ]
    lower = records[1].model_copy(update={"quality_score": 80.0})
    assert build_analysis(run.state, [records[0], lower])["best_iteration"] == 2


def test_iteration_with_an_unconfirmed_rule_is_not_verified() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.manual.x")).evaluate(assumed=("a.manual.x",))
    assert build_run_records(run)[0].verification_status is Verification.SKIPPED


def test_record_has_critique_and_hypothesis() -> None:
    run = ScriptedRun()
    run.events.append(make_event(run.state, "hypothesis_formed", {"hypothesis": "shorter is better"}))
    run.evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE)
    (record,) = build_run_records(run)
    assert record.reflections == ("a.x.y: a.x.y: no",)
    assert record.experiment == {"hypothesis": "shorter is better"}


@pytest.mark.parametrize(
    ("target", "first", "second"),
    [(Target.ARTIFACT, None, "artifact.md"), (Target.WORKSPACE, "files-1.json", "files-2.json")],
)
def test_record_names_the_snapshot_of_its_iteration(target: Target, first: str | None, second: str) -> None:
    run = (
        ScriptedRun(target=target, artifact="artifact.md")
        .evaluate("a.x.y")
        .complete(Kind.REFINEMENT_DONE)
        .evaluate("a.x.y")
    )
    assert [record.output_snapshot_path for record in build_run_records(run)] == [first, second]


def test_foreign_evaluation_has_no_score() -> None:
    run = ScriptedRun().advance_to(Kind.EVALUATION_DONE)
    payload = {"usage": "much", "seconds": "long", "score": "good"}
    foreign = make_event(run.state, "evaluation_done", payload, "now")
    critiques = [make_event(run.state, "critique_done", {"issues": odd}, "now") for odd in (["odd"], 5)]
    (record,) = build_records(run.state, [*run.events, foreign, *critiques])
    assert (record.score, record.passed, record.quality_score, record.reflections) == (None, None, None, ())
    assert not record.is_sound
    assert build_analysis(run.state, [record])["best_iteration"] is None


def test_run_without_evaluation_has_no_best_iteration() -> None:
    run = ScriptedRun()
    analysis = build_analysis(run.state, build_run_records(run))
    assert (analysis["best_iteration"], analysis["final_iteration"], analysis["degradation_detected"]) == (
        None,
        None,
        False,
    )
