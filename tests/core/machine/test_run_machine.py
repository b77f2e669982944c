"""The machine: its laws, driven by Hypothesis, and the turns that a run takes."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.run_machine import (
    ANYWHERE,
    RUN_MACHINE,
    Command,
    IllegalTransition,
)
from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import Breakers, Limits, RunState, Usage
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status, Step, Target

if TYPE_CHECKING:
    from tests.core.conftest import Story

Tell = Callable[..., "Story"]
Make = Callable[..., RunRule]

# -- the laws

RULES = st.lists(
    st.builds(
        RunRule,
        id=st.sampled_from(["a.x.y", "a.x.z", "b.x.y", "b.x.z"]),
        description=st.just("x"),
        severity=st.sampled_from(Severity),
        weight=st.sampled_from([Fraction(0), Fraction(1), Fraction(5, 2)]),
        must_not=st.booleans(),
        check=st.sampled_from([None, "a sentence"]),
    ),
    min_size=1,
    max_size=4,
    unique_by=lambda rule: rule.id,
).map(lambda rules: tuple(rule.model_copy(update={"phase": Phase(rule.id[0].upper())}) for rule in rules))
FIELDS = st.fixed_dictionaries(
    {
        "criteria": st.builds(RunCriteria, rules=RULES),
        "max_iterations": st.integers(1, 6),
        "max_completed_phase_seconds": st.none() | st.integers(1, 50),
        "limits": st.builds(Limits, usd=st.none() | st.floats(1, 50), tokens=st.none() | st.integers(1, 50)),
        "breakers": st.builds(Breakers, stuck=st.integers(0, 4), same_error=st.integers(0, 3)),
        "artifact_hash": st.sampled_from(["", "a" * 64]),
        "target": st.sampled_from(Target),
    }
)
SECONDS = st.sampled_from([0, 1, 7.5, -5, float("nan"), "x", None, True, 10**400])
SPENT = st.fixed_dictionaries({}, optional={"tokens": st.integers(0, 9), "cost_usd": st.floats(0, 9)})


def payload(data: st.DataObject, story: Story, command: Command) -> dict[str, Any]:
    """What may come of a command: any verdicts, any version of the artifact, any clock."""
    names = [rule.id for rule in story.state.criteria.rules]
    found = story.usual(command)
    if command.kind is Kind.EVALUATION_DONE:
        failing = data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from(["no", "never"])))
        found = story.judgement(failing, tuple(data.draw(st.sets(st.sampled_from(names), max_size=1))))
        found |= {"void": data.draw(st.booleans()), "rewrites": data.draw(st.integers(0, 5))}
    elif command.kind in (Kind.ARTIFACT_CREATED, Kind.REFINEMENT_DONE):
        found["artifact_hash"] = data.draw(st.sampled_from(["a" * 64, "b" * 64]))
        found["exit_signal"] = data.draw(st.sampled_from([None, True, False]))
        if data.draw(st.booleans()):
            found["blocked"] = {"rule": names[0], "reason": "no"}
    return found | {"seconds": data.draw(SECONDS), "usage": data.draw(SPENT)}


def obeys(before: RunState, after: RunState) -> None:
    """What holds after every event."""
    assert (RUN_MACHINE.next_commands(after) == ()) is after.is_over
    assert after.iteration <= after.max_iterations
    assert before.completed_phase_seconds <= after.completed_phase_seconds
    assert before.iteration <= after.iteration <= before.iteration + 1
    assert after.stop.passed is (after.status is Status.COMPLETED)
    if after.stop.passed:
        assert after.evaluation
        assert after.evaluation.is_clean
        assert not after.evaluation.assumptions
        assert after.signals.exit_signal is not False
        assert after.phase is Phase.B


@given(fields=FIELDS, data=st.data())
@settings(max_examples=150, deadline=None)
def test_a_run_obeys_its_laws_wherever_it_goes(tell: Tell, fields: dict[str, Any], data: st.DataObject) -> None:
    story = tell(**fields)
    assert story.state.current_step in RUN_MACHINE.first_places
    for _ in range(12 * story.state.max_iterations + 12):
        before, todo = story.state, RUN_MACHINE.next_commands(story.state)
        if not todo:
            break
        command = data.draw(st.sampled_from(todo))
        mishap = data.draw(st.sampled_from([*[None] * 12, Kind.PHASE_ERROR, Kind.STOP_REQUESTED]))
        if command.step and mishap:
            story.happens(mishap, step=command.step.value, reason="oh", seconds=data.draw(SECONDS))
        else:
            story.happens(command.kind, **payload(data, story, command))
        obeys(before, story.state)
    assert story.state.is_over, "a run always ends if evaluations keep coming"
    assert reduce(RUN_MACHINE.apply, story.events[1:], story.first_state) == story.state
    assert RunState.model_validate_json(story.state.model_dump_json()) == story.state


@given(fields=FIELDS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_what_is_not_due_is_refused_and_what_is_unknown_ignored(
    tell: Tell, fields: dict[str, Any], data: st.DataObject
) -> None:
    story = tell(**fields)
    for _ in range(data.draw(st.integers(0, 20))):
        if todo := RUN_MACHINE.next_commands(story.state):
            story.happens(todo[0].kind, **payload(data, story, todo[0]))
    due = {command.kind for command in RUN_MACHINE.next_commands(story.state)}
    for kind in Kind:
        if kind in due | ANYWHERE | {Kind.LIMITS_RAISED} and not story.state.is_over:
            continue
        if (
            kind in (Kind.LIMITS_RAISED, Kind.RUN_ADOPTED)
            or (story.state.current_step, kind) in RUN_MACHINE.transitions
        ):
            continue
        with pytest.raises(IllegalTransition, match=f"^{kind.value} cannot happen"):
            RUN_MACHINE.apply(story.state, Event(**story.events[0].model_dump(exclude={"event"}), event=kind.value))
    assert story.state is story.happens("weather_changed", seconds=5).state


# -- the turns


def test_a_document_is_planned_produced_judged_and_refined(tell: Tell) -> None:
    story = tell().judged("a.x.y").judged().judged()
    assert [event.event for event in story.to_the_end().events] == [
        "run_started", "plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done",
        "iteration_advanced", "plan_created", "evaluation_done", "phase_switched", "evaluation_done", "stopped",
    ]  # fmt: skip
    assert (story.state.iteration, story.state.progress.evaluations) == (2, 3)


def test_what_is_there_already_is_judged_before_anybody_is_asked(tell: Tell) -> None:
    story = tell(artifact_hash="a" * 64).judged().judged().to_the_end()
    asked = {"plan_created", "artifact_created", "refinement_done"}
    assert story.state.status is Status.COMPLETED
    assert not asked & {event.event for event in story.events}


@pytest.mark.parametrize(
    ("fields", "check", "place"),
    [
        ({}, None, Place.PLAN),
        ({}, "a sentence", Place.PLAN),
        ({"artifact_hash": "a"}, None, Place.EVALUATE),
        ({"artifact_hash": "a"}, "a sentence", Place.PREPARE),
        ({"target": Target.WORKSPACE}, None, Place.EVALUATE),
    ],
)
def test_where_a_run_begins(tell: Tell, rule: Make, fields: dict[str, Any], check: str | None, place: Place) -> None:
    assert tell(rule(check=check), **fields).state.current_step is place


def test_evaluate_waits_for_the_artifact_and_for_checks_in_any_order(tell: Tell, rule: Make) -> None:
    story = tell(rule(check="It is polite")).until(Kind.ARTIFACT_CREATED)
    assert story.todo == [Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED]
    story.happens(Kind.CHECKS_PREPARED, checks=[{"rule_id": "a.x.y", "check": {"contains": "please"}}])
    assert story.todo == [Kind.ARTIFACT_CREATED]
    assert story.happens(Kind.ARTIFACT_CREATED, artifact_hash="a").todo == [Kind.EVALUATION_DONE]


def test_the_artifact_is_not_created_twice_while_checks_are_awaited(tell: Tell, rule: Make) -> None:
    story = tell(rule(check="It is polite")).does(Kind.ARTIFACT_CREATED)
    with pytest.raises(IllegalTransition, match="expected checks_prepared"):
        story.happens(Kind.ARTIFACT_CREATED, artifact_hash="b")


def test_checks_are_prepared_once_and_stay_the_same(tell: Tell, rule: Make) -> None:
    story = tell(rule(check="It is polite")).judged("a.x.y").judged("a.x.y", message="other")
    assert [event.event for event in story.events].count("checks_prepared") == 1


def test_sentences_of_phase_b_are_prepared_when_b_begins(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("b.x.y", check="It is kind")).judged().happens(Kind.PHASE_SWITCHED)
    assert (story.state.current_step, story.todo) == (Place.PREPARE, [Kind.CHECKS_PREPARED])
    assert story.does(Kind.CHECKS_PREPARED).todo == [Kind.EVALUATION_DONE]


def test_b_judges_the_same_artifact_in_the_same_iteration(tell: Tell) -> None:
    story = tell().judged().judged("b.x.y")
    assert (story.state.iteration, story.versions) == (1, 1)
    assert [attempt.phase for attempt in story.state.progress.attempts] == [Phase.B]


@pytest.mark.parametrize(("passing", "reason"), [(9, "threshold_reached"), (8, "no_major_issues")])
def test_a_phase_without_rules_is_not_evaluated_again(tell: Tell, rule: Make, passing: int, reason: str) -> None:
    """Rescored exactly: 9/10 reaches 0.9."""
    rules = [rule(f"a.x.y{number}", Severity.WARN, weight=Fraction(1, 10)) for number in range(10)]
    story = tell(*rules).judged(*(one.id for one in rules[passing:])).to_the_end()
    assert (story.state.stop.reason, story.state.progress.evaluations, story.state.phase) == (reason, 1, Phase.B)
    assert story.state.progress.best
    assert (story.state.progress.best.score, story.state.progress.best.phase) == (passing / 10, Phase.B)


def test_a_score_of_another_tool_is_rescored_within_a_tolerance(tell: Tell, rule: Make) -> None:
    story = tell(rule()).until(Kind.EVALUATION_DONE).happens(Kind.EVALUATION_DONE, score=0.9, passed=True)
    assert story.to_the_end().state.stop.reason == "threshold_reached"


def test_only_rules_without_weight_pass(tell: Tell, rule: Make) -> None:
    """Vector 7."""
    state = tell(rule("a.info.x", Severity.INFO)).judged("a.info.x").to_the_end().state
    assert (state.stop.reason, state.last_score) == ("threshold_reached", 1)


def test_the_critique_is_answered_by_a_refinement(tell: Tell) -> None:
    story = tell().judged("a.x.y").until(Kind.REFINEMENT_DONE)
    assert story.state.critique
    assert story.state.critique.issues[0].rule_id == "a.x.y"
    after = story.does(Kind.REFINEMENT_DONE).state
    assert (after.critique, after.current_step, story.todo) == (None, Place.REFINE, [Kind.ITERATION_ADVANCED])


def test_a_run_at_refine_without_rounds_left_ends_there(tell: Tell) -> None:
    state = tell().judged("a.x.y").does(Kind.REFINEMENT_DONE).state.model_copy(update={"max_iterations": 1})
    assert RUN_MACHINE.next_commands(state) == (Command(Kind.STOPPED, reason=Reason.ITERATION_LIMIT),)


def test_the_iteration_does_not_pass_its_limit(tell: Tell) -> None:
    story = tell().judged("a.x.y").does(Kind.REFINEMENT_DONE)
    story.state = story.state.model_copy(update={"max_iterations": 1})
    with pytest.raises(IllegalTransition):
        story.happens(Kind.ITERATION_ADVANCED)


def test_a_run_that_awaits_nothing_at_produce_is_produced_again(tell: Tell) -> None:
    state = tell().state.model_copy(update={"current_step": Place.PRODUCE_PREPARE})
    assert RUN_MACHINE.next_commands(state) == (Command(Kind.ARTIFACT_CREATED, Step.PRODUCE),)


def test_a_run_at_critique_without_an_evaluation_goes_on(tell: Tell) -> None:
    state = tell().state.model_copy(update={"current_step": Place.CRITIQUE})
    assert RUN_MACHINE.next_commands(state) == (Command(Kind.CRITIQUE_DONE, Step.CRITIQUE),)


def test_an_artifact_that_a_person_has_edited_is_the_one_that_was_judged(tell: Tell) -> None:
    story = tell().judged("a.x.y", artifact_hash="c" * 8, artifact_sha256="c" * 64)
    assert story.state.progress.artifact_hash == "c" * 64
    assert tell().judged("a.x.y", artifact_hash="c" * 8, artifact_sha256="").state.progress.artifact_hash == "c" * 8


# -- what went wrong


def test_a_step_is_tried_again_once(tell: Tell) -> None:
    story = tell().until(Kind.ARTIFACT_CREATED).happens(Kind.PHASE_ERROR, step="PRODUCE", reason="it was empty")
    assert (story.todo, story.state.last_error) == ([Kind.ARTIFACT_CREATED], "it was empty")
    assert (story.state.get_error(Step.PRODUCE), story.state.get_error(Step.PREPARE)) == ("it was empty", "")
    story.does(Kind.ARTIFACT_CREATED)
    assert (story.todo, story.state.last_error, story.state.progress.step_errors) == ([Kind.EVALUATION_DONE], "", {})


def test_what_went_wrong_is_known_after_the_end(tell: Tell) -> None:
    story = tell().until(Kind.ARTIFACT_CREATED)
    story.happens(Kind.PHASE_ERROR, step="PRODUCE", reason="one").happens(
        Kind.PHASE_ERROR, step="PRODUCE", reason="two"
    )
    story.to_the_end()
    assert (story.state.status, story.state.stop.reason, story.state.last_error) == (
        Status.FAILED, "phase_error", "two",
    )  # fmt: skip


def test_an_error_that_nothing_can_mend_is_not_tried_again(tell: Tell) -> None:
    story = tell().until(Kind.ARTIFACT_CREATED).happens(Kind.PHASE_ERROR, step="PRODUCE", reason="gone", final=True)
    assert story.todo == [Kind.FAILED]


def test_steps_side_by_side_have_one_retry_each(tell: Tell, rule: Make) -> None:
    story = tell(rule(check="It is polite")).until(Kind.ARTIFACT_CREATED)
    story.happens(Kind.PHASE_ERROR, step="PRODUCE", reason="one").happens(
        Kind.PHASE_ERROR, step="PREPARE", reason="two"
    )
    assert story.todo == [Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED]
    story.does(Kind.CHECKS_PREPARED)
    assert story.state.get_error(Step.PRODUCE) == "one", "its success makes good nothing of the other"
    assert story.happens(Kind.PHASE_ERROR, step="PRODUCE", reason="three").todo == [Kind.FAILED]


def test_an_error_without_a_step_belongs_to_where_the_run_stands(tell: Tell) -> None:
    story = tell().until(Kind.EVALUATION_DONE).happens(Kind.PHASE_ERROR).happens(Kind.PHASE_ERROR)
    assert (story.state.progress.step_errors["EVALUATE"].times, story.todo) == (2, [Kind.FAILED])


# -- time


def test_only_completed_steps_count(tell: Tell, rule: Make) -> None:
    story = tell(rule(check="It is polite"), max_completed_phase_seconds=10).does(Kind.PLAN_CREATED, seconds=1)
    assert (story.state.completed_phase_seconds, story.state.progress.last_completed_step) == (1, "PLAN")
    story.happens(Kind.ARTIFACT_CREATED, artifact_hash="a", seconds=20)
    assert story.state.completed_phase_seconds == 1, "PRODUCE and PREPARE are one"
    assert story.todo == [Kind.CHECKS_PREPARED]
    story.does(Kind.CHECKS_PREPARED, seconds=5)
    assert (story.state.completed_phase_seconds, story.state.progress.last_completed_step) == (26, "PRODUCE_PREPARE")
    assert story.todo == [Kind.STOPPED]


def test_a_step_and_its_retry_are_one(tell: Tell) -> None:
    story = tell(max_completed_phase_seconds=10).until(Kind.ARTIFACT_CREATED)
    story.happens(Kind.PHASE_ERROR, step="PRODUCE", reason="x", seconds=20)
    assert (story.state.completed_phase_seconds, story.todo) == (0, [Kind.ARTIFACT_CREATED])
    assert story.does(Kind.ARTIFACT_CREATED, seconds=4).state.completed_phase_seconds == 24


def test_the_time_of_a_retry_that_fails_is_added(tell: Tell) -> None:
    story = tell(max_completed_phase_seconds=10).until(Kind.ARTIFACT_CREATED)
    for _ in range(2):
        story.happens(Kind.PHASE_ERROR, step="PRODUCE", reason="x", seconds=20)
    state = story.to_the_end().state
    assert (state.stop.reason, state.completed_phase_seconds) == ("phase_error", 40)


@pytest.mark.parametrize("seconds", [-5, 0, None, "7", float("nan"), float("inf"), 10**400, [], {}])
def test_a_clock_that_went_back_or_says_nonsense_adds_nothing(tell: Tell, seconds: Any) -> None:
    """Vector 9."""
    assert tell().does(Kind.PLAN_CREATED, seconds=seconds).state.completed_phase_seconds == 0


def test_an_interrupted_step_adds_nothing(tell: Tell, rule: Make) -> None:
    """Vector 9."""
    story = tell(rule(check="It is polite")).does(Kind.ARTIFACT_CREATED, seconds=20).happens(Kind.STOP_REQUESTED)
    assert story.to_the_end().state.completed_phase_seconds == 0


# -- usage


def test_unknown_usage_stays_unknown_and_known_usage_adds_up(tell: Tell) -> None:
    story = tell().judged("a.x.y")
    assert story.state.progress.usage == Usage(tokens=None, cost_usd=None)
    story.does(Kind.REFINEMENT_DONE, usage={"tokens": 5}).judged("a.x.y", usage={"cost_usd": 0.5})
    story.happens(Kind.CRITIQUE_DONE, usage={"tokens": 2, "cost_usd": 0.25})
    assert story.state.progress.usage == Usage(tokens=7, cost_usd=0.75)


@pytest.mark.parametrize("usage", [{"tokens": -1}, {"cost_usd": float("nan")}, {"cost_usd": -0.1}])
def test_usage_that_cannot_be_is_refused(tell: Tell, usage: dict[str, Any]) -> None:
    with pytest.raises(IllegalTransition, match="its payload cannot be read"):
        tell().does(Kind.PLAN_CREATED, usage=usage)


# -- attempts and the best of them


def test_the_best_evaluation_is_the_earliest_of_the_highest_score(tell: Tell) -> None:
    story = tell(max_iterations=9)
    for number, score in enumerate([0.2, 0.6, 0.6, 0.4]):
        story.judged("a.x.y", score=score, message=str(number))
    assert story.state.progress.best
    assert (story.state.progress.best.iteration, story.state.progress.best.score) == (2, 0.6)


def test_a_void_evaluation_is_never_the_best_and_no_measure_of_progress(tell: Tell) -> None:
    story = tell().judged("a.x.y", score=0.4).judged("a.x.y", score=1.0, void=True, message="other")
    assert story.state.progress.best
    assert (story.state.progress.best.score, story.state.last_score, story.state.progress.attempts[-1].void) == (
        0.4,
        0.4,
        True,
    )


def test_the_best_of_b_is_not_compared_with_a(tell: Tell) -> None:
    story = tell().judged().judged("b.x.y")
    assert story.state.progress.best
    assert (story.state.progress.best.phase, story.state.progress.best.score) == (Phase.B, 0.5)


def test_attempts_tell_what_was_mended_and_what_was_broken(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.x.z"), rule("b.x.y")).judged("a.x.y").judged("a.x.z")
    assert (story.state.progress.attempts[-1].mended, story.state.progress.attempts[-1].broken) == (1, 1)
    story.judged().judged("b.x.y")
    assert (story.state.progress.attempts[-1].mended, story.state.progress.attempts[-1].broken) == (1, 0), (
        "b.x.y was not judged before"
    )


def test_only_the_last_attempts_are_kept(tell: Tell) -> None:
    story = tell(max_iterations=20, breakers=Breakers(stuck=12))
    for number in range(11):
        story.judged("a.x.y", message=f"m{number}")
    assert [attempt.iteration for attempt in story.state.progress.attempts] == list(range(4, 12))
    assert [bool(attempt.failing) for attempt in story.state.progress.attempts] == [*[False] * 7, True]
    assert story.judged("a.x.y", message="last").to_the_end().state.stop.reason == "stuck"


# -- the end, and what opens a run again


def test_an_event_of_another_tool_changes_nothing_even_after_the_end(tell: Tell) -> None:
    story = tell()
    assert story.happens("weather_changed", seconds=5, usage={"tokens": 5}).state == tell().state
    over = story.judged().judged().to_the_end().state
    assert story.happens("weather_changed").state is over


def test_a_success_must_be_borne_out_by_the_evaluation(tell: Tell) -> None:
    story = tell().judged("a.x.y")
    with pytest.raises(IllegalTransition, match="the last evaluation does not bear out 'threshold_reached'"):
        story.happens(Kind.STOPPED, reason="threshold_reached")
    with pytest.raises(IllegalTransition):
        tell().happens(Kind.STOPPED, reason="no_major_issues")


@pytest.mark.parametrize(
    ("kind", "payload", "status", "reason"),
    [
        (Kind.STOPPED, {}, Status.STOPPED, "user_stop"),
        (Kind.STOPPED, {"reason": "lunch"}, Status.STOPPED, "lunch"),
        (Kind.STOPPED, {"reason": "phase_error"}, Status.FAILED, "phase_error"),
        (Kind.FAILED, {}, Status.FAILED, "phase_error"),
        (Kind.FAILED, {"reason": "threshold_reached"}, Status.FAILED, "threshold_reached"),
    ],
)
def test_how_a_run_ends(tell: Tell, kind: Kind, payload: dict[str, Any], status: Status, reason: str) -> None:
    state = tell().happens(kind, **payload).state
    assert (state.status, state.stop.reason, state.stop.passed) == (status, reason, False)


@pytest.mark.parametrize(
    ("word", "kept"), [("", "user_stop"), (None, "user_stop"), ("lunch", "lunch"), ("threshold_reached", "user_stop")]
)
def test_a_persons_word_for_the_end_is_kept_unless_it_means_something_else(
    tell: Tell, word: str | None, kept: str
) -> None:
    assert tell().happens(Kind.STOP_REQUESTED, reason=word).state.signals.stop_request == kept


def test_nothing_happens_in_a_run_that_is_over(tell: Tell) -> None:
    story = tell().judged().judged().to_the_end()
    with pytest.raises(IllegalTransition) as caught:
        story.happens(Kind.PLAN_CREATED)
    assert str(caught.value) == (
        "plan_created cannot happen in a run that is over (completed, threshold_reached): expected nothing more; "
        "either the history was edited, or this is a bug worth reporting"
    )
    assert caught.value.state is story.state
    assert caught.value.event.event == "plan_created"


def test_an_impossible_event_says_where_the_run_stands_and_what_was_expected(tell: Tell, rule: Make) -> None:
    with pytest.raises(IllegalTransition) as caught:
        tell(rule(check="It is polite")).until(Kind.ARTIFACT_CREATED).happens(Kind.EVALUATION_DONE)
    assert str(caught.value) == (
        "evaluation_done cannot happen at PRODUCE_PREPARE of iteration 1 (phase A): expected artifact_created or "
        "checks_prepared; either the history was edited, or this is a bug worth reporting"
    )


@pytest.mark.parametrize(
    ("reason", "raised", "is_open"),
    [
        ("iteration_limit", {"max_iterations": 8}, True),
        ("iteration_limit", {"usd": 100}, False),
        ("budget_exceeded", {"usd": 100}, True),
        ("budget_exceeded", {"tokens": 100}, True),
        ("budget_exceeded", {"max_completed_phase_seconds": 100}, True),
        ("budget_exceeded", {"max_iterations": 100}, False),
        ("stagnation", {"max_iterations": 8}, True),
        ("unconfirmed", {}, True),
        ("user_stop", {"max_iterations": 8}, False),
        ("stuck", {"max_iterations": 8}, True),
        ("same_error", {"max_iterations": 8}, True),
        ("thrashing", {"max_iterations": 8}, True),
        ("stuck", {"usd": 100.0}, False),
        ("must_not", {"max_iterations": 8}, False),
        ("phase_error", {"max_iterations": 8}, False),
    ],
)
def test_a_raised_limit_opens_only_what_that_limit_has_stopped(
    tell: Tell, reason: str, raised: dict[str, Any], is_open: bool
) -> None:
    story = tell().judged("a.x.y").happens(Kind.STOPPED, reason=reason)
    if is_open:
        state = story.happens(Kind.LIMITS_RAISED, **raised).state
        assert (state.status, state.stop.reason, state.stagnation_count) == (Status.RUNNING, "", 0)
    else:
        with pytest.raises(IllegalTransition, match="limits_raised cannot happen in a run that is over"):
            story.happens(Kind.LIMITS_RAISED, **raised)


def test_a_completed_run_is_never_opened_again(tell: Tell) -> None:
    with pytest.raises(IllegalTransition):
        tell().judged().judged().to_the_end().happens(Kind.LIMITS_RAISED, max_iterations=100)


def test_a_run_goes_on_with_the_rounds_that_it_was_given(tell: Tell) -> None:
    story = tell(max_iterations=1).judged("a.x.y").to_the_end()
    story.happens(Kind.LIMITS_RAISED, max_iterations=2)
    assert story.todo == [Kind.CRITIQUE_DONE]
    assert story.judged("a.x.y", message="other").to_the_end().state.iteration == 2


def test_limits_are_raised_and_never_lowered(tell: Tell) -> None:
    story = tell(limits=Limits(usd=10, tokens=None), max_completed_phase_seconds=60)
    story.happens(Kind.LIMITS_RAISED, max_iterations=2, usd=5, tokens=9, max_completed_phase_seconds=90)
    state = story.state
    assert (state.max_iterations, state.setup.limits, state.max_completed_phase_seconds) == (
        4, Limits(usd=10, tokens=None), 90,
    )  # fmt: skip


@pytest.mark.parametrize("raised", [{"max_iterations": 0}, {"max_iterations": "9"}, {"usd": float("nan")}])
def test_a_limit_that_cannot_be_is_refused(tell: Tell, raised: dict[str, Any]) -> None:
    with pytest.raises(IllegalTransition):
        tell().happens(Kind.LIMITS_RAISED, **raised)
