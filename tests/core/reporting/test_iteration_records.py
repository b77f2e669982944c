"""What each iteration came to, from its events."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import Breakers, Limits
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.reporting.iteration_records import IterationRecord, Verification, build_analysis, build_records
from tests.event_factory import make_event

if TYPE_CHECKING:
    from tests.core.conftest import Story

Tell = Callable[..., "Story"]
Make = Callable[..., RunRule]
NAMES = [f"a.x.n{number:03}" for number in range(200)]


def scored(tell: Tell, rule: Make, *scores: float, **fields: Any) -> Story:
    """Iterations with these scores of a hundred."""
    story = tell(*map(rule, NAMES), max_iterations=9, **fields)
    for number, score in enumerate(scores):
        story.judged(*NAMES[round(score * 2) :], message=f"{number}")
    return story


def of(story: Story) -> list[IterationRecord]:
    return build_records(story.state, story.events)


def test_the_best_is_not_the_last_where_the_last_is_worse(tell: Tell, rule: Make) -> None:
    story = scored(tell, rule, 60, 85, 83)
    told = of(story)
    assert [(one.iteration_number, one.quality_score, one.quality_delta) for one in told] == [
        (1, 60, 0),
        (2, 85, 25),
        (3, 83, -2),
    ]
    assert build_analysis(story.state, told) == {
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
def test_what_could_end_it_early_is_named_switched_on_or_not(
    tell: Tell, rule: Make, scores: tuple[float, ...], trigger: str, changes: list[float | None]
) -> None:
    story = scored(tell, rule, *scores)
    found = build_analysis(story.state, of(story))["early_stop"]
    assert (found["trigger"], found["changes"]) == (trigger, changes)


@pytest.mark.parametrize(("failing", "trigger"), [((), "high_confidence"), (("b.x.y",), "none")])
def test_confidence_is_a_trigger_only_with_a_pass(
    tell: Tell, rule: Make, failing: tuple[str, ...], trigger: str
) -> None:
    story = tell(rule(weight=96), rule("b.x.y", weight=4), breakers=Breakers(confidence=0.95))
    story.does(Kind.ARTIFACT_CREATED, exit_signal=False).judged().judged("b.x.y").judged(*failing).to_the_end()
    found = build_analysis(story.state, of(story)[:2])["early_stop"]
    assert (found["trigger"], found["stop"]) == (trigger, trigger != "none")
    assert found["confidence"] >= 0.95


def test_one_iteration_alone_says_nothing_about_the_next(tell: Tell) -> None:
    story = tell().judged().judged()
    assert build_analysis(story.state, of(story))["early_stop"]["trigger"] == "none"


def test_what_an_iteration_cost_is_all_that_led_to_its_evaluation(tell: Tell) -> None:
    story = tell().does(Kind.ARTIFACT_CREATED, usage={"tokens": 500, "cost_usd": 0.5}, seconds=20)
    story.judged("a.x.y", seconds=10).does(Kind.REFINEMENT_DONE, usage={"tokens": 700}, seconds=30).judged(seconds=5)
    story.judged(seconds=5)
    first, second = of(story)
    assert (first.tokens_used, first.token_cost_usd, first.execution_time_ms) == (500, 0.5, 30_000)
    assert (second.tokens_used, second.token_cost_usd, second.execution_time_ms) == (700, None, 40_000)
    assert (first.quality_per_1k_tokens, first.quality_per_minute) == (0, 0)
    assert (second.quality_per_1k_tokens, second.quality_per_minute) == (142.857, 150)


def test_what_nobody_reported_is_unknown_and_never_nothing(tell: Tell) -> None:
    story = tell(limits=Limits(usd=5, tokens=100)).judged("a.x.y")
    (one,) = of(story)
    unknown = ("tokens_used", "token_cost_usd", "input_tokens", "output_tokens", "tool_calls", "quality_per_1k_tokens")
    assert [getattr(one, name) for name in unknown] == [None] * len(unknown)
    assert (one.quality_per_minute, one.execution_time_ms) == (None, 0)
    assert build_analysis(story.state, [one])["unobservable"] == ["usd", "tokens"]


def test_a_void_iteration_is_compared_with_nothing_and_is_never_the_best(tell: Tell) -> None:
    story = tell().judged("a.x.y").judged(void=True, findings=[{"kind": "sealed_edited"}])
    first, second = of(story)
    assert (second.verification_status, second.quality_delta, second.baseline_comparison) == (
        Verification.VOID,
        0,
        None,
    )
    assert second.eval_harness_result is not None
    assert second.eval_harness_result["void_reason"] == "sealed_edited"
    found = build_analysis(story.state, [first, second])
    assert (found["best_iteration"], found["final_quality"], found["degradation_detected"]) == (1, None, True)


def test_a_phase_is_compared_with_itself(tell: Tell) -> None:
    story = tell().judged("a.x.y").judged().judged("b.x.y").judged()
    first, second, third = of(story)
    assert [one.phase.value for one in (first, second, third)] == ["A", "B", "B"]
    assert (second.quality_score, second.quality_delta, second.baseline_comparison) == (50, 0, None)
    assert third.baseline_comparison is not None
    assert (third.quality_delta, third.baseline_comparison.iteration_number) == (50, 2)
    assert build_analysis(story.state, [first, second, third])["best_iteration"] == 3


def test_what_passed_is_better_than_what_only_scores_higher(tell: Tell, rule: Make) -> None:
    rules = (rule("a.x.y", weight=1), rule("b.x.w", weight=99))
    story = tell(*rules, max_iterations=9).judged().judged("a.x.y").judged()
    told = of(story)
    assert [(one.quality_score, one.verification_status.value) for one in told] == [(99, "failed"), (100, "passed")]
    lower = told[1].model_copy(update={"quality_score": 80.0})
    assert build_analysis(story.state, [told[0], lower])["best_iteration"] == 2


def test_what_waits_for_a_person_was_not_verified(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.manual.x")).judged(assumed=("a.manual.x",))
    assert of(story)[0].verification_status is Verification.SKIPPED


def test_what_the_critique_said_and_what_was_tried_stand_beside_the_scores(tell: Tell) -> None:
    story = tell()
    story.events.append(make_event(story.state, "hypothesis_formed", {"hypothesis": "shorter is better"}))
    story.judged("a.x.y")
    story.does(Kind.REFINEMENT_DONE)
    (one,) = of(story)
    assert one.reflections == ("a.x.y: a.x.y: no",)
    assert one.experiment == {"hypothesis": "shorter is better"}


@pytest.mark.parametrize(
    ("target", "first", "second"),
    [(Target.ARTIFACT, None, "artifact.md"), (Target.WORKSPACE, "files-1.json", "files-2.json")],
)
def test_a_record_names_what_is_kept_of_its_iteration(
    tell: Tell, target: Target, first: str | None, second: str
) -> None:
    story = tell(target=target, artifact="artifact.md").judged("a.x.y").does(Kind.REFINEMENT_DONE).judged("a.x.y")
    assert [one.output_snapshot_path for one in of(story)] == [first, second]


def test_what_another_tool_wrote_is_as_unknown_as_it_is(tell: Tell) -> None:
    story = tell().until(Kind.EVALUATION_DONE)
    payload = {"usage": "much", "seconds": "long", "score": "good"}
    foreign = make_event(story.state, "evaluation_done", payload, "now")
    critiques = [make_event(story.state, "critique_done", {"issues": odd}, "now") for odd in (["odd"], 5)]
    (one,) = build_records(story.state, [*story.events, foreign, *critiques])
    assert (one.score, one.passed, one.quality_score, one.reflections) == (None, None, None, ())
    assert not one.is_sound
    assert build_analysis(story.state, [one])["best_iteration"] is None


def test_a_run_that_was_not_judged_has_nothing_to_tell(tell: Tell) -> None:
    story = tell()
    found = build_analysis(story.state, of(story))
    assert (found["best_iteration"], found["final_iteration"], found["degradation_detected"]) == (None, None, False)
