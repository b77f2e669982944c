"""What a run is worth in the end, and what that rests on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pytest_loop.core.machine.breakers import count_repetitions
from pytest_loop.core.model.rules import Proof, Severity
from pytest_loop.core.model.run_state import ConfirmedDraft
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.reporting.closing_verdict import (
    Closing,
    build_verdict,
    count_evidence,
    decide_closing,
    render_status_block,
)
from pytest_loop.core.reporting.outcome import build_result

Tell = Any
Make = Any


@pytest.mark.parametrize(
    ("proofs", "reversal", "word", "because"),
    [
        ([Proof.EXECUTION], "2A", Closing.SHIP, "every rule was verified by something that ran"),
        ([Proof.OBSERVATION, Proof.MEASUREMENT], "2B", Closing.SHIP, "every rule was verified by something that ran"),
        ([Proof.EXECUTION], "1", Closing.MONITOR, "it passes, and it is hard to take back"),
        ([Proof.EXECUTION, Proof.REVIEW], "2A", Closing.MONITOR, "it passes, and a.x.1 was judged by reading only"),
        ([Proof.REVIEW, Proof.REVIEW], "2A", Closing.MONITOR, "it passes, and a.x.0 and 1 more was judged by reading"),
    ],
)
def test_the_closing_word_of_a_success(
    tell: Tell, rule: Make, proofs: list[Proof], reversal: str, word: Closing, because: str
) -> None:
    rules = [rule(f"a.x.{number}", proof=proof) for number, proof in enumerate(proofs)]
    story = tell(*rules, draft=ConfirmedDraft(reversal=reversal)).judged().to_the_end()
    found, why = decide_closing(story.state)
    assert (found, why[: len(because)]) == (word, because)


def test_what_is_not_done_needs_research(tell: Tell, rule: Make) -> None:
    story = tell(max_iterations=1).judged("a.x.y").to_the_end()
    assert decide_closing(story.state) == (Closing.RESEARCH, "it is not done (iteration_limit)")
    held = tell(rule(), rule("a.manual.x")).judged(assumed=("a.manual.x",)).to_the_end()
    assert decide_closing(held.state) == (Closing.RESEARCH, "nobody has confirmed a.manual.x")


def test_a_success_without_rules_is_none_to_rely_on(tell: Tell, rule: Make) -> None:
    story = tell(rule("b.x.y", severity=Severity.INFO)).judged().to_the_end()
    bare = story.state.model_copy(update={"criteria": story.state.criteria.model_copy(update={"rules": ()})})
    assert decide_closing(type(bare).model_validate(bare.model_dump())) == (Closing.RESEARCH, "no rule verifies it")


def test_a_warning_that_is_left_is_to_be_watched(tell: Tell, rule: Make) -> None:
    rules = [rule("a.x.y"), rule("b.x.y", Severity.WARN, weight=9)]
    story = tell(*rules).judged().judged("b.x.y").to_the_end()
    assert story.state.stop.reason == "no_major_issues"
    assert decide_closing(story.state) == (Closing.MONITOR, "nothing blocks, and b.x.y does not pass")


@pytest.mark.parametrize(("says_when", "word"), [(True, Closing.SHIP), (False, Closing.RESEARCH)])
def test_what_passed_before_anything_was_done_says_little_about_the_task(
    tell: Tell, says_when: bool, word: Closing
) -> None:
    draft = ConfirmedDraft(says_when=says_when)
    story = tell(target=Target.WORKSPACE, artifact_hash="0" * 64, draft=draft).judged().to_the_end()
    assert decide_closing(story.state)[0] is word
    worked = tell(target=Target.WORKSPACE, artifact_hash="0" * 64, draft=draft).judged("a.x.y").judged().to_the_end()
    assert decide_closing(worked.state)[0] is Closing.SHIP


def test_evidence_is_counted_by_kind_and_what_is_only_tracked_is_none(tell: Tell, rule: Make) -> None:
    rules = [
        rule("a.x.run"),
        rule("a.x.read", proof=Proof.REVIEW),
        rule("a.x.asked", proof=Proof.REVIEW),
        rule("a.x.told", severity=Severity.INFO),
        rule("a.x.seen", proof=Proof.OBSERVATION),
    ]
    story = tell(*rules, max_iterations=1).judged("a.x.seen", assumed=("a.x.asked",)).to_the_end()
    assert count_evidence(story.state) == {
        Proof.EXECUTION: (1, 1),
        Proof.OBSERVATION: (0, 1),
        Proof.REVIEW: (1, 1),
        Proof.ASSUMPTION: (0, 1),
    }
    assert build_verdict(story.state)["evidence"]["code review"] == {"passed": 1, "total": 1}
    assert count_evidence(tell().state) == {}


def test_the_result_has_the_verdict_when_it_is_over(tell: Tell) -> None:
    story = tell().judged()
    assert build_result(story.state, [], "")["verdict"] is None
    whole = build_result(story.to_the_end().state, [], "")
    assert whole["verdict"]["word"] == "SHIP"
    assert whole["draft"]["shape"] == "tool"
    assert whole["breakers"]["stuck"] == {"times": 0, "limit": 5}


def test_the_status_block_is_one_that_other_loops_can_be_followed_by(tell: Tell) -> None:
    story = tell()
    story.judged("a.x.y").judged("a.x.y")
    begin, signal, criteria, stuck, following, end = render_status_block(story.state, "REFINE\nthen")
    assert (begin, end) == ("---LOOP_STATUS---", "---END_STATUS---")
    assert (signal, stuck, following) == ("EXIT_SIGNAL: false", "STUCK_COUNT: 1", "NEXT: REFINE then")
    assert json.loads(criteria.removeprefix("CRITERIA: ")) == {
        "a.x.y": {"met": False, "verification": "execution output"}
    }
    story.judged().to_the_end()
    assert "EXIT_SIGNAL: true" in list(render_status_block(story.state, "nothing"))


def test_breakers_count_up_to_their_limits(tell: Tell) -> None:
    story = tell(max_iterations=20)
    assert set(count_repetitions(story.state).values()) == {(0, 5), (0, 3), (0, 2)}
    story.judged("a.x.y", message="one").judged("a.x.y", message="two", rewrites=2)
    assert count_repetitions(story.state) == {
        "stuck": (2, 5),
        "same_error": (1, 3),
        "thrashing": (2, 5),
        "stagnation": (0, 2),
    }


@pytest.mark.parametrize(
    ("reason", "rounds"), [("same_error", 3), ("stuck", 5), ("thrashing", 1)], ids=["same_error", "stuck", "thrashing"]
)
def test_a_run_that_a_breaker_has_paused_goes_on_and_counts_anew(tell: Tell, reason: str, rounds: int) -> None:
    story = tell(max_iterations=20)
    for number in range(rounds):
        said = "the same" if reason == "same_error" else f"{'x' * number} {'y' * (9 - number)}"
        story.judged("a.x.y", message=said, rewrites=9 if reason == "thrashing" else 0)
    assert story.to_the_end().state.stop.reason == reason
    story.happens(Kind.LIMITS_RAISED, max_iterations=21)
    assert story.todo == [Kind.CRITIQUE_DONE]
    assert all(times == 0 for times, _ in count_repetitions(story.state).values())
