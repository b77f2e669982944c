"""What may end a run early where somebody wants that, and what never does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.core.machine.breakers import compute_confidence
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Proof, Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import Breakers
from pytest_loop.core.model.vocabulary import Kind, Reason

if TYPE_CHECKING:
    from tests.core.conftest import Story

Tell = Callable[..., "Story"]
Make = Callable[..., RunRule]
NAMES = [f"a.x.n{number}" for number in range(20)]
FLAT = Breakers(stuck=0, same_error=0, plateau=0.02, diminishing=0.05)
QUIET = Breakers(stuck=0, same_error=0)


def told(tell: Tell, rule: Make, counts: tuple[int, ...], breakers: Breakers = FLAT, **fields: Any) -> Story:
    """Iterations in which so many of twenty rules pass, each failing in words of its own."""
    story = tell(*map(rule, NAMES), max_iterations=9, breakers=breakers, **fields)
    for number, passing in enumerate(counts):
        story.judged(*NAMES[passing:], message=f"{number}")
    return story


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ((10, 10), None),
        ((10, 10, 10), Reason.QUALITY_PLATEAU),
        ((0, 18, 18), None),
        ((0, 0, 0), Reason.QUALITY_PLATEAU),
        ((10, 12, 12), None),
        ((5, 10, 10, 10), Reason.QUALITY_PLATEAU),
    ],
)
def test_two_small_changes_in_a_row_end_a_run_that_is_to_end_so(
    tell: Tell, rule: Make, counts: tuple[int, ...], reason: Reason | None
) -> None:
    assert RUN_MACHINE.find_stop_reason(told(tell, rule, counts).state) is reason
    assert RUN_MACHINE.find_stop_reason(told(tell, rule, counts, QUIET).state) is None, "nobody has switched it on"


def test_a_void_evaluation_is_no_small_change(tell: Tell, rule: Make) -> None:
    story = told(tell, rule, (10, 10)).judged(*NAMES[10:], message="void", void=True)
    assert RUN_MACHINE.find_stop_reason(story.state) is None
    assert RUN_MACHINE.find_stop_reason(story.judged(*NAMES[10:], message="sound").state) is Reason.QUALITY_PLATEAU


def test_the_next_agent_has_its_turn_before_a_flat_score_ends_the_run(tell: Tell, rule: Make) -> None:
    story = told(tell, rule, (10, 10, 10), agents=("one", "two"))
    assert (RUN_MACHINE.find_stop_reason(story.state), story.state.progress.agent_index) == (None, 1)
    for number in (3, 4, 5):
        assert RUN_MACHINE.find_stop_reason(story.state) is None
        story.judged(*NAMES[10:], message=f"{number}")
    assert RUN_MACHINE.find_stop_reason(story.state) is Reason.QUALITY_PLATEAU


def test_a_flat_run_goes_on_where_its_limit_is_raised_and_is_looked_at_anew(tell: Tell, rule: Make) -> None:
    story = told(tell, rule, (10, 10, 10)).to_the_end()
    assert (story.state.stop.reason, story.state.stop.passed) == ("quality_plateau", False)
    story.happens(Kind.LIMITS_RAISED, max_iterations=12)
    assert story.todo == [Kind.CRITIQUE_DONE]
    for number in (3, 4):
        assert RUN_MACHINE.find_stop_reason(story.judged(*NAMES[10:], message=f"{number}").state) is None
    assert RUN_MACHINE.find_stop_reason(story.judged(*NAMES[10:], message="5").state) is Reason.QUALITY_PLATEAU


def unsure(tell: Tell, *rules: RunRule, limit: float = 0.95) -> Story:
    """The second iteration, after an agent has said that it is not done."""
    story = tell(*rules, breakers=Breakers(confidence=limit)).does(Kind.ARTIFACT_CREATED, exit_signal=False)
    return story.judged().judged().does(Kind.REFINEMENT_DONE)


def test_confidence_needs_a_pass(tell: Tell, rule: Make) -> None:
    rules = (rule("a.x.y", weight=97), rule("b.x.y", weight=3))
    assert RUN_MACHINE.find_stop_reason(unsure(tell, *rules).judged("b.x.y").state) is None, (
        "0.97 verified and 97 of 100, but it fails"
    )
    assert RUN_MACHINE.find_stop_reason(unsure(tell, *rules).judged(void=True).state) is None
    assert RUN_MACHINE.find_stop_reason(unsure(tell, *rules).judged().state) is Reason.HIGH_CONFIDENCE


def test_confidence_is_asked_from_the_second_iteration_on(tell: Tell) -> None:
    story = tell(breakers=Breakers(confidence=0.95)).does(Kind.ARTIFACT_CREATED, exit_signal=False).judged().judged()
    assert RUN_MACHINE.find_stop_reason(story.state) is None


def test_what_was_only_read_is_an_opinion(tell: Tell, rule: Make) -> None:
    rules = (rule("a.x.y", weight=9), rule("b.x.y", weight=1, proof=Proof.REVIEW))
    story = unsure(tell, *rules).judged()
    assert story.state.evaluation is not None
    assert float(compute_confidence(story.state, story.state.evaluation)) == 0.9
    assert RUN_MACHINE.find_stop_reason(story.state) is None
    assert RUN_MACHINE.find_stop_reason(unsure(tell, *rules, limit=0.9).judged().state) is Reason.HIGH_CONFIDENCE


def test_rules_that_weigh_nothing_give_no_confidence(tell: Tell, rule: Make) -> None:
    story = unsure(tell, rule("a.x.y", Severity.INFO), rule("b.x.y", Severity.INFO)).judged()
    assert RUN_MACHINE.find_stop_reason(story.state) is None


def test_confidence_does_not_confirm_what_a_person_has_to(tell: Tell, rule: Make) -> None:
    story = unsure(tell, rule(), rule("b.manual.x")).judged(assumed=("b.manual.x",))
    assert RUN_MACHINE.find_stop_reason(story.state) is None


@pytest.mark.parametrize("status", ["reject", "pending"])
def test_confidence_does_not_overrule_a_person(tell: Tell, status: str) -> None:
    story = unsure(tell).judged()
    assert RUN_MACHINE.find_stop_reason(story.state) is Reason.HIGH_CONFIDENCE
    assert RUN_MACHINE.find_stop_reason(story.happens(Kind.REVIEW_DONE, status=status).state) is None


def test_a_threshold_below_what_is_good_is_reached_without_confidence(tell: Tell, rule: Make) -> None:
    rules = (rule("a.x.y", Severity.WARN, weight=2), rule("b.x.y", Severity.WARN, weight=1))
    story = unsure(tell, *rules, limit=0.5)
    payload = story.judgement({"b.x.y": "no"})
    story.until(Kind.EVALUATION_DONE).happens(Kind.EVALUATION_DONE, **payload | {"passed": True})
    assert RUN_MACHINE.find_stop_reason(story.state) is None
