"""The outcome of a run: for programs, for reports, and for a person."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.attempt import Attempt
from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.core.model.run_setup import IterationControl
from pytest_loop.core.model.run_state import Blocked
from pytest_loop.core.model.vocabulary import Kind, Reason
from pytest_loop.core.reporting.decision import decide
from pytest_loop.core.reporting.escalation import ask_question, describe_pattern, render_attempt
from pytest_loop.core.reporting.outcome import (
    ArtifactStatus,
    build_result,
    compute_distance,
    get_artifact_status,
    report_budget,
)
from tests.core.scripted_run import ScriptedRun, make_rule

WARN = Severity.WARN


def build_run_result(run: ScriptedRun) -> dict[str, Any]:
    return build_result(run.state, run.events, ".loop/it/history.jsonl")


# -- the artifact


def test_artifact_is_evaluated_only_until_it_changes() -> None:
    run = ScriptedRun()
    assert get_artifact_status(run.state) is ArtifactStatus.NOT_CREATED
    assert get_artifact_status(run.complete(Kind.ARTIFACT_CREATED).state) is ArtifactStatus.UNEVALUATED
    assert get_artifact_status(run.evaluate("a.x.y").state) is ArtifactStatus.EVALUATED
    assert get_artifact_status(run.complete(Kind.REFINEMENT_DONE).state) is ArtifactStatus.STALE


def test_unchanged_artifact_stays_evaluated() -> None:
    run = ScriptedRun().evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE, artifact_hash=run.state.progress.artifact_hash)
    assert get_artifact_status(run.state) is ArtifactStatus.EVALUATED


def test_stop_after_refine_has_no_final_score() -> None:
    """Vector 10."""
    run = (
        ScriptedRun(max_completed_phase_seconds=600)
        .evaluate("a.x.y")
        .complete(Kind.REFINEMENT_DONE, seconds=624)
        .finish()
    )
    result = build_run_result(run)
    assert run.state.stop.reason == "budget_exceeded"
    assert (result["artifact_status"], result["score"], result["last_evaluated_score"]) == ("stale", None, 0)
    assert result["distance_to_success"] is None
    assert (result["current_step"], result["iteration"]) == ("REFINE", 1)


def test_score_of_phase_a_is_not_the_score_of_a_run_in_b() -> None:
    run = ScriptedRun(make_rule(), make_rule("b.x.y", check="a sentence")).complete(
        Kind.ARTIFACT_CREATED, usage={"cost_usd": 30}
    )
    result = build_run_result(run.evaluate().finish())
    assert (result["phase"], result["score"], result["last_evaluated_score"]) == ("B", None, 1)


# -- the distance


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        (["b.x.y0", "b.x.y1", "b.x.y2"], {"score": 0.75, "gap": 0.15, "blocking": [], "rules_passed": 10}),
        (["b.x.light"], {"score": 1.0, "gap": 0.0, "blocking": ["b.x.light"], "rules_passed": 12}),
    ],
)
def test_distance_to_success_has_gap_and_blocking_rules(failing: list[str], expected: dict[str, Any]) -> None:
    """Vector 8."""
    rules = [
        make_rule("a.x.y", WARN),
        *(make_rule(f"b.x.y{number}", WARN) for number in range(11)),
        make_rule("b.x.light", weight=0),
    ]
    run = ScriptedRun(*rules).evaluate().evaluate(*failing)
    assert compute_distance(run.state) == {"threshold": 0.9, "rules_total": 13, **expected}


def test_success_has_no_distance() -> None:
    assert compute_distance(ScriptedRun().evaluate().evaluate().finish().state) is None
    assert compute_distance(ScriptedRun().state) is None


# -- the budget


def test_budget_report_has_the_overshoot() -> None:
    """Vector 9."""
    run = (
        ScriptedRun(max_completed_phase_seconds=600)
        .complete(Kind.ARTIFACT_CREATED, seconds=200)
        .evaluate("a.x.y", seconds=424)
    )
    assert report_budget(run.state) == {
        "completed_phase_seconds": 624,
        "max_completed_phase_seconds": 600,
        "overshoot_seconds": 24,
        "last_completed_step": "EVALUATE",
    }


def test_budget_report_without_a_limit_has_no_overshoot() -> None:
    report = report_budget(ScriptedRun().state)
    assert (report["overshoot_seconds"], report["last_completed_step"]) == (None, "")


# -- decisions


def test_three_failures_are_two_retries_and_an_escalation() -> None:
    """Vector 14."""
    run, actions = ScriptedRun(max_iterations=3), []
    for number in (1, 2, 3):
        run.evaluate("a.x.y", message=str(number))
        decision = decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump()
        actions.append((decision["action"], decision.get("iteration")))
    assert actions == [("retry", 2), ("retry", 3), ("escalate", 3)]


def test_success_in_the_last_iteration_proceeds() -> None:
    """Vector 14."""
    run = (
        ScriptedRun(max_iterations=3)
        .evaluate("a.x.y", message="1")
        .evaluate("a.x.y", message="2")
        .evaluate()
        .evaluate()
    )
    assert run.state.iteration == 3
    assert decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump() == {
        "action": "proceed", "task_id": "it", "message": "done: threshold_reached",
    }  # fmt: skip


def test_confidence_of_an_agent_is_no_pass() -> None:
    """Vector 13: what an agent believes of itself ends nothing; a pass does."""
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, exit_signal=True, confidence=0.95).evaluate("a.x.y")
    assert decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump()["action"] == "retry"
    run.evaluate().evaluate()
    assert decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump()["action"] == "proceed"


def test_pass_of_phase_a_proceeds_to_phase_b() -> None:
    run = ScriptedRun().evaluate()
    assert decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump() == {
        "action": "proceed", "task_id": "it", "message": "phase A passes: phase B decides",
    }  # fmt: skip


def test_retry_lists_what_to_fix() -> None:
    run = ScriptedRun(*(make_rule(f"a.x.y{number}") for number in range(7)))
    run.evaluate(*(f"a.x.y{number}" for number in range(7)), message="m" * 999)
    feedback = decide(run.state, None).dump()["feedback"]
    assert (feedback["summary"], feedback["priority"], len(feedback["actionable_items"])) == (
        "7 rules to fix",
        "high",
        2,
    )
    assert feedback["actionable_items"][0].startswith("a.x.y0: a.x.y0: mmm")
    assert max(map(len, feedback["actionable_items"])) == 200


def test_retry_for_warnings_has_a_low_priority() -> None:
    run = ScriptedRun(make_rule("a.x.y", WARN)).evaluate("a.x.y")
    assert decide(run.state, None).dump()["feedback"]["priority"] == "low"


def test_retry_may_be_needed_although_nothing_fails() -> None:
    run = ScriptedRun().complete(Kind.ARTIFACT_CREATED, exit_signal=False).evaluate().evaluate()
    assert decide(run.state, None).dump()["feedback"]["summary"] == "nothing fails, and yet it is not done"
    assert decide(ScriptedRun().state, None).dump()["feedback"]["actionable_items"] == []


def test_unconfirmed_rule_holds_the_run() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.manual.x")).evaluate(assumed=("a.manual.x",)).advance_to(Kind.STOPPED)
    assert decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump() == {
        "action": "hold", "task_id": "it", "waiting_for": ["a.manual.x"], "question": "Is it so: a.manual.x (what a.manual.x asks for)?",
    }  # fmt: skip
    assert decide(ScriptedRun().state, Reason.UNCONFIRMED).dump()["waiting_for"] == []


def test_escalation_has_attempts_pattern_and_question() -> None:
    run = ScriptedRun(max_iterations=2).evaluate("a.x.y", message="one").evaluate("a.x.y", message="two")
    assert decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump() == {
        "action": "escalate",
        "task_id": "it",
        "iteration": 2,
        "context": {
            "attempts_summary": [
                "iteration 1, phase A: 0 fail; open: a.x.y; a.x.y: one",
                "iteration 2, phase A: 0 fail; open: a.x.y; a.x.y: two",
            ],
            "pattern_detected": "same failure: the same rules fail for 2 iterations, in different ways",
        },
        "question": "Is another round worth it, or is a.x.y asking for the wrong thing?",
    }


# -- texts


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "iteration 1, phase A: 0.666 fail"),
        ({"passed": True}, "iteration 1, phase A: 0.666 pass"),
        ({"passed": True, "void": True}, "iteration 1, phase A: 0.666 void"),
        ({"unchanged": True}, "iteration 1, phase A: 0.666 fail; nothing was changed"),
        ({"fixed": 2}, "iteration 1, phase A: 0.666 fail; 2 fixed, 0 broken"),
        (
            {"open": ("x\x1b[2K", "y"), "unmet": 2, "broken": 1},
            "iteration 1, phase A: 0.666 fail; 0 fixed, 1 broken; open: , y",
        ),
        ({"message": "only for people"}, "iteration 1, phase A: 0.666 fail"),
        ({"open": tuple("abcde"), "unmet": 9}, "iteration 1, phase A: 0.666 fail; open: a, b, c and 6 more"),
    ],
)
def test_attempt_is_rendered_in_one_line(fields: dict[str, Any], line: str) -> None:
    assert (
        render_attempt(
            Attempt.model_validate({"iteration": 1, "phase": "A", "score": 2 / 3, "passed": False, **fields})
        )
        == line
    )


def test_pattern_of_attempts_is_described() -> None:
    rules = [make_rule(f"a.x.{letter}") for letter in "pqr"]

    def describe_rounds(*rounds: tuple[str, str, str]) -> str:
        """Return the pattern after rounds, each with a version, the failing rules, and their message."""
        run = ScriptedRun(*rules, max_iterations=9)
        for version, failing, message in rounds:
            run.advance_to(Kind.ARTIFACT_CREATED, Kind.REFINEMENT_DONE)
            run.complete(next(iter(run.due_kinds)), artifact_hash=version * 64)
            run.evaluate(*(f"a.x.{letter}" for letter in failing), message=message)
        return describe_pattern(run.state)

    assert describe_pattern(ScriptedRun().state) == "nothing was judged"
    waiting = ScriptedRun(make_rule("a.x.p")).evaluate(unchecked=("a.x.p",))
    assert describe_pattern(waiting.state) == "set-up: what is left cannot be judged here, and no edit changes that"
    assert describe_rounds(("1", "p", "m")) == "one attempt only"
    assert (
        describe_rounds(("1", "p", "m"), ("2", "p", "m"))
        == "same failure: the same rules fail for 2 iterations, with the same message"
    )
    assert (
        describe_rounds(("1", "p", "m"), ("2", "p", "n"))
        == "same failure: the same rules fail for 2 iterations, in different ways"
    )
    assert describe_rounds(("1", "p", "m"), ("2", "q", "m"), ("1", "p", "m")) == "oscillation: edits undo each other"
    assert describe_rounds(("1", "pq", "m"), ("1", "p", "m")) == "no change: the last edit changed nothing"
    assert describe_rounds(("1", "p", "m"), ("2", "q", "m")) == "moving failure: what is fixed breaks something else"
    assert describe_rounds(("1", "p", "m"), ("2", "pq", "m")) == "moving failure: edits break what passed before"
    assert describe_rounds(("1", "pq", "m"), ("2", "p", "m")) == "partial gain: some rules were fixed, others are left"
    assert describe_rounds(("1", "pq", "m"), ("2", "", "m")) == "nothing fails any more"


@pytest.mark.parametrize(
    ("reason", "question"),
    [
        (Reason.MUST_NOT, "How did the forbidden condition come about, and is it undone?"),
        (Reason.BLOCKED, "What does the agent not know about a.x.y?"),
        (Reason.UNCONFIRMED, "The review is outstanding: is it done?"),
        (Reason.USER_STOP, "What should be different from here on?"),
        (Reason.STUCK, "What does the agent not know about a.x.y?"),
        (Reason.SAME_ERROR, "What does the agent not know about a.x.y?"),
        (Reason.THRASHING, "What does the agent need to know about a.x.y?"),
        (Reason.STAGNATION, "Is a.x.y worth more rounds, or is it good enough?"),
        (Reason.BUDGET_EXCEEDED, "Is the result worth a higher limit?"),
        (Reason.ITERATION_LIMIT, "Is another round worth it, or is a.x.y asking for the wrong thing?"),
        (Reason.PHASE_ERROR, "Why does the agent not answer as it should?"),
    ],
)
def test_each_stop_reason_has_a_question(reason: Reason, question: str) -> None:
    assert ask_question(ScriptedRun().evaluate("a.x.y").state, reason) == question


def fail_comparison(message: str, **fields: Any) -> ScriptedRun:
    rule = make_rule("tests/test_x.py::test_it", key="tests::tests/test_x.py::test_it")
    run = ScriptedRun(rule, max_iterations=1, **fields).advance_to(Kind.EVALUATION_DONE)
    return run.record(Kind.EVALUATION_DONE, **run.build_evaluation({rule.id: message}))


def test_question_offers_to_change_the_code_or_the_expectation() -> None:
    run = fail_comparison("assert {'userId': '123'} == {'userId': 123}")
    decision = decide(run.state, Reason.ITERATION_LIMIT).dump()
    assert decision["question"] == (
        "tests/test_x.py::test_it expects {'userId': 123}, and found {'userId': '123'}: which of the two is right?"
    )
    assert decision["alternatives"] == [
        {"text": "{'userId': 123} is right: change the code"},
        {
            "text": "{'userId': '123'} is right: change the expectation in tests/test_x.py",
            "changes_judge": True,
            "unseal": "tests/test_x.py",
        },
    ]
    assert "alternatives" not in decide(run.state, Reason.BUDGET_EXCEEDED).dump()


def test_expectation_outside_of_python_tests_has_no_known_file() -> None:
    run = ScriptedRun(make_rule("a.npm.test"), max_iterations=1)
    run.advance_to(Kind.EVALUATION_DONE)
    run.record(Kind.EVALUATION_DONE, **run.build_evaluation({"a.npm.test": "Expected: 1\nReceived: 2"}))
    texts = [alternative["text"] for alternative in decide(run.state, Reason.STUCK).dump()["alternatives"]]
    assert texts == ["1 is right: change the code", "2 is right: change the expectation"]


@pytest.mark.parametrize("failing", [(), ("a.x.y",)])
def test_rewritten_file_is_the_pattern_whether_or_not_the_same_rules_fail(failing: tuple[str, ...]) -> None:
    run = ScriptedRun(max_iterations=9).evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE, rewrites=6, rewritten="shop.py").evaluate(*failing, message="2")
    assert describe_pattern(run.state) == "rewriting: shop.py was written 6 times in one iteration"


def test_change_of_an_escalation_is_in_the_result() -> None:
    run = ScriptedRun(max_iterations=1).evaluate("a.x.y")
    decision = decide(run.state, Reason.ITERATION_LIMIT).dump()
    decision["context"]["diff"] = "+ a line"
    run.record(Kind.STOPPED, reason="iteration_limit", decision=decision)
    assert build_run_result(run)["decision"]["context"]["diff"] == "+ a line"


def test_feedback_is_as_long_as_the_setting_says() -> None:
    names = [f"a.x.y{number}" for number in range(3)]
    run = ScriptedRun(*map(make_rule, names), control=IterationControl(feedback_max_length=30))
    run.evaluate(*names, message="m" * 99)
    items = decide(run.state, None).dump()["feedback"]["actionable_items"]
    assert [len(item) for item in items] == [30]


def test_question_if_only_the_agent_is_not_satisfied() -> None:
    state = ScriptedRun().evaluate().evaluate().state.replace(exit_signal=False)
    question = ask_question(state, Reason.ITERATION_LIMIT)
    assert question == "Every rule passes, and the agent says that it is not done: what is missing?"


def test_question_about_a_forbidden_thing_names_it() -> None:
    run = ScriptedRun(make_rule("a.no.secret", must_not=True), make_rule()).evaluate("a.no.secret", "a.x.y")
    question = ask_question(run.state, Reason.MUST_NOT)
    assert question == "How did a.no.secret (what a.no.secret asks for) come about, and is it undone?"


def test_question_about_a_claim_quotes_it() -> None:
    claim = Blocked(rule="a.x.y", reason="it\ncontradicts b.x.y\x1b[2K" + "!" * 999)
    state = ScriptedRun().state.replace(blocked=claim)
    question = ask_question(state, Reason.BLOCKED)
    assert question.startswith("Is the agent right that a.x.y cannot be met (it !!!")
    assert len(question) == 400


def test_question_without_a_failing_rule() -> None:
    assert ask_question(ScriptedRun().state, Reason.STUCK) == "What does the agent not know about the rule that fails?"


# -- results

PINNED = [
    "schema_version", "run_id", "task_alias", "status", "stop", "iteration", "max_iterations", "phase", "score",
    "threshold", "artifact_status", "rules", "failed", "warnings", "regressions", "void", "findings", "best",
    "distance_to_success", "usage", "decision", "history",
]  # fmt: skip


def make_runs() -> list[ScriptedRun]:
    fresh = ScriptedRun()
    going_on = ScriptedRun().evaluate("a.x.y")
    succeeded = ScriptedRun().evaluate().evaluate().finish()
    stopped = ScriptedRun(max_iterations=1).evaluate(
        "a.x.y", void=True, findings=[{"kind": "test_deletion", "path": "t.py"}]
    )
    return [fresh, going_on, succeeded, stopped.finish()]


def test_every_result_has_every_key_and_is_json() -> None:
    for run in make_runs():
        result = build_run_result(run)
        assert [name for name in PINNED if name not in result] == []
        assert json.loads(json.dumps(result)) == result
        assert list(result["stop"]) == ["passed", "reason"]
        assert list(result["rules"]) == ["total", "passed"]
        assert result["best"] is None or list(result["best"]) == ["iteration", "score"]
        assert list(result["usage"]) == ["tokens", "cost_usd", "seconds"]


def test_result_of_a_success() -> None:
    result = build_run_result(ScriptedRun().evaluate().evaluate(seconds=1.5).finish())
    assert {name: result[name] for name in ("schema_version", "status", "stop", "iteration", "phase", "score")} == {
        "schema_version": 1, "status": "completed", "stop": {"passed": True, "reason": "threshold_reached"},
        "iteration": 1, "phase": "B", "score": 1.0,
    }  # fmt: skip
    assert (result["threshold"], result["rules"]) == (0.9, {"total": 2, "passed": 2})
    assert (result["best"], result["distance_to_success"]) == ({"iteration": 1, "score": 1.0}, None)
    assert result["usage"] == {"tokens": None, "cost_usd": None, "seconds": 1.5}
    assert result["decision"]["action"] == "proceed"
    assert result["history"] == ".loop/it/history.jsonl"
    assert result["budgets"]["usd"] == {"used": None, "limit": 25.0}


def test_result_of_a_failure() -> None:
    rules = [make_rule("a.x.y"), make_rule("a.x.z"), make_rule("a.x.w", WARN)]
    run = ScriptedRun(*rules, max_iterations=2).evaluate("a.x.y").evaluate("a.x.y", "a.x.z", "a.x.w", message="other")
    result = build_run_result(run.finish())
    assert (result["failed"], result["warnings"], result["regressions"]) == (
        ["a.x.y", "a.x.z"], ["a.x.w"], ["a.x.z", "a.x.w"],
    )  # fmt: skip
    assert result["distance_to_success"]["blocking"] == ["a.x.y", "a.x.z"]
    assert result["decision"]["action"] == "escalate"
    assert result["best"] == {"iteration": 1, "score": 0.6}


def test_result_of_a_void_evaluation_names_its_findings() -> None:
    result = build_run_result(make_runs()[-1])
    assert (result["void"], result["stop"]["passed"], result["best"]) == (True, False, None)
    assert result["findings"] == [{"kind": "test_deletion", "path": "t.py", "rule": "", "detail": ""}]


def test_result_of_an_active_run_has_the_recorded_decision() -> None:
    run = ScriptedRun().evaluate("a.x.y", decision={"action": "retry"}).advance_to(Kind.REFINEMENT_DONE)
    assert build_run_result(run)["decision"] == {"action": "retry"}
    assert build_run_result(ScriptedRun())["decision"] is None
    assert build_run_result(ScriptedRun().evaluate("a.x.y", decision="nonsense"))["decision"] is None


def test_evaluation_of_another_tool_has_no_number_of_rules() -> None:
    run = ScriptedRun().evaluate("a.x.y", total=0, passing=0)
    assert build_run_result(run)["rules"] == {"total": 1, "passed": 0}
    assert build_run_result(ScriptedRun())["rules"] == {"total": 1, "passed": 0}
    assert run.state.phase is Phase.A
