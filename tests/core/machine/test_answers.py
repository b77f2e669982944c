"""Answers to stopped runs: each stop but a success is reopened, and what was answered does not stop the run again."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.events.run_payloads import Answered, LimitsRaised
from pytest_loop.core.machine.run_machine import IllegalTransition
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.run_setup import Breakers, IterationControl, Limits
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status, Target
from pytest_loop.core.reporting.answer import build_answer, find_alternative, make_room
from tests.core.machine.test_stop_reasons import SCRIPTS
from tests.core.scripted_run import ScriptedRun, make_rule

STOPS = [reason for reason in Reason if not find_row(reason).is_success]


def answer(run: ScriptedRun, text: str = "use a number", **options: Any) -> ScriptedRun:
    payload = build_answer(run.state, text, **options)
    return run.record(payload.kind or "", **payload.dump())


@pytest.mark.parametrize("reason", STOPS)
def test_every_stop_is_reopened_by_an_answer(reason: Reason) -> None:
    run = SCRIPTS[reason]().finish()
    assert run.state.stop.reason == reason.value
    answer(run)
    state = run.state
    assert (state.status, state.stop.reason, state.signals.answers[-1].text) == (Status.RUNNING, "", "use a number")
    assert state.signals.answers[-1].question
    commands = run.machine.list_next_commands(state)
    assert [command.reason for command in commands] == [None], "it must not stop at once"
    assert RunState.model_validate_json(state.model_dump_json()).signals == state.signals


@pytest.mark.parametrize("reason", [reason for reason in STOPS if find_row(reason).in_runs])
def test_answered_run_reaches_its_next_evaluation(reason: Reason) -> None:
    run = answer(SCRIPTS[reason]().finish())
    before = run.state.progress.evaluations
    rule = run.state.criteria.rules[0].id
    run.evaluate(*() if run.state.criteria.by_id[rule].must_not else (rule,), message="another message")
    assert run.state.progress.evaluations == before + 1


@pytest.mark.parametrize("reason", [reason for reason in Reason if find_row(reason).is_success])
def test_success_has_no_question_to_answer(reason: Reason) -> None:
    run = SCRIPTS[reason]().finish()
    with pytest.raises(IllegalTransition, match="answered cannot happen in a run that is over"):
        run.record(Kind.ANSWERED, text="more")


def test_answer_leads_to_an_edit_and_not_to_the_same_evaluation() -> None:
    run = answer(SCRIPTS[Reason.STUCK]().finish())
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    run.advance_to(Kind.REFINEMENT_DONE)
    assert run.state.current_step is Place.REFINE


def test_next_evaluation_may_stop_the_run_again() -> None:
    run = answer(SCRIPTS[Reason.MUST_NOT]().finish()).evaluate("a.no.secrets").finish()
    assert run.state.stop.reason == "must_not"


def test_run_that_is_not_over_can_be_told_something_too() -> None:
    run = ScriptedRun().evaluate("a.x.y").record(Kind.ANSWERED, text="look at the schema")
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    assert [answer.text for answer in run.state.signals.answers] == ["look at the schema"]


@pytest.mark.parametrize(
    ("fields", "usage", "room"),
    [
        ({}, {}, {}),
        ({"max_iterations": 1}, {}, {"max_iterations": 2}),
        ({"limits": Limits(usd=10)}, {"cost_usd": 12}, {"usd": 24}),
        ({"limits": Limits(tokens=100)}, {"tokens": 101}, {"tokens": 202}),
        ({"limits": Limits(usd=None, tokens=100)}, {"tokens": 99, "cost_usd": 99}, {}),
    ],
)
def test_answer_gives_room_for_one_more_iteration(
    fields: dict[str, Any], usage: dict[str, Any], room: dict[str, Any]
) -> None:
    run = ScriptedRun(**fields).evaluate("a.x.y", usage=usage)
    assert make_room(run.state) == room


def test_time_limit_is_raised_by_what_an_iteration_took() -> None:
    run = SCRIPTS[Reason.BUDGET_EXCEEDED]().finish()
    assert make_room(run.state) == {"max_completed_phase_seconds": 1248}
    assert answer(run).state.max_completed_phase_seconds == 1248
    short = run.state.replace(completed_phase_seconds=3, max_completed_phase_seconds=2)
    assert make_room(short) == {"max_completed_phase_seconds": 63}


def test_limits_of_the_user_come_before_that_room() -> None:
    run = SCRIPTS[Reason.ITERATION_LIMIT]().finish()
    assert answer(run, limits={"max_iterations": 9}).state.max_iterations == 9


def test_yes_confirms_the_rules_that_wait_and_they_are_judged_again() -> None:
    run = answer(SCRIPTS[Reason.UNCONFIRMED]().finish(), "Yes")
    assert (run.state.current_step, run.state.signals.confirmed_rules) == (Place.EVALUATE, ("a.manual.x",))
    assert run.evaluate().finish().state.stop.passed


def test_yes_accepts_that_an_agent_has_changed_no_file() -> None:
    seal = Seal(start_digest="0" * 64)
    run = ScriptedRun(target=Target.WORKSPACE, artifact_hash="0" * 64, seal=seal).evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE, artifact_hash="0" * 64).evaluate().finish()
    assert (run.state.stop.reason, run.state.has_empty_edit) == ("unconfirmed", True)
    assert answer(run, "yes").evaluate().finish().state.stop.passed


def test_other_words_than_yes_ask_for_another_edit() -> None:
    run = answer(SCRIPTS[Reason.UNCONFIRMED]().finish(), "no, the colours are wrong")
    assert (run.due_kinds, run.state.signals.confirmed_rules) == ([Kind.CRITIQUE_DONE], ())


def review_pending() -> ScriptedRun:
    return ScriptedRun().evaluate().advance_to(Kind.STOPPED).record(Kind.REVIEW_DONE, status="pending").finish()


def test_yes_to_an_outstanding_review_judges_again() -> None:
    assert isinstance(build_answer(review_pending().state, "yes"), LimitsRaised)
    assert answer(review_pending(), "yes").state.current_step is Place.EVALUATE


def test_other_words_to_an_outstanding_review_reject_the_work() -> None:
    run = answer(review_pending(), "shorter")
    assert run.state.signals.review is not None
    assert (run.state.is_rejected, run.state.signals.review.feedback) == (True, "shorter")
    assert run.due_kinds == [Kind.CRITIQUE_DONE]


def test_answer_unseals_the_files_that_it_names() -> None:
    run = ScriptedRun(max_iterations=1, seal=Seal(patterns=("/tests/",))).evaluate("a.x.y").finish()
    answer(run, unseal=("/tests/test_x.py",))
    assert run.state.setup.seal is not None
    assert run.state.setup.seal.patterns == ("/tests/", "!/tests/test_x.py")
    assert run.state.signals.answers[-1].unsealed == ("/tests/test_x.py",)


def test_failed_calibration_is_repeated() -> None:
    run = answer(SCRIPTS[Reason.CALIBRATION]().finish())
    assert run.due_kinds == [Kind.CALIBRATION_DONE]
    again = SCRIPTS[Reason.CALIBRATION]().finish().record(Kind.LIMITS_RAISED)
    assert again.due_kinds == [Kind.CALIBRATION_DONE]


@pytest.mark.parametrize("reason", [Reason.REGRESSION, Reason.PLATEAU])
def test_answered_experiment_tries_something_different(reason: Reason) -> None:
    run = answer(SCRIPTS[reason]().finish())
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    run.advance_to(Kind.BASELINE_DONE, Kind.EVALUATION_DONE)
    assert not run.state.is_over


# -- alternatives


def fail_comparison(details: str, **fields: Any) -> ScriptedRun:
    rule = make_rule("tests/test_x.py::test_it", key="tests::tests/test_x.py::test_it", **fields)
    run = ScriptedRun(rule, max_iterations=1).advance_to(Kind.EVALUATION_DONE)
    return run.record(Kind.EVALUATION_DONE, **run.build_evaluation({rule.id: details})).finish()


def test_alternative_is_chosen_by_its_number() -> None:
    run = fail_comparison("assert '123' == 123")
    first, second = find_alternative(run.state, "1"), find_alternative(run.state, " 2. ")
    assert first is not None
    assert second is not None
    assert (first.text, first.changes_judge) == ("123 is right: change the code", False)
    assert second.text == "'123' is right: change the expectation in tests/test_x.py"
    assert (second.changes_judge, second.unseal) == (True, "tests/test_x.py")
    assert [find_alternative(run.state, text) for text in ("3", "0", "one", "")] == [None] * 4


def test_without_compared_values_there_are_no_alternatives() -> None:
    assert find_alternative(fail_comparison("it broke").state, "1") is None
    assert find_alternative(ScriptedRun().state, "1") is None


# -- retries that a person decides about


def test_first_evaluation_before_an_agent_is_no_retry() -> None:
    run = ScriptedRun(control=IterationControl(auto_retry_on_test_fail=False), artifact_hash="a" * 64)
    assert run.evaluate("a.x.y").due_kinds == [Kind.CRITIQUE_DONE]
    assert run.evaluate("a.x.y").finish().state.stop.reason == "no_auto_retry"


def test_rejected_review_is_retried_only_if_that_is_allowed() -> None:
    for is_allowed in (True, False):
        run = ScriptedRun(control=IterationControl(auto_retry_on_review_reject=is_allowed))
        run.evaluate().advance_to(Kind.STOPPED).record(Kind.REVIEW_DONE, status="reject", feedback="shorter")
        assert run.due_kinds == [Kind.CRITIQUE_DONE if is_allowed else Kind.STOPPED]


def test_continuing_without_words_is_enough_for_a_retry() -> None:
    run = SCRIPTS[Reason.NO_AUTO_RETRY]().finish()
    assert isinstance(build_answer(run.state, ""), Answered)
    assert answer(run, "").due_kinds == [Kind.CRITIQUE_DONE]


# -- breakers and progress


@pytest.mark.parametrize(
    ("failing", "is_stopped"), [(("a.x.p", "a.x.q"), True), (("a.x.p",), False)], ids=["same rules", "one rule fixed"]
)
def test_no_breaker_fires_where_a_rule_was_fixed(failing: tuple[str, ...], is_stopped: bool) -> None:
    rules = [make_rule(f"a.x.{letter}") for letter in "pq"]
    run = ScriptedRun(*rules, max_iterations=9)
    for _ in range(2):
        run.evaluate("a.x.p", "a.x.q", message="same")
    run.evaluate(*failing, message="same")
    assert (run.due_kinds == [Kind.STOPPED]) is is_stopped


def test_undoing_an_edit_is_no_progress() -> None:
    run = ScriptedRun(make_rule("a.x.p"), make_rule("a.x.q"), max_iterations=9)
    run.complete(Kind.ARTIFACT_CREATED, artifact_hash="a" * 64).evaluate("a.x.p", message="1")
    run.complete(Kind.REFINEMENT_DONE, artifact_hash="b" * 64).evaluate("a.x.p", "a.x.q", message="2")
    run.complete(Kind.REFINEMENT_DONE, artifact_hash="a" * 64).evaluate("a.x.p", message="3")
    assert run.finish().state.stop.reason == "thrashing"


def test_file_that_was_rewritten_five_times_in_an_iteration_stops_the_run() -> None:
    run = ScriptedRun(max_iterations=9, breakers=Breakers(stuck=0, same_error=0)).evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE, rewrites=4, rewritten="shop.py").evaluate("a.x.y", message="2")
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    run.complete(Kind.REFINEMENT_DONE, rewrites=5, rewritten="shop.py").evaluate("a.x.y", message="3")
    assert run.finish().state.stop.reason == "thrashing"
    assert run.state.progress.attempts[-1].rewritten == "shop.py"
