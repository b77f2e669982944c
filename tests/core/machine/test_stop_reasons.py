"""Why a run ends: every reason, what comes before what, and what does not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.machine.stop_reasons import STOP_ROWS, find_row
from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule, build_levels
from pytest_loop.core.model.run_state import Breakers, Limits
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status
from tests.core.laboratory import ExperimentStory

if TYPE_CHECKING:
    from tests.core.conftest import Story

Tell = Callable[..., "Story"]
Make = Callable[..., RunRule]
WARN, INFO = Severity.WARN, Severity.INFO
OVER_TIME = {"max_completed_phase_seconds": 600}


def rejudged(story: Story, *messages: str, rules: tuple[str, ...] = ("a.x.y",)) -> Story:
    for message in messages:
        story.judged(*rules, message=message)
    return story


def docs(tell: Tell, rule: Make, **fields: Any) -> Story:
    """The template for documentation, in phase A: two rules that block, two that warn, 0.75."""
    rules = (rule("a.accuracy.x"), rule("a.sections.x"), rule("a.examples.x", WARN), rule("a.clarity.x", WARN))
    thresholds = build_levels({Phase.A: "0.75", Phase.B: "0.85"})  # type: ignore[dict-item]
    return tell(criteria=RunCriteria(rules=(*rules, rule("b.x.y", WARN)), phase=thresholds), **fields)


def forbidden(tell: Tell, rule: Make) -> Story:
    return tell(rule("a.no.secrets", must_not=True), rule()).judged("a.no.secrets")


def everything_passes(tell: Tell, rule: Make) -> Story:
    return tell().judged().judged()


def only_warnings_are_left(tell: Tell, rule: Make) -> Story:
    return tell(rule(), rule("b.x.y", WARN), rule("b.x.z", WARN)).judged().judged("b.x.y", "b.x.z")


def nobody_confirmed(tell: Tell, rule: Make) -> Story:
    return tell(rule(), rule("a.manual.x")).judged(assumed=("a.manual.x",))


def an_honest_no(tell: Tell, rule: Make) -> Story:
    claim = {"rule": "a.x.y", "reason": "it contradicts b.x.y"}
    return tell().judged("a.x.y").does(Kind.REFINEMENT_DONE, blocked=claim).judged("a.x.y")


def asked_for(tell: Tell, rule: Make) -> Story:
    return tell().judged("a.x.y").happens(Kind.STOP_REQUESTED)


def the_same_rules_five_times(tell: Tell, rule: Make) -> Story:
    return rejudged(tell(max_iterations=9), "one", "two", "three", "four", "five")


def the_same_words_three_times(tell: Tell, rule: Make) -> Story:
    return rejudged(tell(), "line 1", "line 2", "line 3")


def back_and_forth(tell: Tell, rule: Make) -> Story:
    story = tell().does(Kind.ARTIFACT_CREATED, artifact_hash="a" * 64).judged("a.x.y", message="one")
    story.does(Kind.REFINEMENT_DONE, artifact_hash="b" * 64).judged("a.x.y", message="two")
    return story.does(Kind.REFINEMENT_DONE, artifact_hash="a" * 64).judged("a.x.y", message="three")


def no_gain(tell: Tell, rule: Make) -> Story:
    return rejudged(docs(tell, rule), "one", "two", "three", rules=("a.examples.x", "a.clarity.x"))


def quality(story: Story, *counts: int) -> Story:
    """Iterations in which so many of the rules pass, each failing in words of its own."""
    names = [rule.id for rule in story.state.criteria.rules]
    for number, passing in enumerate(counts):
        story.judged(*names[passing:], message=f"{number} {passing}")
    return story


def twenty(tell: Tell, rule: Make, **breakers: float) -> Story:
    rules = [rule(f"a.x.n{number}") for number in range(20)]
    return tell(*rules, max_iterations=9, breakers=Breakers(stuck=0, same_error=0, **breakers))


def it_stays_as_it_is(tell: Tell, rule: Make) -> Story:
    return quality(twenty(tell, rule, plateau=0.02, diminishing=0.05), 10, 10, 10)


def less_and_less(tell: Tell, rule: Make) -> Story:
    return quality(twenty(tell, rule, plateau=0.02, diminishing=0.06), 17, 18, 17)


def beyond_an_opinion(tell: Tell, rule: Make) -> Story:
    story = tell(breakers=Breakers(confidence=0.95)).does(Kind.ARTIFACT_CREATED, exit_signal=False).judged().judged()
    return story.does(Kind.REFINEMENT_DONE).judged()


def out_of_time(tell: Tell, rule: Make) -> Story:
    return tell(**OVER_TIME).judged("a.x.y", seconds=624)


def four_rounds(tell: Tell, rule: Make) -> Story:
    return rejudged(tell(), "one", "two", "three", "four")


def a_broken_answer(tell: Tell, rule: Make) -> Story:
    story = tell().until(Kind.ARTIFACT_CREATED).happens(Kind.PHASE_ERROR, step="PRODUCE", reason="empty")
    return story.happens(Kind.PHASE_ERROR, step="PRODUCE", reason="empty again")


def all_cases_pass(tell: Tell, rule: Make) -> Story:
    return ExperimentStory().measures("F..", "...")


def a_case_is_lost(tell: Tell, rule: Make) -> Story:
    return ExperimentStory().measures(".FF", "F..")


def no_case_is_won(tell: Tell, rule: Make) -> Story:
    return ExperimentStory().measures("F..", "F..", "F..")


def a_broken_pipeline(tell: Tell, rule: Make) -> Story:
    return ExperimentStory().does(Kind.CALIBRATION_DONE, passed=False)


STORIES: dict[Reason, Callable[[Tell, Make], Story]] = {
    Reason.MUST_NOT: forbidden,
    Reason.THRESHOLD_REACHED: everything_passes,
    Reason.NO_MAJOR_ISSUES: only_warnings_are_left,
    Reason.HIGH_CONFIDENCE: beyond_an_opinion,
    Reason.UNCONFIRMED: nobody_confirmed,
    Reason.BLOCKED: an_honest_no,
    Reason.USER_STOP: asked_for,
    Reason.STUCK: the_same_rules_five_times,
    Reason.SAME_ERROR: the_same_words_three_times,
    Reason.THRASHING: back_and_forth,
    Reason.STAGNATION: no_gain,
    Reason.QUALITY_PLATEAU: it_stays_as_it_is,
    Reason.DIMINISHING_RETURNS: less_and_less,
    Reason.BUDGET_EXCEEDED: out_of_time,
    Reason.ITERATION_LIMIT: four_rounds,
    Reason.PHASE_ERROR: a_broken_answer,
    Reason.CONVERGED: all_cases_pass,
    Reason.REGRESSION: a_case_is_lost,
    Reason.PLATEAU: no_case_is_won,
    Reason.CALIBRATION: a_broken_pipeline,
}


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_to_stop_is_reached(tell: Tell, rule: Make, reason: Reason) -> None:
    state = STORIES[reason](tell, rule).to_the_end().state
    assert (state.stop.reason, state.status) == (reason.value, find_row(reason).status)
    assert state.stop.passed is (state.status is Status.COMPLETED)


def test_every_reason_is_in_the_order_once() -> None:
    assert [row.reason for row in STOP_ROWS] == list(Reason)


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        *(
            (reason, Status.COMPLETED)
            for reason in (
                Reason.THRESHOLD_REACHED,
                Reason.CONVERGED,
                Reason.NO_MAJOR_ISSUES,
                Reason.HIGH_CONFIDENCE,
            )
        ),
        (Reason.CALIBRATION, Status.FAILED),
        (Reason.PHASE_ERROR, Status.FAILED),
        (Reason.BUDGET_EXCEEDED, Status.STOPPED),
        (Reason.UNCONFIRMED, Status.STOPPED),
        (Reason.BLOCKED, Status.STOPPED),
    ],
)
def test_only_a_success_completes_a_run(reason: Reason, status: Status) -> None:
    assert find_row(reason).status is status


# -- first match wins


def threshold_and_budget(tell: Tell, rule: Make) -> Story:
    return tell(**OVER_TIME).judged().judged(seconds=624)


def warnings_and_budget(tell: Tell, rule: Make) -> Story:
    story = tell(rule(), rule("b.x.y", WARN), rule("b.x.z", WARN), **OVER_TIME)
    return story.judged().judged("b.x.y", "b.x.z", seconds=624)


def limit_and_budget(tell: Tell, rule: Make) -> Story:
    return tell(max_iterations=1, **OVER_TIME).judged("a.x.y", seconds=624)


def stagnation_and_budget(tell: Tell, rule: Make) -> Story:
    story = docs(tell, rule, **OVER_TIME)
    for number in (1, 2, 3):
        story.judged("a.examples.x", "a.clarity.x", message=str(number), seconds=624 if number == 3 else 0)
    return story


def request_and_all_below(tell: Tell, rule: Make) -> Story:
    story = tell(max_iterations=3, **OVER_TIME).does(Kind.ARTIFACT_CREATED, artifact_hash="a" * 64).judged("a.x.y")
    story.does(Kind.REFINEMENT_DONE, artifact_hash="b" * 64).judged("a.x.y")
    story.does(Kind.REFINEMENT_DONE, artifact_hash="a" * 64).until(Kind.EVALUATION_DONE)
    return story.happens(Kind.STOP_REQUESTED).happens(
        Kind.EVALUATION_DONE, **story.judgement({"a.x.y": "a.x.y: no"}), seconds=624
    )


def success_and_request(tell: Tell, rule: Make) -> Story:
    story = tell().judged().until(Kind.EVALUATION_DONE).happens(Kind.STOP_REQUESTED)
    return story.happens(Kind.EVALUATION_DONE, **story.judgement({}))


def success_and_the_last_round(tell: Tell, rule: Make) -> Story:
    return tell(max_iterations=1).judged().judged()


def success_and_a_claim(tell: Tell, rule: Make) -> Story:
    claim = {"rule": "a.x.y", "reason": "it cannot be done"}
    return tell().does(Kind.ARTIFACT_CREATED, blocked=claim).judged().judged()


def forbidden_and_all_else_passes(tell: Tell, rule: Make) -> Story:
    return tell(rule(), rule("b.no.secrets", must_not=True)).judged().judged("b.no.secrets")


def claim_and_request(tell: Tell, rule: Make) -> Story:
    story = an_honest_no(tell, rule)
    return story.happens(Kind.STOP_REQUESTED)


def error_and_budget(tell: Tell, rule: Make) -> Story:
    story = tell(**OVER_TIME).until(Kind.EVALUATION_DONE)
    for _ in range(2):
        story.happens(Kind.PHASE_ERROR, step="EVALUATE", reason="it died", seconds=500)
    return story


@pytest.mark.parametrize(
    ("tale", "reason"),
    [
        (threshold_and_budget, Reason.THRESHOLD_REACHED),
        (warnings_and_budget, Reason.NO_MAJOR_ISSUES),
        (limit_and_budget, Reason.BUDGET_EXCEEDED),
        (stagnation_and_budget, Reason.STAGNATION),
        (request_and_all_below, Reason.USER_STOP),
        (success_and_request, Reason.THRESHOLD_REACHED),
        (success_and_the_last_round, Reason.THRESHOLD_REACHED),
        (success_and_a_claim, Reason.THRESHOLD_REACHED),
        (forbidden_and_all_else_passes, Reason.MUST_NOT),
        (claim_and_request, Reason.BLOCKED),
        (error_and_budget, Reason.PHASE_ERROR),
    ],
)
def test_the_first_reason_that_holds_wins(
    tell: Tell, rule: Make, tale: Callable[[Tell, Make], Story], reason: Reason
) -> None:
    state = tale(tell, rule).to_the_end().state
    assert (state.stop.reason, state.status) == (reason.value, find_row(reason).status)


@pytest.mark.parametrize("above", [number for number, row in enumerate(STOP_ROWS) if row.is_success])
def test_no_resource_stands_above_a_success(above: int) -> None:
    before = {row.reason for row in STOP_ROWS[:above]}
    broken = {Reason.PHASE_ERROR, Reason.CALIBRATION, Reason.MUST_NOT}
    assert before <= broken | {Reason.THRESHOLD_REACHED, Reason.CONVERGED, Reason.NO_MAJOR_ISSUES}


# -- what is a success, and what is not


def test_a_void_evaluation_is_never_a_success(tell: Tell) -> None:
    story = tell(max_iterations=2).judged().judged(void=True)
    assert story.todo == [Kind.CRITIQUE_DONE]
    assert story.judged(void=True).to_the_end().state.stop.reason == "iteration_limit"


def test_a_void_evaluation_does_not_lead_to_phase_b(tell: Tell) -> None:
    assert tell().judged(void=True).todo == [Kind.CRITIQUE_DONE]


def test_success_waits_for_the_exit_signal_of_an_agent_that_has_one(tell: Tell) -> None:
    story = tell().does(Kind.ARTIFACT_CREATED, exit_signal=False).judged().judged()
    assert story.todo == [Kind.CRITIQUE_DONE]
    story.does(Kind.REFINEMENT_DONE).judged()
    assert story.todo == [Kind.CRITIQUE_DONE], "silence is no signal"
    assert story.does(Kind.REFINEMENT_DONE, exit_signal=True).judged().to_the_end().state.stop.passed


def test_an_exit_signal_without_a_pass_ends_nothing(tell: Tell) -> None:
    story = tell().does(Kind.ARTIFACT_CREATED, exit_signal=True).judged("a.x.y")
    assert story.todo == [Kind.CRITIQUE_DONE]


def test_a_rule_that_nobody_confirmed_blocks_both_successes(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.manual.x"), rule("b.x.y", WARN)).judged(assumed=("a.manual.x",))
    story.judged("b.x.y", assumed=("a.manual.x",))
    assert RUN_MACHINE.find_stop_reason(story.state) is Reason.UNCONFIRMED


def test_a_rule_that_nobody_confirmed_does_not_end_a_run_in_which_others_fail(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.manual.x")).judged("a.x.y", assumed=("a.manual.x",))
    assert RUN_MACHINE.find_stop_reason(story.state) is None


def test_what_was_confirmed_is_judged_again(tell: Tell, rule: Make) -> None:
    story = nobody_confirmed(tell, rule).to_the_end()
    story.happens(Kind.LIMITS_RAISED, confirmed=["a.manual.x"])
    assert story.todo == [Kind.EVALUATION_DONE]
    assert story.judged().to_the_end().state.stop.reason == "threshold_reached"
    assert story.state.iteration == 1


def test_an_evaluation_that_claims_to_pass_with_a_failure_is_no_success(tell: Tell) -> None:
    story = tell().judged().judged("b.x.y", passed=True)
    assert RUN_MACHINE.find_stop_reason(story.state) is None


# -- phase A passes: B decides


def test_a_run_whose_last_round_passes_a_is_judged_in_b(tell: Tell) -> None:
    assert tell(max_iterations=1).judged().todo == [Kind.PHASE_SWITCHED]


def test_a_claim_does_not_end_a_run_that_passes_a(tell: Tell) -> None:
    story = tell().does(Kind.ARTIFACT_CREATED, blocked={"rule": "b.x.y", "reason": "no"}).judged()
    assert story.todo == [Kind.PHASE_SWITCHED]
    assert story.judged("b.x.y").to_the_end().state.stop.reason == "blocked"


def test_no_step_for_b_begins_after_the_time_is_up(tell: Tell) -> None:
    state = tell(**OVER_TIME).judged(seconds=624).to_the_end().state
    assert (state.stop.reason, state.phase) == ("budget_exceeded", Phase.A)


def test_where_b_adds_no_rules_nothing_comes_between_a_pass_and_success(tell: Tell, rule: Make) -> None:
    story = tell(rule(), **OVER_TIME).until(Kind.EVALUATION_DONE).happens(Kind.STOP_REQUESTED)
    story.happens(Kind.EVALUATION_DONE, **story.judgement({}), seconds=624)
    state = story.to_the_end().state
    assert (state.stop.reason, state.progress.evaluations) == ("threshold_reached", 1)


def test_a_request_ends_a_run_before_b_is_judged(tell: Tell) -> None:
    assert tell().judged().happens(Kind.STOP_REQUESTED).to_the_end().state.stop.reason == "user_stop"


# -- budgets


@pytest.mark.parametrize(
    ("limits", "usage", "is_over"),
    [
        (Limits(usd=25), {"cost_usd": 25}, True),
        (Limits(usd=25), {"cost_usd": 24.99}, False),
        (Limits(usd=None), {"cost_usd": 1000}, False),
        (Limits(usd=25), {"tokens": 10**9}, False),
        (Limits(tokens=100), {"tokens": 100}, True),
        (Limits(tokens=100), {}, False),
        (Limits(), {"cost_usd": 26}, True),
    ],
)
def test_money_and_tokens_end_a_run_only_where_both_sides_are_known(
    tell: Tell, limits: Limits, usage: dict[str, Any], is_over: bool
) -> None:
    story = tell(limits=limits).does(Kind.ARTIFACT_CREATED, usage=usage).judged("a.x.y")
    assert (RUN_MACHINE.find_stop_reason(story.state) is Reason.BUDGET_EXCEEDED) is is_over


def test_an_artifact_that_used_up_the_money_is_still_judged(tell: Tell) -> None:
    story = tell().does(Kind.ARTIFACT_CREATED, usage={"cost_usd": 30})
    assert story.todo == [Kind.EVALUATION_DONE]
    assert story.judged().judged().to_the_end().state.stop.reason == "threshold_reached"


def test_a_refinement_that_used_up_the_money_is_still_judged(tell: Tell) -> None:
    story = tell().judged("a.x.y", message="one").does(Kind.REFINEMENT_DONE, usage={"cost_usd": 30})
    story.judged("a.x.y", message="two")
    assert story.to_the_end().state.stop.reason == "budget_exceeded"
    assert story.state.iteration == 2


def test_no_agent_is_asked_to_prepare_b_when_the_money_is_used_up(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("b.x.y", check="a sentence")).does(Kind.ARTIFACT_CREATED, usage={"cost_usd": 30})
    assert story.judged().to_the_end().state.stop.reason == "budget_exceeded"
    assert story.state.current_step is Place.PREPARE


def test_nothing_is_judged_after_the_time_is_up(tell: Tell) -> None:
    story = tell(**OVER_TIME).does(Kind.ARTIFACT_CREATED, seconds=600)
    assert story.to_the_end().state.stop.reason == "budget_exceeded"
    assert story.state.evaluation is None


# -- breakers


@pytest.mark.parametrize(
    ("breaker", "tale"),
    [
        ("stuck", the_same_rules_five_times),
        ("same_error", the_same_words_three_times),
        ("thrashing", back_and_forth),
        ("stagnation", no_gain),
    ],
)
def test_zero_turns_a_breaker_off(tell: Tell, rule: Make, breaker: str, tale: Callable[[Tell, Make], Story]) -> None:
    def without(*rules: RunRule, **fields: Any) -> Story:
        return tell(*rules, **fields, breakers=Breakers.model_validate({breaker: 0}))

    assert RUN_MACHINE.find_stop_reason(tale(without, rule).state) is None


def test_the_same_rules_must_fail_without_a_break(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.x.z"), max_iterations=9)
    for number, name in enumerate(["a.x.y", "a.x.y", "a.x.z", "a.x.y", "a.x.y", "a.x.y", "a.x.y"], 1):
        story.judged(name, message=str(number))
    assert RUN_MACHINE.find_stop_reason(story.state) is None
    assert RUN_MACHINE.find_stop_reason(story.judged("a.x.y", message="8").state) is Reason.STUCK


def test_a_failure_that_says_something_else_starts_anew(tell: Tell) -> None:
    story = rejudged(tell(max_iterations=9), "3 == 4", "3 == 5", "3 == 5")
    assert RUN_MACHINE.find_stop_reason(story.state) is None
    assert RUN_MACHINE.find_stop_reason(rejudged(story, "3 == 5").state) is Reason.SAME_ERROR


def test_every_failure_has_to_say_the_same(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.x.z"))
    for number in (1, 2, 3):
        found = story.until(Kind.EVALUATION_DONE).judgement({"a.x.y": "the same", "a.x.z": f"other {number}"})
        story.happens(Kind.EVALUATION_DONE, **found)
    assert RUN_MACHINE.find_stop_reason(story.state) is None


def test_warnings_that_say_the_same_are_no_same_error(tell: Tell, rule: Make) -> None:
    story = docs(tell, rule, breakers=Breakers(stagnation=0))
    rejudged(story, "same", "same", "same", rules=("a.examples.x", "a.clarity.x"))
    assert RUN_MACHINE.find_stop_reason(story.state) is None


def test_a_rule_that_is_only_tracked_keeps_no_run_from_being_stuck(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.info.x", INFO), max_iterations=9)
    for number in range(5):
        story.judged(*(["a.x.y", "a.info.x"] if number % 2 else ["a.x.y"]), message=str(number))
    assert RUN_MACHINE.find_stop_reason(story.state) is Reason.STUCK


def test_an_evaluation_without_results_still_counts_its_failures(tell: Tell) -> None:
    story = tell()
    for _ in range(3):
        story.until(Kind.EVALUATION_DONE).happens(Kind.EVALUATION_DONE, score=0, passed=False, failed=[{"id": "a.x.y"}])
    assert RUN_MACHINE.find_stop_reason(story.state) is Reason.SAME_ERROR


def test_one_file_rewritten_five_times_is_thrashing(tell: Tell) -> None:
    assert RUN_MACHINE.find_stop_reason(tell().judged("a.x.y", rewrites=5).state) is Reason.THRASHING
    assert RUN_MACHINE.find_stop_reason(tell().judged("a.x.y", rewrites=4).state) is None


def test_an_artifact_that_does_not_change_is_not_thrashing(tell: Tell) -> None:
    story = tell().does(Kind.ARTIFACT_CREATED, artifact_hash="a" * 64).judged("a.x.y", message="one")
    for message in ("two", "three"):
        story.does(Kind.REFINEMENT_DONE, artifact_hash="a" * 64).judged("a.x.y", message=message)
    assert RUN_MACHINE.find_stop_reason(story.state) is None


def test_docs_with_two_failing_warnings_stagnate_at_iteration_three(tell: Tell, rule: Make) -> None:
    """Vector 5: 4/6 is below 0.75; the counts are 0, 1, 2."""
    story, counts = docs(tell, rule), []
    for _ in range(3):
        story.judged("a.examples.x", "a.clarity.x")
        assert story.state.last_score == pytest.approx(4 / 6, abs=1e-6)
        counts.append(story.state.stagnation_count)
    assert counts == [0, 1, 2]
    assert story.to_the_end().state.stop.reason == "stagnation"
    assert story.state.iteration == 3


@pytest.mark.parametrize(
    ("scores", "count"),
    [
        ([0.5, 0.52], 0),
        ([0.8, 0.82], 0),
        ([0.5, 0.519], 1),
        ([0.5, 0.5, 0.6], 0),
        ([0.5, 0.4], 1),
        ([0.0], 0),
        ([0.0, 0.0], 1),
    ],
)
def test_gains_are_counted_exactly(tell: Tell, scores: list[float], count: int) -> None:
    story = tell()
    for number, score in enumerate(scores):
        story.judged("a.x.y", score=score, failed=[], rewrites=0, message=str(number))
    assert story.state.stagnation_count == count


def test_a_blocker_keeps_the_count_of_stagnation_as_it_is(tell: Tell) -> None:
    story = tell().judged("a.x.y", score=0.5, failed=[]).judged("a.x.y", score=0.5, failed=[])
    assert story.judged("a.x.y", score=0.5).state.stagnation_count == 1


def test_stagnation_starts_anew_in_phase_b(tell: Tell, rule: Make) -> None:
    story = docs(tell, rule)
    rejudged(story, "one", "two", rules=("a.examples.x", "a.clarity.x"))
    assert story.state.stagnation_count == 1
    story.judged("a.clarity.x").until(Kind.EVALUATION_DONE)
    assert (story.state.phase, story.state.stagnation_count, story.state.last_score) == (Phase.B, 0, 0)


def test_the_next_agent_takes_over_where_the_one_before_makes_no_progress(tell: Tell) -> None:
    story = tell(agents=("small", "large"), max_iterations=20)
    for _ in range(3):
        story.judged("a.x.y")
    assert (story.state.progress.agent_index, story.state.progress.agent_since, story.state.iteration) == (1, 4, 3)
    for _ in range(2):
        story.judged("a.x.y")
        assert not story.state.is_over
    story.judged("a.x.y").to_the_end()
    assert (story.state.progress.agent_index, story.state.iteration, story.state.stop.reason) == (1, 6, "same_error")


def test_an_agent_alone_has_nobody_who_takes_over(tell: Tell) -> None:
    story = tell(agents=("small",), max_iterations=20)
    for _ in range(3):
        story.judged("a.x.y")
    assert story.to_the_end().state.stop.reason == "same_error"


def test_a_new_agent_has_undone_nothing_yet(tell: Tell) -> None:
    story = tell(agents=("small", "large"), max_iterations=20)
    for text in ("one", "two", "one"):
        story.judged("a.x.y", message=text, artifact_hash=text, artifact_sha256=text)
    assert (story.state.progress.agent_index, story.todo) == (1, [Kind.CRITIQUE_DONE])
