"""Stop reasons: each of them, their order, and what does not count."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.machine.stop_reasons import STOP_ROWS, find_row
from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, build_levels
from pytest_loop.core.model.run_setup import Breakers, IterationControl, Limits
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status
from tests.core.scripted_experiment import ScriptedExperiment
from tests.core.scripted_run import ScriptedRun, make_rule

WARN, INFO = Severity.WARN, Severity.INFO
OVER_TIME = {"max_completed_phase_seconds": 600}


def evaluate_each(run: ScriptedRun, *messages: str, rules: tuple[str, ...] = ("a.x.y",)) -> ScriptedRun:
    for message in messages:
        run.evaluate(*rules, message=message)
    return run


def script_docs_run(**fields: Any) -> ScriptedRun:
    """Return a run with the rules of the documentation template: in phase A two block, two warn, and 0.75 passes."""
    rules = (
        make_rule("a.accuracy.x"),
        make_rule("a.sections.x"),
        make_rule("a.examples.x", WARN),
        make_rule("a.clarity.x", WARN),
    )
    thresholds = build_levels({Phase.A: "0.75", Phase.B: "0.85"})  # type: ignore[dict-item]
    return ScriptedRun(criteria=RunCriteria(rules=(*rules, make_rule("b.x.y", WARN)), phase=thresholds), **fields)


def break_must_not_rule() -> ScriptedRun:
    return ScriptedRun(make_rule("a.no.secrets", must_not=True), make_rule()).evaluate("a.no.secrets")


def pass_all_rules() -> ScriptedRun:
    return ScriptedRun().evaluate().evaluate()


def fail_only_warnings() -> ScriptedRun:
    return (
        ScriptedRun(make_rule(), make_rule("b.x.y", WARN), make_rule("b.x.z", WARN))
        .evaluate()
        .evaluate("b.x.y", "b.x.z")
    )


def pass_with_unconfirmed_rule() -> ScriptedRun:
    return ScriptedRun(make_rule(), make_rule("a.manual.x")).evaluate(assumed=("a.manual.x",))


def leave_only_unchecked_rules() -> ScriptedRun:
    rules = (make_rule(), make_rule("a.tool.x"))
    return ScriptedRun(*rules).evaluate("a.x.y", unchecked=("a.tool.x",)).evaluate(unchecked=("a.tool.x",))


def change_environment() -> ScriptedRun:
    finding = {"kind": "site", "rule": "the environment", "detail": "it changed"}
    return ScriptedRun().evaluate("a.x.y").evaluate("a.x.y", void=True, findings=[finding])


def claim_blocked_rule() -> ScriptedRun:
    claim = {"rule": "a.x.y", "reason": "it contradicts b.x.y"}
    return ScriptedRun().evaluate("a.x.y").complete(Kind.REFINEMENT_DONE, blocked=claim)


def request_stop() -> ScriptedRun:
    return ScriptedRun().evaluate("a.x.y").record(Kind.STOP_REQUESTED)


def fail_same_rules_five_times(**fields: Any) -> ScriptedRun:
    return evaluate_each(ScriptedRun(max_iterations=9, **fields), "one", "two", "three", "four", "five")


def repeat_message_three_times(**fields: Any) -> ScriptedRun:
    return evaluate_each(ScriptedRun(**fields), "line 1", "line 2", "line 3")


def revert_each_edit(**fields: Any) -> ScriptedRun:
    run = ScriptedRun(**fields).complete(Kind.ARTIFACT_CREATED, artifact_hash="a" * 64).evaluate("a.x.y", message="one")
    run.complete(Kind.REFINEMENT_DONE, artifact_hash="b" * 64).evaluate("a.x.y", message="two")
    return run.complete(Kind.REFINEMENT_DONE, artifact_hash="a" * 64).evaluate("a.x.y", message="three")


def repeat_same_warnings(**fields: Any) -> ScriptedRun:
    return evaluate_each(script_docs_run(**fields), "one", "two", "three", rules=("a.examples.x", "a.clarity.x"))


def evaluate_passing_counts(run: ScriptedRun, *counts: int) -> ScriptedRun:
    """Add one iteration for each number of passing rules, with another message in each."""
    names = [rule.id for rule in run.state.criteria.rules]
    for number, passing in enumerate(counts):
        run.evaluate(*names[passing:], message=f"{number} {passing}")
    return run


def script_run_with_twenty_rules(**breakers: float) -> ScriptedRun:
    rules = [make_rule(f"a.x.n{number}") for number in range(20)]
    return ScriptedRun(*rules, max_iterations=9, breakers=Breakers(stuck=0, same_error=0, **breakers))


def repeat_same_score() -> ScriptedRun:
    return evaluate_passing_counts(script_run_with_twenty_rules(plateau=0.02, diminishing=0.05), 10, 10, 10)


def change_score_a_little() -> ScriptedRun:
    return evaluate_passing_counts(script_run_with_twenty_rules(plateau=0.02, diminishing=0.06), 17, 18, 17)


def pass_with_doubting_agent() -> ScriptedRun:
    run = (
        ScriptedRun(breakers=Breakers(confidence=0.95))
        .complete(Kind.ARTIFACT_CREATED, exit_signal=False)
        .evaluate()
        .evaluate()
    )
    return run.complete(Kind.REFINEMENT_DONE).evaluate()


def exceed_time_budget() -> ScriptedRun:
    return ScriptedRun(**OVER_TIME).evaluate("a.x.y", seconds=624)


def fail_four_times() -> ScriptedRun:
    return evaluate_each(ScriptedRun(), "one", "two", "three", "four")


def fail_without_auto_retry(**control: bool) -> ScriptedRun:
    return ScriptedRun(control=IterationControl(**control or {"auto_retry_on_test_fail": False})).evaluate("a.x.y")


def fail_step_twice() -> ScriptedRun:
    run = ScriptedRun().advance_to(Kind.ARTIFACT_CREATED).record(Kind.PHASE_ERROR, step="PRODUCE", reason="empty")
    return run.record(Kind.PHASE_ERROR, step="PRODUCE", reason="empty again")


def pass_all_cases() -> ScriptedRun:
    return ScriptedExperiment().measure("F..", "...")


def lose_one_case() -> ScriptedRun:
    return ScriptedExperiment().measure(".FF", "F..")


def repeat_same_measurement() -> ScriptedRun:
    return ScriptedExperiment().measure("F..", "F..", "F..")


def fail_calibration() -> ScriptedRun:
    return ScriptedExperiment().complete(Kind.CALIBRATION_DONE, passed=False)


SCRIPTS: dict[Reason, Callable[[], ScriptedRun]] = {
    Reason.MUST_NOT: break_must_not_rule,
    Reason.THRESHOLD_REACHED: pass_all_rules,
    Reason.NO_MAJOR_ISSUES: fail_only_warnings,
    Reason.HIGH_CONFIDENCE: pass_with_doubting_agent,
    Reason.UNCONFIRMED: pass_with_unconfirmed_rule,
    Reason.SETUP_ERROR: leave_only_unchecked_rules,
    Reason.ENVIRONMENT_CHANGED: change_environment,
    Reason.BLOCKED: claim_blocked_rule,
    Reason.USER_STOP: request_stop,
    Reason.STUCK: fail_same_rules_five_times,
    Reason.SAME_ERROR: repeat_message_three_times,
    Reason.THRASHING: revert_each_edit,
    Reason.STAGNATION: repeat_same_warnings,
    Reason.QUALITY_PLATEAU: repeat_same_score,
    Reason.DIMINISHING_RETURNS: change_score_a_little,
    Reason.BUDGET_EXCEEDED: exceed_time_budget,
    Reason.ITERATION_LIMIT: fail_four_times,
    Reason.NO_AUTO_RETRY: fail_without_auto_retry,
    Reason.PHASE_ERROR: fail_step_twice,
    Reason.CONVERGED: pass_all_cases,
    Reason.REGRESSION: lose_one_case,
    Reason.PLATEAU: repeat_same_measurement,
    Reason.CALIBRATION: fail_calibration,
}


@pytest.mark.parametrize("reason", Reason)
def test_every_stop_reason_is_reached(reason: Reason) -> None:
    state = SCRIPTS[reason]().finish().state
    assert (state.stop.reason, state.status) == (reason.value, find_row(reason).status)
    assert state.stop.passed is (state.status is Status.COMPLETED)


def test_stop_rows_list_every_reason_once_in_order() -> None:
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


# -- the first match wins


def pass_over_budget() -> ScriptedRun:
    return ScriptedRun(**OVER_TIME).evaluate().evaluate(seconds=624)


def fail_warnings_over_budget() -> ScriptedRun:
    run = ScriptedRun(make_rule(), make_rule("b.x.y", WARN), make_rule("b.x.z", WARN), **OVER_TIME)
    return run.evaluate().evaluate("b.x.y", "b.x.z", seconds=624)


def reach_limit_over_budget() -> ScriptedRun:
    return ScriptedRun(max_iterations=1, **OVER_TIME).evaluate("a.x.y", seconds=624)


def stagnate_over_budget() -> ScriptedRun:
    run = script_docs_run(**OVER_TIME)
    for number in (1, 2, 3):
        run.evaluate("a.examples.x", "a.clarity.x", message=str(number), seconds=624 if number == 3 else 0)
    return run


def request_stop_with_lower_reasons() -> ScriptedRun:
    run = (
        ScriptedRun(max_iterations=3, **OVER_TIME)
        .complete(Kind.ARTIFACT_CREATED, artifact_hash="a" * 64)
        .evaluate("a.x.y")
    )
    run.complete(Kind.REFINEMENT_DONE, artifact_hash="b" * 64).evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE, artifact_hash="a" * 64).advance_to(Kind.EVALUATION_DONE)
    return run.record(Kind.STOP_REQUESTED).record(
        Kind.EVALUATION_DONE, **run.build_evaluation({"a.x.y": "a.x.y: no"}), seconds=624
    )


def pass_after_stop_request() -> ScriptedRun:
    run = ScriptedRun().evaluate().advance_to(Kind.EVALUATION_DONE).record(Kind.STOP_REQUESTED)
    return run.record(Kind.EVALUATION_DONE, **run.build_evaluation({}))


def pass_in_last_iteration() -> ScriptedRun:
    return ScriptedRun(max_iterations=1).evaluate().evaluate()


def pass_with_blocked_claim() -> ScriptedRun:
    claim = {"rule": "a.x.y", "reason": "it cannot be done"}
    return ScriptedRun().complete(Kind.ARTIFACT_CREATED, blocked=claim).evaluate().evaluate()


def break_must_not_rule_in_phase_b() -> ScriptedRun:
    return ScriptedRun(make_rule(), make_rule("b.no.secrets", must_not=True)).evaluate().evaluate("b.no.secrets")


def claim_blocked_rule_and_request_stop() -> ScriptedRun:
    run = claim_blocked_rule()
    return run.record(Kind.STOP_REQUESTED)


def fail_step_over_budget() -> ScriptedRun:
    run = ScriptedRun(**OVER_TIME).advance_to(Kind.EVALUATION_DONE)
    for _ in range(2):
        run.record(Kind.PHASE_ERROR, step="EVALUATE", reason="it died", seconds=500)
    return run


@pytest.mark.parametrize(
    ("play_script", "reason"),
    [
        (pass_over_budget, Reason.THRESHOLD_REACHED),
        (fail_warnings_over_budget, Reason.NO_MAJOR_ISSUES),
        (reach_limit_over_budget, Reason.BUDGET_EXCEEDED),
        (stagnate_over_budget, Reason.STAGNATION),
        (request_stop_with_lower_reasons, Reason.USER_STOP),
        (pass_after_stop_request, Reason.THRESHOLD_REACHED),
        (pass_in_last_iteration, Reason.THRESHOLD_REACHED),
        (pass_with_blocked_claim, Reason.THRESHOLD_REACHED),
        (break_must_not_rule_in_phase_b, Reason.MUST_NOT),
        (claim_blocked_rule_and_request_stop, Reason.BLOCKED),
        (fail_step_over_budget, Reason.PHASE_ERROR),
    ],
)
def test_first_matching_reason_wins(play_script: Callable[[], ScriptedRun], reason: Reason) -> None:
    state = play_script().finish().state
    assert (state.stop.reason, state.status) == (reason.value, find_row(reason).status)


@pytest.mark.parametrize("above", [number for number, row in enumerate(STOP_ROWS) if row.is_success])
def test_success_comes_before_limits_and_budgets(above: int) -> None:
    before = {row.reason for row in STOP_ROWS[:above]}
    broken = {Reason.PHASE_ERROR, Reason.CALIBRATION, Reason.MUST_NOT}
    assert before <= broken | {Reason.THRESHOLD_REACHED, Reason.CONVERGED, Reason.NO_MAJOR_ISSUES}


# -- success


def test_void_evaluation_is_never_a_success() -> None:
    run = ScriptedRun(max_iterations=2).evaluate().evaluate(void=True)
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    assert run.evaluate(void=True).finish().state.stop.reason == "iteration_limit"


def test_void_evaluation_does_not_lead_to_phase_b() -> None:
    assert ScriptedRun().evaluate(void=True).due_kinds == [Kind.CRITIQUE_DONE]


def test_success_waits_for_an_exit_signal_after_a_negative_one() -> None:
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, exit_signal=False).evaluate().evaluate()
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    run.complete(Kind.REFINEMENT_DONE).evaluate()
    assert run.due_kinds == [Kind.CRITIQUE_DONE], "silence is no signal"
    assert run.complete(Kind.REFINEMENT_DONE, exit_signal=True).evaluate().finish().state.stop.passed


def test_exit_signal_does_not_end_a_failing_run() -> None:
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, exit_signal=True).evaluate("a.x.y")
    assert run.due_kinds == [Kind.CRITIQUE_DONE]


def test_unconfirmed_rule_blocks_both_successes() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.manual.x"), make_rule("b.x.y", WARN)).evaluate(assumed=("a.manual.x",))
    run.evaluate("b.x.y", assumed=("a.manual.x",))
    assert RUN_MACHINE.find_stop_reason(run.state) is Reason.UNCONFIRMED


def test_unconfirmed_rule_does_not_end_a_run_with_failures() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.manual.x")).evaluate("a.x.y", assumed=("a.manual.x",))
    assert RUN_MACHINE.find_stop_reason(run.state) is None


def test_run_is_evaluated_again_after_a_confirmation() -> None:
    run = pass_with_unconfirmed_rule().finish()
    run.record(Kind.LIMITS_RAISED, confirmed=["a.manual.x"])
    assert run.due_kinds == [Kind.EVALUATION_DONE]
    assert run.evaluate().finish().state.stop.reason == "threshold_reached"
    assert run.state.iteration == 1


def test_evaluation_that_claims_to_pass_with_a_failure_is_no_success() -> None:
    run = ScriptedRun().evaluate().evaluate("b.x.y", passed=True)
    assert RUN_MACHINE.find_stop_reason(run.state) is None


# -- from phase A to phase B


def test_run_that_passes_a_in_its_last_iteration_is_evaluated_in_b() -> None:
    assert ScriptedRun(max_iterations=1).evaluate().due_kinds == [Kind.PHASE_SWITCHED]


def test_blocked_claim_ends_the_run_in_the_iteration_in_which_it_is_made() -> None:
    state = claim_blocked_rule().finish().state
    assert (state.stop.reason, state.iteration, state.progress.evaluations) == ("blocked", 1, 1)


def test_blocked_claim_does_not_end_a_run_that_passes_a() -> None:
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, blocked={"rule": "b.x.y", "reason": "no"}).evaluate()
    assert run.due_kinds == [Kind.PHASE_SWITCHED]
    assert run.evaluate("b.x.y").finish().state.stop.reason == "blocked"


def test_phase_b_does_not_begin_over_the_time_budget() -> None:
    state = ScriptedRun(**OVER_TIME).evaluate(seconds=624).finish().state
    assert (state.stop.reason, state.phase) == ("budget_exceeded", Phase.A)


def test_pass_is_success_at_once_if_b_adds_no_rules() -> None:
    run = ScriptedRun(make_rule(), **OVER_TIME).advance_to(Kind.EVALUATION_DONE).record(Kind.STOP_REQUESTED)
    run.record(Kind.EVALUATION_DONE, **run.build_evaluation({}), seconds=624)
    state = run.finish().state
    assert (state.stop.reason, state.progress.evaluations) == ("threshold_reached", 1)


def test_stop_request_ends_a_run_before_phase_b() -> None:
    assert ScriptedRun().evaluate().record(Kind.STOP_REQUESTED).finish().state.stop.reason == "user_stop"


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
def test_budget_ends_a_run_only_if_limit_and_usage_are_known(
    limits: Limits, usage: dict[str, Any], is_over: bool
) -> None:
    run = ScriptedRun(limits=limits).complete(Kind.ARTIFACT_CREATED, usage=usage).evaluate("a.x.y")
    assert (RUN_MACHINE.find_stop_reason(run.state) is Reason.BUDGET_EXCEEDED) is is_over


def test_artifact_that_used_up_the_budget_is_still_evaluated() -> None:
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, usage={"cost_usd": 30})
    assert run.due_kinds == [Kind.EVALUATION_DONE]
    assert run.evaluate().evaluate().finish().state.stop.reason == "threshold_reached"


def test_refinement_that_used_up_the_budget_is_still_evaluated() -> None:
    run = ScriptedRun().evaluate("a.x.y", message="one").complete(Kind.REFINEMENT_DONE, usage={"cost_usd": 30})
    run.evaluate("a.x.y", message="two")
    assert run.finish().state.stop.reason == "budget_exceeded"
    assert run.state.iteration == 2


def test_phase_b_is_not_prepared_over_the_budget() -> None:
    run = ScriptedRun(make_rule(), make_rule("b.x.y", check="a sentence")).complete(
        Kind.ARTIFACT_CREATED, usage={"cost_usd": 30}
    )
    assert run.evaluate().finish().state.stop.reason == "budget_exceeded"
    assert run.state.current_step is Place.PREPARE


def test_nothing_is_evaluated_over_the_time_budget() -> None:
    run = ScriptedRun(**OVER_TIME).complete(Kind.ARTIFACT_CREATED, seconds=600)
    assert run.finish().state.stop.reason == "budget_exceeded"
    assert run.state.evaluation is None


# -- breakers


@pytest.mark.parametrize(
    ("breaker", "play_script"),
    [
        ("stuck", fail_same_rules_five_times),
        ("same_error", repeat_message_three_times),
        ("thrashing", revert_each_edit),
        ("stagnation", repeat_same_warnings),
    ],
)
def test_zero_turns_a_breaker_off(breaker: str, play_script: Callable[..., ScriptedRun]) -> None:
    run = play_script(breakers=Breakers.model_validate({breaker: 0}))
    assert RUN_MACHINE.find_stop_reason(run.state) is None


def test_run_is_stuck_only_if_the_same_rules_fail_without_a_break() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.x.z"), max_iterations=9)
    for number, name in enumerate(["a.x.y", "a.x.y", "a.x.z", "a.x.y", "a.x.y", "a.x.y", "a.x.y"], 1):
        run.evaluate(name, message=str(number))
    assert RUN_MACHINE.find_stop_reason(run.state) is None
    assert RUN_MACHINE.find_stop_reason(run.evaluate("a.x.y", message="8").state) is Reason.STUCK


def test_new_message_restarts_the_count_of_same_errors() -> None:
    run = evaluate_each(ScriptedRun(max_iterations=9), "3 == 4", "3 == 5", "3 == 5")
    assert RUN_MACHINE.find_stop_reason(run.state) is None
    assert RUN_MACHINE.find_stop_reason(evaluate_each(run, "3 == 5").state) is Reason.SAME_ERROR


def test_same_error_needs_every_message_to_repeat() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.x.z"))
    for number in (1, 2, 3):
        payload = run.advance_to(Kind.EVALUATION_DONE).build_evaluation(
            {"a.x.y": "the same", "a.x.z": f"other {number}"}
        )
        run.record(Kind.EVALUATION_DONE, **payload)
    assert RUN_MACHINE.find_stop_reason(run.state) is None


def test_repeated_warnings_are_no_same_error() -> None:
    run = script_docs_run(breakers=Breakers(stagnation=0))
    evaluate_each(run, "same", "same", "same", rules=("a.examples.x", "a.clarity.x"))
    assert RUN_MACHINE.find_stop_reason(run.state) is None


def test_info_rule_does_not_keep_a_run_from_being_stuck() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.info.x", INFO), max_iterations=9)
    for number in range(5):
        run.evaluate(*(["a.x.y", "a.info.x"] if number % 2 else ["a.x.y"]), message=str(number))
    assert RUN_MACHINE.find_stop_reason(run.state) is Reason.STUCK


def test_evaluation_without_results_still_counts_its_failures() -> None:
    run = ScriptedRun()
    for _ in range(3):
        run.advance_to(Kind.EVALUATION_DONE).record(
            Kind.EVALUATION_DONE, score=0, passed=False, failed=[{"id": "a.x.y"}]
        )
    assert RUN_MACHINE.find_stop_reason(run.state) is Reason.SAME_ERROR


def test_file_rewritten_five_times_is_thrashing() -> None:
    assert RUN_MACHINE.find_stop_reason(ScriptedRun().evaluate("a.x.y", rewrites=5).state) is Reason.THRASHING
    assert RUN_MACHINE.find_stop_reason(ScriptedRun().evaluate("a.x.y", rewrites=4).state) is None


def test_unchanged_artifact_is_not_thrashing() -> None:
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, artifact_hash="a" * 64).evaluate("a.x.y", message="one")
    for message in ("two", "three"):
        run.complete(Kind.REFINEMENT_DONE, artifact_hash="a" * 64).evaluate("a.x.y", message=message)
    assert RUN_MACHINE.find_stop_reason(run.state) is None


def test_docs_with_two_failing_warnings_stagnate_at_iteration_three() -> None:
    """Vector 5: 4/6 is below 0.75; the counts are 0, 1, 2."""
    run, counts = script_docs_run(), []
    for _ in range(3):
        run.evaluate("a.examples.x", "a.clarity.x")
        assert run.state.last_score == pytest.approx(4 / 6, abs=1e-6)
        counts.append(run.state.stagnation_count)
    assert counts == [0, 1, 2]
    assert run.finish().state.stop.reason == "stagnation"
    assert run.state.iteration == 3


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
def test_stagnation_counts_gains_exactly(scores: list[float], count: int) -> None:
    run = ScriptedRun()
    for number, score in enumerate(scores):
        run.evaluate("a.x.y", score=score, failed=[], rewrites=0, message=str(number))
    assert run.state.stagnation_count == count


def test_blocker_does_not_change_the_stagnation_count() -> None:
    run = ScriptedRun().evaluate("a.x.y", score=0.5, failed=[]).evaluate("a.x.y", score=0.5, failed=[])
    assert run.evaluate("a.x.y", score=0.5).state.stagnation_count == 1


def test_stagnation_restarts_in_phase_b() -> None:
    run = script_docs_run()
    evaluate_each(run, "one", "two", rules=("a.examples.x", "a.clarity.x"))
    assert run.state.stagnation_count == 1
    run.evaluate("a.clarity.x").advance_to(Kind.EVALUATION_DONE)
    assert (run.state.phase, run.state.stagnation_count, run.state.last_score) == (Phase.B, 0, 0)


def test_next_agent_takes_over_if_the_first_makes_no_progress() -> None:
    run = ScriptedRun(agents=("small", "large"), max_iterations=20)
    for _ in range(3):
        run.evaluate("a.x.y")
    assert (run.state.progress.agent_index, run.state.progress.agent_since, run.state.iteration) == (1, 4, 3)
    for _ in range(2):
        run.evaluate("a.x.y")
        assert not run.state.is_over
    run.evaluate("a.x.y").finish()
    assert (run.state.progress.agent_index, run.state.iteration, run.state.stop.reason) == (1, 6, "same_error")


def test_run_with_one_agent_ends_if_it_makes_no_progress() -> None:
    run = ScriptedRun(agents=("small",), max_iterations=20)
    for _ in range(3):
        run.evaluate("a.x.y")
    assert run.finish().state.stop.reason == "same_error"


def test_next_agent_starts_without_a_thrashing_count() -> None:
    run = ScriptedRun(agents=("small", "large"), max_iterations=20)
    for text in ("one", "two", "one"):
        run.evaluate("a.x.y", message=text, artifact_hash=text, artifact_sha256=text)
    assert (run.state.progress.agent_index, run.due_kinds) == (1, [Kind.CRITIQUE_DONE])


@pytest.mark.parametrize(
    ("failing", "unchecked", "reason"),
    [
        ((), ("a.x.y", "a.x.w"), Reason.SETUP_ERROR),
        (("a.x.y",), ("a.x.w",), None),
        (("a.x.w",), ("a.x.y",), Reason.SETUP_ERROR),
        ((), ("a.x.w",), Reason.SETUP_ERROR),
        (("a.x.v",), ("a.x.w",), None),
    ],
    ids=["all", "a blocker is left", "only a warning is left", "an unchecked warning", "two warnings"],
)
def test_run_ends_at_once_if_nothing_is_left_that_an_agent_could_fix(
    failing: tuple[str, ...], unchecked: tuple[str, ...], reason: Reason | None
) -> None:
    run = ScriptedRun(make_rule(), make_rule("a.x.w", WARN), make_rule("a.x.v", WARN)).evaluate(
        *failing, unchecked=unchecked
    )
    assert RUN_MACHINE.find_stop_reason(run.state) is reason


def test_unchecked_rule_that_does_not_block_is_no_obstacle_to_success() -> None:
    run = ScriptedRun(make_rule(), make_rule("b.x.w", WARN)).evaluate().evaluate(unchecked=("b.x.w",)).finish()
    assert run.state.stop.reason == Reason.NO_MAJOR_ISSUES.value


def test_run_with_a_fixed_set_up_is_judged_again_without_an_agent() -> None:
    run = ScriptedRun(make_rule()).evaluate(unchecked=("a.x.y",)).finish()
    assert (run.state.status, run.state.iteration) == (Status.FAILED, 1)
    run.record(Kind.LIMITS_RAISED)
    assert (run.state.current_step, run.state.iteration) == (Place.EVALUATE, 1)
    assert run.evaluate().finish().state.stop.reason == Reason.THRESHOLD_REACHED.value


def test_environment_that_changed_beside_other_tampering_is_no_reason_of_its_own() -> None:
    findings = [{"kind": "site", "rule": "x", "detail": "x"}, {"kind": "sealed", "path": "x", "detail": "x"}]
    run = ScriptedRun(max_iterations=9).evaluate("a.x.y").evaluate("a.x.y", void=True, findings=findings)
    assert not run.state.is_over
