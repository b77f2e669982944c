"""A person is asked whether work that passes is done: the answer is an event, and decides."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.judging.critique import build_critique, render_critique
from pytest_loop.core.machine.run_machine import RUN_MACHINE, IllegalTransition
from pytest_loop.core.model.vocabulary import Kind, Opinion, Reason
from pytest_loop.core.reporting.outcome import build_result, decide

Tell = Any
Make = Any
REVIEWS = ("approve", "reject", "pending")


def actions(tell: Tell, *rounds: str, most: int = 3) -> list[str]:
    """The actions that follow from attempts: `fail`, or `pass` with a review."""
    story = tell(max_iterations=most)
    said = []
    for one in rounds:
        story.judged(*(["a.x.y"] if one == "fail" else []))
        if one != "fail":
            story.until(Kind.STOPPED)
        if one in REVIEWS:
            story.happens(Kind.REVIEW_DONE, status=one, feedback="shorter")
        found = decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump()
        said.append(f"{found['action']} {found.get('iteration', '')}".strip())
    return said


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (["fail"], ["retry 2"]),
        (["fail", "fail"], ["retry 2", "retry 3"]),
        (["fail", "fail", "fail"], ["retry 2", "retry 3", "escalate"]),
        (["fail", "fail", "approve"], ["retry 2", "retry 3", "proceed"]),
        (["fail", "fail", "pass"], ["retry 2", "retry 3", "proceed"]),
        (["reject"], ["retry 2"]),
        (["reject", "approve"], ["retry 2", "proceed"]),
        (["fail", "fail", "reject"], ["retry 2", "retry 3", "escalate"]),
        (["pending"], ["hold"]),
        (["fail", "fail", "pending"], ["retry 2", "retry 3", "escalate"]),
    ],
    ids=" ".join,
)
def test_what_follows_from_tests_and_reviews(tell: Tell, rounds: list[str], expected: list[str]) -> None:
    assert actions(tell, *rounds) == expected


def test_a_rejected_result_is_no_success_and_its_words_are_the_critique(tell: Tell) -> None:
    story = tell().judged().until(Kind.STOPPED).happens(Kind.REVIEW_DONE, status="reject", feedback="it is too long")
    assert story.todo == [Kind.CRITIQUE_DONE]
    feedback = decide(story.state, None).dump()["feedback"]
    assert feedback == {
        "summary": "the review asks for something else",
        "actionable_items": ["it is too long"],
        "priority": "medium",
    }
    made = build_critique(story.state.criteria, story.state.evaluation, (), 2_000, story.state.signals.review)
    assert [issue.rule_id for issue in made.issues] == ["the review"]
    assert "it is too long" in render_critique(made)
    story.judged().until(Kind.STOPPED)
    assert story.state.signals.review is None
    assert build_result(story.to_the_end().state, [], "")["status"] == "completed"


def test_a_rejection_without_words_says_so(tell: Tell) -> None:
    story = tell().judged().until(Kind.STOPPED).happens(Kind.REVIEW_DONE, status="reject")
    made = build_critique(story.state.criteria, story.state.evaluation, review=story.state.signals.review)
    assert made.issues[0].problem == "a person does not accept it, and did not say why"
    assert decide(story.state, None).dump()["feedback"]["actionable_items"] == []


def test_rejections_are_no_stagnation(tell: Tell) -> None:
    story = tell(max_iterations=9)
    for _ in range(4):
        story.judged().until(Kind.STOPPED).happens(Kind.REVIEW_DONE, status="reject", feedback="again")
    assert (story.state.iteration, RUN_MACHINE.find_stop_reason(story.state)) == (4, None)


def test_an_outstanding_review_holds_the_run_and_is_asked_for_again(tell: Tell) -> None:
    story = tell().judged().until(Kind.STOPPED).happens(Kind.REVIEW_DONE, status="pending")
    held = decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump()
    assert (held["action"], held["waiting_for"]) == ("hold", ["review"])
    assert held["question"] == "The review is outstanding: is it done?"
    story.to_the_end()
    assert (story.state.status.value, story.state.stop.reason) == ("stopped", "unconfirmed")
    assert build_result(story.state, [], "")["review"] == {"status": "pending", "feedback": ""}
    story.happens(Kind.LIMITS_RAISED).judged().until(Kind.STOPPED)
    assert (story.state.signals.review, RUN_MACHINE.find_stop_reason(story.state)) == (None, Reason.THRESHOLD_REACHED)


@pytest.mark.parametrize("failing", [(), ("a.x.y",)])
def test_only_what_passes_is_reviewed_and_only_once(tell: Tell, failing: tuple[str, ...]) -> None:
    story = tell().judged(*failing)
    if not failing:
        story.until(Kind.STOPPED).happens(Kind.REVIEW_DONE, status=Opinion.APPROVE.value)
    with pytest.raises(IllegalTransition, match="review_done cannot happen"):
        story.happens(Kind.REVIEW_DONE, status="approve")
