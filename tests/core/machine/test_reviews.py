"""Reviews by a person of work that passes: the answer is an event, and decides."""

from __future__ import annotations

import pytest

from pytest_loop.core.judging.critique import build_critique, render_critique
from pytest_loop.core.machine.run_machine import RUN_MACHINE, IllegalTransition
from pytest_loop.core.model.vocabulary import Kind, Reason, ReviewStatus
from pytest_loop.core.reporting.decision import decide
from pytest_loop.core.reporting.outcome import build_result
from tests.core.scripted_run import ScriptedRun

REVIEWS = ("approve", "reject", "pending")


def decide_after_rounds(*rounds: str, max_iterations: int = 3) -> list[str]:
    """Return the action after each attempt: `fail`, `pass`, or the status of a review."""
    run = ScriptedRun(max_iterations=max_iterations)
    actions = []
    for attempt in rounds:
        run.evaluate(*(["a.x.y"] if attempt == "fail" else []))
        if attempt != "fail":
            run.advance_to(Kind.STOPPED)
        if attempt in REVIEWS:
            run.record(Kind.REVIEW_DONE, status=attempt, feedback="shorter")
        decision = decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump()
        actions.append(f"{decision['action']} {decision.get('iteration', '')}".strip())
    return actions


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (["fail"], ["retry 2"]),
        (["fail", "fail"], ["retry 2", "retry 3"]),
        (["fail", "fail", "fail"], ["retry 2", "retry 3", "escalate 3"]),
        (["fail", "fail", "approve"], ["retry 2", "retry 3", "proceed"]),
        (["fail", "fail", "pass"], ["retry 2", "retry 3", "proceed"]),
        (["reject"], ["retry 2"]),
        (["reject", "approve"], ["retry 2", "proceed"]),
        (["fail", "fail", "reject"], ["retry 2", "retry 3", "escalate 3"]),
        (["pending"], ["hold"]),
        (["fail", "fail", "pending"], ["retry 2", "retry 3", "escalate 3"]),
    ],
    ids=" ".join,
)
def test_action_follows_from_tests_and_reviews(rounds: list[str], expected: list[str]) -> None:
    assert decide_after_rounds(*rounds) == expected


def test_rejected_result_is_no_success_and_its_feedback_is_the_critique() -> None:
    run = (
        ScriptedRun()
        .evaluate()
        .advance_to(Kind.STOPPED)
        .record(Kind.REVIEW_DONE, status="reject", feedback="it is too long")
    )
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    feedback = decide(run.state, None).dump()["feedback"]
    assert feedback == {
        "summary": "the review asks for something else",
        "actionable_items": ["it is too long"],
        "priority": "medium",
    }
    critique = build_critique(run.state.criteria, run.state.evaluation, (), 2_000, run.state.signals.review)
    assert [issue.rule_id for issue in critique.issues] == ["the review"]
    assert "it is too long" in render_critique(critique)
    run.evaluate().advance_to(Kind.STOPPED)
    assert run.state.signals.review is None
    assert build_result(run.finish().state, [], "")["status"] == "completed"


def test_rejection_without_feedback_is_reported() -> None:
    run = ScriptedRun().evaluate().advance_to(Kind.STOPPED).record(Kind.REVIEW_DONE, status="reject")
    critique = build_critique(run.state.criteria, run.state.evaluation, review=run.state.signals.review)
    assert critique.issues[0].problem == "a person does not accept it, and did not say why"
    assert decide(run.state, None).dump()["feedback"]["actionable_items"] == []


def test_rejections_do_not_count_as_stagnation() -> None:
    run = ScriptedRun(max_iterations=9)
    for _ in range(4):
        run.evaluate().advance_to(Kind.STOPPED).record(Kind.REVIEW_DONE, status="reject", feedback="again")
    assert (run.state.iteration, RUN_MACHINE.find_stop_reason(run.state)) == (4, None)


def test_outstanding_review_holds_the_run_and_is_requested_again() -> None:
    run = ScriptedRun().evaluate().advance_to(Kind.STOPPED).record(Kind.REVIEW_DONE, status="pending")
    decision = decide(run.state, RUN_MACHINE.find_stop_reason(run.state)).dump()
    assert (decision["action"], decision["waiting_for"]) == ("hold", ["review"])
    assert decision["question"] == "The review is outstanding: is it done?"
    run.finish()
    assert (run.state.status.value, run.state.stop.reason) == ("stopped", "unconfirmed")
    assert build_result(run.state, [], "")["review"] == {"status": "pending", "feedback": ""}
    run.record(Kind.LIMITS_RAISED).evaluate().advance_to(Kind.STOPPED)
    assert (run.state.signals.review, RUN_MACHINE.find_stop_reason(run.state)) == (None, Reason.THRESHOLD_REACHED)


@pytest.mark.parametrize("failing", [(), ("a.x.y",)])
def test_only_a_passing_result_is_reviewed_and_only_once(failing: tuple[str, ...]) -> None:
    run = ScriptedRun().evaluate(*failing)
    if not failing:
        run.advance_to(Kind.STOPPED).record(Kind.REVIEW_DONE, status=ReviewStatus.APPROVE.value)
    with pytest.raises(IllegalTransition, match="review_done cannot happen"):
        run.record(Kind.REVIEW_DONE, status="approve")
