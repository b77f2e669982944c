"""The machine of runs: invariants of random runs, and single transitions."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_loop.core.events import run_payloads
from pytest_loop.core.events.event import Event
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.machine.run_machine import (
    ANYWHERE,
    RUN_MACHINE,
    Command,
    IllegalTransition,
)
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_setup import Breakers, Limits
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status, Step, Target
from pytest_loop.core.reporting.escalation import ask_question
from tests.core.scripted_run import ScriptedRun, make_rule

# -- invariants

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


def draw_payload(data: st.DataObject, run: ScriptedRun, command: Command) -> dict[str, Any]:
    """Draw the payload of a command: any verdicts, any version of the artifact, any seconds."""
    names = [rule.id for rule in run.state.criteria.rules]
    payload = run.build_payload(command)
    if command.kind is Kind.EVALUATION_DONE:
        failing = data.draw(st.dictionaries(st.sampled_from(names), st.sampled_from(["no", "never"])))
        payload = run.build_evaluation(failing, tuple(data.draw(st.sets(st.sampled_from(names), max_size=1))))
        payload |= {"void": data.draw(st.booleans()), "rewrites": data.draw(st.integers(0, 5))}
    elif command.kind in (Kind.ARTIFACT_CREATED, Kind.REFINEMENT_DONE):
        payload["artifact_hash"] = data.draw(st.sampled_from(["a" * 64, "b" * 64]))
        payload["exit_signal"] = data.draw(st.sampled_from([None, True, False]))
        if data.draw(st.booleans()):
            payload["blocked"] = {"rule": names[0], "reason": "no"}
    return payload | {"seconds": data.draw(SECONDS), "usage": data.draw(SPENT)}


def check_invariants(before: RunState, after: RunState) -> None:
    """Check what must hold after every event."""
    assert (RUN_MACHINE.list_next_commands(after) == ()) is after.is_over
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
def test_random_runs_keep_the_invariants(fields: dict[str, Any], data: st.DataObject) -> None:
    run = ScriptedRun(**fields)
    assert run.state.current_step in RUN_MACHINE.first_places
    for _ in range(12 * run.state.max_iterations + 12):
        before, commands = run.state, RUN_MACHINE.list_next_commands(run.state)
        if not commands:
            break
        command = data.draw(st.sampled_from(commands))
        failure_kind = data.draw(st.sampled_from([*[None] * 12, Kind.PHASE_ERROR, Kind.STOP_REQUESTED]))
        if command.step and failure_kind:
            run.record(failure_kind, step=command.step.value, reason="oh", seconds=data.draw(SECONDS))
        else:
            run.record(command.kind, **draw_payload(data, run, command))
        check_invariants(before, run.state)
    assert run.state.is_over, "a run always ends if evaluations keep coming"
    assert reduce(RUN_MACHINE.apply, run.events[1:], run.first_state) == run.state
    assert RunState.model_validate_json(run.state.model_dump_json()) == run.state


@given(fields=FIELDS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_events_that_are_not_due_are_refused_and_unknown_ones_ignored(
    fields: dict[str, Any], data: st.DataObject
) -> None:
    run = ScriptedRun(**fields)
    for _ in range(data.draw(st.integers(0, 20))):
        if commands := RUN_MACHINE.list_next_commands(run.state):
            run.record(commands[0].kind, **draw_payload(data, run, commands[0]))
    due = {command.kind for command in RUN_MACHINE.list_next_commands(run.state)}
    for kind in Kind:
        if kind in due | ANYWHERE and not run.state.is_over:
            continue
        if (
            kind in (Kind.LIMITS_RAISED, Kind.ANSWERED, Kind.RUN_ADOPTED)
            or (run.state.current_step, kind) in RUN_MACHINE.transitions
        ):
            continue
        with pytest.raises(IllegalTransition, match=f"^{kind.value} cannot happen"):
            RUN_MACHINE.apply(run.state, Event(**run.events[0].model_dump(exclude={"event"}), event=kind.value))
    assert run.state is run.record("weather_changed", seconds=5).state


# -- transitions


def test_document_is_planned_produced_evaluated_and_refined() -> None:
    run = ScriptedRun().evaluate("a.x.y").evaluate().evaluate()
    assert [event.event for event in run.finish().events] == [
        "run_started", "plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done",
        "iteration_advanced", "plan_created", "evaluation_done", "phase_switched", "evaluation_done", "stopped",
    ]  # fmt: skip
    assert (run.state.iteration, run.state.progress.evaluations) == (2, 3)


def test_existing_artifact_is_evaluated_before_an_agent_is_asked() -> None:
    run = ScriptedRun(artifact_hash="a" * 64).evaluate().evaluate().finish()
    agent_events = {"plan_created", "artifact_created", "refinement_done"}
    assert run.state.status is Status.COMPLETED
    assert not agent_events & {event.event for event in run.events}


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
def test_first_step_depends_on_target_and_sentences(fields: dict[str, Any], check: str | None, place: Place) -> None:
    assert ScriptedRun(make_rule(check=check), **fields).state.current_step is place


def test_evaluation_waits_for_artifact_and_checks_in_any_order() -> None:
    run = ScriptedRun(make_rule(check="It is polite")).advance_to(Kind.ARTIFACT_CREATED)
    assert run.due_kinds == [Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED]
    run.record(Kind.CHECKS_PREPARED, checks=[{"rule_id": "a.x.y", "check": {"contains": "please"}}])
    assert run.due_kinds == [Kind.ARTIFACT_CREATED]
    assert run.record(Kind.ARTIFACT_CREATED, artifact_hash="a").due_kinds == [Kind.EVALUATION_DONE]


def test_artifact_is_not_created_twice_while_checks_are_awaited() -> None:
    run = ScriptedRun(make_rule(check="It is polite")).complete(Kind.ARTIFACT_CREATED)
    with pytest.raises(IllegalTransition, match="expected checks_prepared"):
        run.record(Kind.ARTIFACT_CREATED, artifact_hash="b")


def test_checks_are_prepared_once_and_stay_the_same() -> None:
    run = ScriptedRun(make_rule(check="It is polite")).evaluate("a.x.y").evaluate("a.x.y", message="other")
    assert [event.event for event in run.events].count("checks_prepared") == 1


def test_sentences_of_phase_b_are_prepared_when_b_begins() -> None:
    run = ScriptedRun(make_rule(), make_rule("b.x.y", check="It is kind")).evaluate().record(Kind.PHASE_SWITCHED)
    assert (run.state.current_step, run.due_kinds) == (Place.PREPARE, [Kind.CHECKS_PREPARED])
    assert run.complete(Kind.CHECKS_PREPARED).due_kinds == [Kind.EVALUATION_DONE]


def test_phase_b_evaluates_the_same_artifact_in_the_same_iteration() -> None:
    run = ScriptedRun().evaluate().evaluate("b.x.y")
    assert (run.state.iteration, run.versions) == (1, 1)
    assert [attempt.phase for attempt in run.state.progress.attempts] == [Phase.B]


@pytest.mark.parametrize(("passing", "reason"), [(9, "threshold_reached"), (8, "no_major_issues")])
def test_phase_without_rules_is_not_evaluated_again(passing: int, reason: str) -> None:
    """Rescored exactly: 9/10 reaches 0.9."""
    rules = [make_rule(f"a.x.y{number}", Severity.WARN, weight=Fraction(1, 10)) for number in range(10)]
    run = ScriptedRun(*rules).evaluate(*(rule.id for rule in rules[passing:])).finish()
    assert (run.state.stop.reason, run.state.progress.evaluations, run.state.phase) == (reason, 1, Phase.B)
    assert run.state.progress.best
    assert (run.state.progress.best.score, run.state.progress.best.phase) == (passing / 10, Phase.B)


def test_score_of_another_tool_is_rescored_within_a_tolerance() -> None:
    run = ScriptedRun(make_rule()).advance_to(Kind.EVALUATION_DONE).record(Kind.EVALUATION_DONE, score=0.9, passed=True)
    assert run.finish().state.stop.reason == "threshold_reached"


def test_run_with_only_weightless_rules_passes() -> None:
    """Vector 7."""
    state = ScriptedRun(make_rule("a.info.x", Severity.INFO)).evaluate("a.info.x").finish().state
    assert (state.stop.reason, state.last_score) == ("threshold_reached", 1)


def test_critique_is_followed_by_a_refinement() -> None:
    run = ScriptedRun().evaluate("a.x.y").advance_to(Kind.REFINEMENT_DONE)
    assert run.state.critique
    assert run.state.critique.issues[0].rule_id == "a.x.y"
    after = run.complete(Kind.REFINEMENT_DONE).state
    assert (after.critique, after.current_step, run.due_kinds) == (None, Place.REFINE, [Kind.ITERATION_ADVANCED])


def test_run_at_refine_without_iterations_left_ends() -> None:
    state = (
        ScriptedRun().evaluate("a.x.y").complete(Kind.REFINEMENT_DONE).state.model_copy(update={"max_iterations": 1})
    )
    assert RUN_MACHINE.list_next_commands(state) == (Command(Kind.STOPPED, reason=Reason.ITERATION_LIMIT),)


def test_iteration_never_exceeds_its_limit() -> None:
    run = ScriptedRun().evaluate("a.x.y").complete(Kind.REFINEMENT_DONE)
    run.state = run.state.model_copy(update={"max_iterations": 1})
    with pytest.raises(IllegalTransition):
        run.record(Kind.ITERATION_ADVANCED)


def test_run_at_produce_that_awaits_nothing_produces_again() -> None:
    state = ScriptedRun().state.model_copy(update={"current_step": Place.PRODUCE_PREPARE})
    assert RUN_MACHINE.list_next_commands(state) == (Command(Kind.ARTIFACT_CREATED, Step.PRODUCE),)


def test_run_at_critique_without_an_evaluation_continues() -> None:
    state = ScriptedRun().state.model_copy(update={"current_step": Place.CRITIQUE})
    assert RUN_MACHINE.list_next_commands(state) == (Command(Kind.CRITIQUE_DONE, Step.CRITIQUE),)


def test_evaluation_sets_the_hash_of_an_artifact_edited_by_hand() -> None:
    run = ScriptedRun().evaluate("a.x.y", artifact_hash="c" * 8, artifact_sha256="c" * 64)
    assert run.state.progress.artifact_hash == "c" * 64
    assert (
        ScriptedRun().evaluate("a.x.y", artifact_hash="c" * 8, artifact_sha256="").state.progress.artifact_hash
        == "c" * 8
    )


# -- errors


def test_failed_step_is_retried_once() -> None:
    run = (
        ScriptedRun().advance_to(Kind.ARTIFACT_CREATED).record(Kind.PHASE_ERROR, step="PRODUCE", reason="it was empty")
    )
    assert (run.due_kinds, run.state.last_error) == ([Kind.ARTIFACT_CREATED], "it was empty")
    assert (run.state.get_error(Step.PRODUCE), run.state.get_error(Step.PREPARE)) == ("it was empty", "")
    run.complete(Kind.ARTIFACT_CREATED)
    assert (run.due_kinds, run.state.last_error, run.state.progress.step_errors) == ([Kind.EVALUATION_DONE], "", {})


def test_last_error_stays_after_the_end() -> None:
    run = ScriptedRun().advance_to(Kind.ARTIFACT_CREATED)
    run.record(Kind.PHASE_ERROR, step="PRODUCE", reason="one").record(Kind.PHASE_ERROR, step="PRODUCE", reason="two")
    run.finish()
    assert (run.state.status, run.state.stop.reason, run.state.last_error) == (
        Status.FAILED, "phase_error", "two",
    )  # fmt: skip


def test_final_error_is_not_retried() -> None:
    run = (
        ScriptedRun()
        .advance_to(Kind.ARTIFACT_CREATED)
        .record(Kind.PHASE_ERROR, step="PRODUCE", reason="gone", final=True)
    )
    assert run.due_kinds == [Kind.FAILED]


def test_parallel_steps_have_one_retry_each() -> None:
    run = ScriptedRun(make_rule(check="It is polite")).advance_to(Kind.ARTIFACT_CREATED)
    run.record(Kind.PHASE_ERROR, step="PRODUCE", reason="one").record(Kind.PHASE_ERROR, step="PREPARE", reason="two")
    assert run.due_kinds == [Kind.ARTIFACT_CREATED, Kind.CHECKS_PREPARED]
    run.complete(Kind.CHECKS_PREPARED)
    assert run.state.get_error(Step.PRODUCE) == "one", "its success makes good nothing of the other"
    assert run.record(Kind.PHASE_ERROR, step="PRODUCE", reason="three").due_kinds == [Kind.FAILED]


def test_error_without_a_step_belongs_to_the_current_step() -> None:
    run = ScriptedRun().advance_to(Kind.EVALUATION_DONE).record(Kind.PHASE_ERROR).record(Kind.PHASE_ERROR)
    assert (run.state.progress.step_errors["EVALUATE"].times, run.due_kinds) == (2, [Kind.FAILED])


# -- time


def test_time_counts_when_a_step_is_complete() -> None:
    run = ScriptedRun(make_rule(check="It is polite"), max_completed_phase_seconds=10).complete(
        Kind.PLAN_CREATED, seconds=1
    )
    assert (run.state.completed_phase_seconds, run.state.progress.last_completed_step) == (1, "PLAN")
    run.record(Kind.ARTIFACT_CREATED, artifact_hash="a", seconds=20)
    assert run.state.completed_phase_seconds == 1, "PRODUCE and PREPARE are one"
    assert run.due_kinds == [Kind.CHECKS_PREPARED]
    run.complete(Kind.CHECKS_PREPARED, seconds=5)
    assert (run.state.completed_phase_seconds, run.state.progress.last_completed_step) == (26, "PRODUCE_PREPARE")
    assert run.due_kinds == [Kind.STOPPED]


def test_time_of_a_step_includes_its_retry() -> None:
    run = ScriptedRun(max_completed_phase_seconds=10).advance_to(Kind.ARTIFACT_CREATED)
    run.record(Kind.PHASE_ERROR, step="PRODUCE", reason="x", seconds=20)
    assert (run.state.completed_phase_seconds, run.due_kinds) == (0, [Kind.ARTIFACT_CREATED])
    assert run.complete(Kind.ARTIFACT_CREATED, seconds=4).state.completed_phase_seconds == 24


def test_time_of_a_failed_retry_counts() -> None:
    run = ScriptedRun(max_completed_phase_seconds=10).advance_to(Kind.ARTIFACT_CREATED)
    for _ in range(2):
        run.record(Kind.PHASE_ERROR, step="PRODUCE", reason="x", seconds=20)
    state = run.finish().state
    assert (state.stop.reason, state.completed_phase_seconds) == ("phase_error", 40)


@pytest.mark.parametrize("seconds", [-5, 0, None, "7", float("nan"), float("inf"), 10**400, [], {}])
def test_invalid_seconds_count_as_zero(seconds: Any) -> None:
    """Vector 9."""
    assert ScriptedRun().complete(Kind.PLAN_CREATED, seconds=seconds).state.completed_phase_seconds == 0


def test_time_of_an_interrupted_step_does_not_count() -> None:
    """Vector 9."""
    run = (
        ScriptedRun(make_rule(check="It is polite"))
        .complete(Kind.ARTIFACT_CREATED, seconds=20)
        .record(Kind.STOP_REQUESTED)
    )
    assert run.finish().state.completed_phase_seconds == 0


# -- usage


def test_unknown_usage_stays_unknown_and_known_usage_adds_up() -> None:
    run = ScriptedRun().evaluate("a.x.y")
    assert run.state.progress.usage == Usage(tokens=None, cost_usd=None)
    run.complete(Kind.REFINEMENT_DONE, usage={"tokens": 5}).evaluate("a.x.y", usage={"cost_usd": 0.5})
    run.record(Kind.CRITIQUE_DONE, usage={"tokens": 2, "cost_usd": 0.25})
    assert run.state.progress.usage == Usage(tokens=7, cost_usd=0.75)


@pytest.mark.parametrize("usage", [{"tokens": -1}, {"cost_usd": float("nan")}, {"cost_usd": -0.1}])
def test_invalid_usage_is_refused(usage: dict[str, Any]) -> None:
    with pytest.raises(IllegalTransition, match="its payload cannot be read"):
        ScriptedRun().complete(Kind.PLAN_CREATED, usage=usage)


# -- attempts and the best evaluation


def test_best_evaluation_is_the_earliest_with_the_highest_score() -> None:
    run = ScriptedRun(max_iterations=9)
    for number, score in enumerate([0.2, 0.6, 0.6, 0.4]):
        run.evaluate("a.x.y", score=score, message=str(number))
    assert run.state.progress.best
    assert (run.state.progress.best.iteration, run.state.progress.best.score) == (2, 0.6)


def test_void_evaluation_is_neither_best_nor_progress() -> None:
    run = ScriptedRun().evaluate("a.x.y", score=0.4).evaluate("a.x.y", score=1.0, void=True, message="other")
    assert run.state.progress.best
    assert (run.state.progress.best.score, run.state.last_score, run.state.progress.attempts[-1].void) == (
        0.4,
        0.4,
        True,
    )


def test_best_evaluation_of_phase_b_is_not_compared_with_phase_a() -> None:
    run = ScriptedRun().evaluate().evaluate("b.x.y")
    assert run.state.progress.best
    assert (run.state.progress.best.phase, run.state.progress.best.score) == (Phase.B, 0.5)


def test_attempts_count_fixed_and_broken_rules() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.x.z"), make_rule("b.x.y")).evaluate("a.x.y").evaluate("a.x.z")
    assert (run.state.progress.attempts[-1].fixed, run.state.progress.attempts[-1].broken) == (1, 1)
    run.evaluate().evaluate("b.x.y")
    assert (run.state.progress.attempts[-1].fixed, run.state.progress.attempts[-1].broken) == (1, 0), (
        "b.x.y was not judged before"
    )


def test_only_the_last_attempts_are_kept() -> None:
    run = ScriptedRun(max_iterations=20, breakers=Breakers(stuck=12))
    for number in range(11):
        run.evaluate("a.x.y", message=f"m{number}")
    assert [attempt.iteration for attempt in run.state.progress.attempts] == list(range(4, 12))
    assert [bool(attempt.failing) for attempt in run.state.progress.attempts] == [*[False] * 7, True]
    assert run.evaluate("a.x.y", message="last").finish().state.stop.reason == "stuck"


# -- the end, and reopening


def test_event_of_another_tool_changes_nothing_even_after_the_end() -> None:
    run = ScriptedRun()
    assert run.record("weather_changed", seconds=5, usage={"tokens": 5}).state == ScriptedRun().state
    over = run.evaluate().evaluate().finish().state
    assert run.record("weather_changed").state is over


def test_success_must_be_confirmed_by_the_evaluation() -> None:
    run = ScriptedRun().evaluate("a.x.y")
    with pytest.raises(IllegalTransition, match="the last evaluation does not bear out 'threshold_reached'"):
        run.record(Kind.STOPPED, reason="threshold_reached")
    with pytest.raises(IllegalTransition):
        ScriptedRun().record(Kind.STOPPED, reason="no_major_issues")


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
def test_ending_event_sets_status_and_reason(kind: Kind, payload: dict[str, Any], status: Status, reason: str) -> None:
    state = ScriptedRun().record(kind, **payload).state
    assert (state.status, state.stop.reason, state.stop.passed) == (status, reason, False)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("", "user_stop"), (None, "user_stop"), ("lunch", "lunch"), ("threshold_reached", "user_stop")],
)
def test_stop_request_keeps_its_reason_unless_it_is_reserved(word: str | None, expected: str) -> None:
    assert ScriptedRun().record(Kind.STOP_REQUESTED, reason=word).state.signals.stop_request == expected


@pytest.mark.parametrize(
    ("kind", "fields"), [(Kind.STOP_REQUESTED, {}), (Kind.PHASE_ERROR, {"step": "REFINE", "reason": "login refused"})]
)
def test_edits_that_are_put_back_after_an_interruption_are_named_at_the_end(kind: Kind, fields: dict[str, Any]) -> None:
    finding = {"kind": "sealed", "path": "tests/test_shop.py", "detail": "was changed, and was put back"}
    state = ScriptedRun().record(kind, **fields, findings=[finding]).state
    assert state.progress.put_back == {"tests/test_shop.py": "sealed"}


def test_event_after_the_end_is_refused() -> None:
    run = ScriptedRun().evaluate().evaluate().finish()
    with pytest.raises(IllegalTransition) as caught:
        run.record(Kind.PLAN_CREATED)
    assert str(caught.value) == (
        "plan_created cannot happen in a run that is over (completed, threshold_reached): expected nothing more; "
        "either the history was edited, or this is a bug worth reporting"
    )
    assert caught.value.state is run.state
    assert caught.value.event.event == "plan_created"


def test_refused_event_names_the_place_and_the_expected_events() -> None:
    with pytest.raises(IllegalTransition) as caught:
        ScriptedRun(make_rule(check="It is polite")).advance_to(Kind.ARTIFACT_CREATED).record(Kind.EVALUATION_DONE)
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
        ("user_stop", {}, True),
        ("stuck", {"max_iterations": 8}, True),
        ("same_error", {"max_iterations": 8}, True),
        ("thrashing", {"max_iterations": 8}, True),
        ("stuck", {"usd": 100.0}, False),
        ("must_not", {"max_iterations": 8}, False),
        ("phase_error", {}, True),
        ("no_auto_retry", {}, True),
        ("blocked", {"max_iterations": 8}, False),
    ],
)
def test_raised_limit_reopens_only_a_run_that_it_stopped(reason: str, raised: dict[str, Any], is_open: bool) -> None:
    run = ScriptedRun().evaluate("a.x.y").record(Kind.STOPPED, reason=reason)
    if is_open:
        state = run.record(Kind.LIMITS_RAISED, **raised).state
        assert (state.status, state.stop.reason, state.stagnation_count) == (Status.RUNNING, "", 0)
    else:
        with pytest.raises(IllegalTransition, match="limits_raised cannot happen in a run that is over"):
            run.record(Kind.LIMITS_RAISED, **raised)


def test_completed_run_is_never_reopened() -> None:
    with pytest.raises(IllegalTransition):
        ScriptedRun().evaluate().evaluate().finish().record(Kind.LIMITS_RAISED, max_iterations=100)


def test_reopened_run_continues_up_to_the_raised_limit() -> None:
    run = ScriptedRun(max_iterations=1).evaluate("a.x.y").finish()
    run.record(Kind.LIMITS_RAISED, max_iterations=2)
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    assert run.evaluate("a.x.y", message="other").finish().state.iteration == 2


def test_limits_are_raised_and_never_lowered() -> None:
    run = ScriptedRun(limits=Limits(usd=10, tokens=None), max_completed_phase_seconds=60)
    run.record(Kind.LIMITS_RAISED, max_iterations=2, usd=5, tokens=9, max_completed_phase_seconds=90)
    state = run.state
    assert (state.max_iterations, state.setup.limits, state.max_completed_phase_seconds) == (
        4, Limits(usd=10, tokens=None), 90,
    )  # fmt: skip


@pytest.mark.parametrize("raised", [{"max_iterations": 0}, {"max_iterations": "9"}, {"usd": float("nan")}])
def test_invalid_limit_is_refused(raised: dict[str, Any]) -> None:
    with pytest.raises(IllegalTransition):
        ScriptedRun().record(Kind.LIMITS_RAISED, **raised)


def test_refactoring_edits_before_the_first_evaluation_and_only_then() -> None:
    run = ScriptedRun(target=Target.WORKSPACE, artifact_hash="0" * 64, edits_first=True)
    kinds = [Kind.PLAN_CREATED, Kind.ARTIFACT_CREATED, Kind.EVALUATION_DONE]
    for kind in kinds:
        assert run.due_kinds == [kind]
        run.complete(kind) if kind is not Kind.EVALUATION_DONE else run.evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE).complete(Kind.PLAN_CREATED)
    assert run.due_kinds == [Kind.EVALUATION_DONE]


def test_success_of_an_agent_that_changed_no_file_has_to_be_confirmed() -> None:
    seal = Seal(start_digest="0" * 64)
    run = ScriptedRun(target=Target.WORKSPACE, artifact_hash="0" * 64, edits_first=True, seal=seal)
    run.complete(Kind.ARTIFACT_CREATED, artifact_hash="0" * 64).evaluate().finish()
    assert (run.state.status.value, run.state.stop.reason) == ("stopped", "unconfirmed")
    assert ask_question(run.state, Reason.UNCONFIRMED) == "The agent has changed no file: is the task done as it is?"


def test_exact_limits_replace_higher_and_lower_ones_and_others_stay() -> None:
    run = ScriptedRun(max_iterations=9)
    run.record(Kind.LIMITS_RAISED, max_iterations=1, usd=0.5, is_exact=True)
    state = run.state
    assert (state.max_iterations, state.setup.limits.usd) == (1, 0.5)
    tokens = state.setup.limits.tokens
    run.record(Kind.LIMITS_RAISED, max_completed_phase_seconds=60, is_exact=True)
    assert (run.state.max_completed_phase_seconds, run.state.max_iterations) == (60, 1)
    assert run.state.setup.limits.tokens == tokens
    assert run_payloads.LimitsRaised(max_iterations=1, is_exact=True).dump() == {"max_iterations": 1, "is_exact": True}


@pytest.mark.parametrize(("is_counted", "used"), [(True, 3.0), (False, 1.0)])
def test_estimated_costs_count_only_on_request(is_counted: bool, used: float) -> None:
    state = ScriptedRun().state
    usage = Usage(cost_usd=1.0, estimated_usd=2.0, estimated_by="a table")
    state = state.replace(limits=Limits(usd=2.5, counts_estimates=is_counted), usage=usage)
    assert get_budgets(state)["usd"] == (used, 2.5)
    assert usage.plus(Usage(estimated_usd=1.0)) == Usage(cost_usd=1.0, estimated_usd=3.0, estimated_by="a table")
