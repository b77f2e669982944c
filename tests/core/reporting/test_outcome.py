"""What a run came to: for machines, for reports, and for the person who has to decide."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Phase, Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import Attempt, Blocked
from pytest_loop.core.model.vocabulary import Kind, Reason
from pytest_loop.core.reporting.outcome import (
    ArtifactStatus,
    ask_question,
    build_result,
    compute_distance,
    decide,
    describe_pattern,
    get_artifact_status,
    render_attempt,
    report_budget,
)

if TYPE_CHECKING:
    from tests.core.conftest import Story

Tell = Callable[..., "Story"]
Make = Callable[..., RunRule]
WARN = Severity.WARN


def the_result(story: Story) -> dict[str, Any]:
    return build_result(story.state, story.events, ".loop/it/history.jsonl")


# -- the artifact


def test_an_artifact_is_evaluated_only_until_it_changes(tell: Tell) -> None:
    story = tell()
    assert get_artifact_status(story.state) is ArtifactStatus.NOT_CREATED
    assert get_artifact_status(story.does(Kind.ARTIFACT_CREATED).state) is ArtifactStatus.UNEVALUATED
    assert get_artifact_status(story.judged("a.x.y").state) is ArtifactStatus.EVALUATED
    assert get_artifact_status(story.does(Kind.REFINEMENT_DONE).state) is ArtifactStatus.STALE


def test_a_refinement_that_changes_nothing_leaves_the_artifact_evaluated(tell: Tell) -> None:
    story = tell().judged("a.x.y")
    story.does(Kind.REFINEMENT_DONE, artifact_hash=story.state.progress.artifact_hash)
    assert get_artifact_status(story.state) is ArtifactStatus.EVALUATED


def test_a_stop_after_refine_has_no_final_score(tell: Tell) -> None:
    """Vector 10."""
    story = tell(max_completed_phase_seconds=600).judged("a.x.y").does(Kind.REFINEMENT_DONE, seconds=624).to_the_end()
    found = the_result(story)
    assert story.state.stop.reason == "budget_exceeded"
    assert (found["artifact_status"], found["score"], found["last_evaluated_score"]) == ("stale", None, 0)
    assert found["distance_to_success"] is None
    assert (found["current_step"], found["iteration"]) == ("REFINE", 1)


def test_a_score_of_phase_a_is_not_the_score_of_a_run_in_b(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("b.x.y", check="a sentence")).does(Kind.ARTIFACT_CREATED, usage={"cost_usd": 30})
    found = the_result(story.judged().to_the_end())
    assert (found["phase"], found["score"], found["last_evaluated_score"]) == ("B", None, 1)


# -- the distance


@pytest.mark.parametrize(
    ("failing", "expected"),
    [
        (["b.x.y0", "b.x.y1", "b.x.y2"], {"score": 0.75, "gap": 0.15, "blocking": [], "rules_passed": 10}),
        (["b.x.light"], {"score": 1.0, "gap": 0.0, "blocking": ["b.x.light"], "rules_passed": 12}),
    ],
)
def test_the_distance_to_success(tell: Tell, rule: Make, failing: list[str], expected: dict[str, Any]) -> None:
    """Vector 8."""
    rules = [rule("a.x.y", WARN), *(rule(f"b.x.y{number}", WARN) for number in range(11)), rule("b.x.light", weight=0)]
    story = tell(*rules).judged().judged(*failing)
    assert compute_distance(story.state) == {"threshold": 0.9, "rules_total": 13, **expected}


def test_a_success_has_no_distance(tell: Tell) -> None:
    assert compute_distance(tell().judged().judged().to_the_end().state) is None
    assert compute_distance(tell().state) is None


# -- the budget


def test_the_report_of_a_budget_says_by_how_much_it_was_exceeded(tell: Tell) -> None:
    """Vector 9."""
    story = tell(max_completed_phase_seconds=600).does(Kind.ARTIFACT_CREATED, seconds=200).judged("a.x.y", seconds=424)
    assert report_budget(story.state) == {
        "completed_phase_seconds": 624,
        "max_completed_phase_seconds": 600,
        "overshoot_seconds": 24,
        "last_completed_step": "EVALUATE",
    }


def test_without_a_limit_nothing_is_exceeded(tell: Tell) -> None:
    report = report_budget(tell().state)
    assert (report["overshoot_seconds"], report["last_completed_step"]) == (None, "")


# -- decisions


def test_three_rounds_are_two_retries_and_an_escalation(tell: Tell) -> None:
    """Vector 14."""
    story, actions = tell(max_iterations=3), []
    for number in (1, 2, 3):
        story.judged("a.x.y", message=str(number))
        made = decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump()
        actions.append((made["action"], made.get("iteration")))
    assert actions == [("retry", 2), ("retry", 3), ("escalate", None)]


def test_success_is_tested_before_the_cap(tell: Tell) -> None:
    """Vector 14."""
    story = tell(max_iterations=3).judged("a.x.y", message="1").judged("a.x.y", message="2").judged().judged()
    assert story.state.iteration == 3
    assert decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump() == {
        "action": "proceed", "task_id": "it", "message": "done: threshold_reached",
    }  # fmt: skip


def test_confidence_is_no_pass(tell: Tell) -> None:
    """Vector 13: what an agent believes of itself ends nothing; a pass does."""
    story = tell().does(Kind.ARTIFACT_CREATED, exit_signal=True, confidence=0.95).judged("a.x.y")
    assert decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump()["action"] == "retry"
    story.judged().judged()
    assert decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump()["action"] == "proceed"


def test_phase_a_passes_and_nobody_has_to_try_again(tell: Tell) -> None:
    story = tell().judged()
    assert decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump() == {
        "action": "proceed", "task_id": "it", "message": "phase A passes: phase B decides",
    }  # fmt: skip


def test_a_retry_tells_what_to_mend(tell: Tell, rule: Make) -> None:
    story = tell(*(rule(f"a.x.y{number}") for number in range(7)))
    story.judged(*(f"a.x.y{number}" for number in range(7)), message="m" * 999)
    feedback = decide(story.state, None).dump()["feedback"]
    assert (feedback["summary"], feedback["priority"], len(feedback["actionable_items"])) == (
        "7 rules to mend",
        "high",
        2,
    )
    assert feedback["actionable_items"][0].startswith("a.x.y0: a.x.y0: mmm")
    assert max(map(len, feedback["actionable_items"])) == 200


def test_a_retry_for_warnings_has_a_low_priority(tell: Tell, rule: Make) -> None:
    story = tell(rule("a.x.y", WARN)).judged("a.x.y")
    assert decide(story.state, None).dump()["feedback"]["priority"] == "low"


def test_a_retry_may_be_needed_although_nothing_fails(tell: Tell) -> None:
    story = tell().does(Kind.ARTIFACT_CREATED, exit_signal=False).judged().judged()
    assert decide(story.state, None).dump()["feedback"]["summary"] == "nothing fails, and yet it is not done"
    assert decide(tell().state, None).dump()["feedback"]["actionable_items"] == []


def test_a_rule_to_confirm_holds_the_run(tell: Tell, rule: Make) -> None:
    story = tell(rule(), rule("a.manual.x")).judged(assumed=("a.manual.x",)).until(Kind.STOPPED)
    assert decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump() == {
        "action": "hold", "task_id": "it", "waiting_for": ["a.manual.x"], "question": "Is it so: a.manual.x (what a.manual.x asks for)?",
    }  # fmt: skip
    assert decide(tell().state, Reason.UNCONFIRMED).dump()["waiting_for"] == []


def test_an_escalation_tells_the_attempts_the_pattern_and_asks_one_question(tell: Tell) -> None:
    story = tell(max_iterations=2).judged("a.x.y", message="one").judged("a.x.y", message="two")
    assert decide(story.state, RUN_MACHINE.find_stop_reason(story.state)).dump() == {
        "action": "escalate",
        "task_id": "it",
        "context": {
            "attempts_summary": [
                "iteration 1, phase A: 0 fail; open: a.x.y",
                "iteration 2, phase A: 0 fail; open: a.x.y",
            ],
            "pattern_detected": "same failure: the same rules fail for 2 iterations, in different ways",
        },
        "question": "Is another round worth it, or is a.x.y asking for the wrong thing?",
    }


# -- in words


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "iteration 1, phase A: 0.667 fail"),
        ({"passed": True}, "iteration 1, phase A: 0.667 pass"),
        ({"passed": True, "void": True}, "iteration 1, phase A: 0.667 void"),
        ({"mended": 2}, "iteration 1, phase A: 0.667 fail; 2 mended, 0 broken"),
        (
            {"open": ("x\x1b[2K", "y"), "unmet": 2, "broken": 1},
            "iteration 1, phase A: 0.667 fail; 0 mended, 1 broken; open: , y",
        ),
        ({"open": tuple("abcde"), "unmet": 9}, "iteration 1, phase A: 0.667 fail; open: a, b, c and 6 more"),
    ],
)
def test_an_attempt_in_one_line(fields: dict[str, Any], line: str) -> None:
    assert (
        render_attempt(
            Attempt.model_validate({"iteration": 1, "phase": "A", "score": 2 / 3, "passed": False, **fields})
        )
        == line
    )


def test_what_attempts_have_in_common(tell: Tell, rule: Make) -> None:
    rules = [rule(f"a.x.{letter}") for letter in "pqr"]

    def after(*rounds: tuple[str, str, str]) -> str:
        """Each round: the version, the rules that fail, and what they say."""
        story = tell(*rules, max_iterations=9)
        for version, failing, message in rounds:
            story.until(Kind.ARTIFACT_CREATED, Kind.REFINEMENT_DONE)
            story.does(next(iter(story.todo)), artifact_hash=version * 64)
            story.judged(*(f"a.x.{letter}" for letter in failing), message=message)
        return describe_pattern(story.state)

    assert describe_pattern(tell().state) == "nothing was judged"
    assert after(("1", "p", "m")) == "one attempt only"
    assert (
        after(("1", "p", "m"), ("2", "p", "m"))
        == "same failure: the same rules fail for 2 iterations, with the same message"
    )
    assert (
        after(("1", "p", "m"), ("2", "p", "n"))
        == "same failure: the same rules fail for 2 iterations, in different ways"
    )
    assert after(("1", "p", "m"), ("2", "q", "m"), ("1", "p", "m")) == "oscillation: edits undo each other"
    assert after(("1", "pq", "m"), ("1", "p", "m")) == "no change: the last edit changed nothing"
    assert after(("1", "p", "m"), ("2", "q", "m")) == "moving failure: what is mended breaks something else"
    assert after(("1", "p", "m"), ("2", "pq", "m")) == "moving failure: edits break what passed before"
    assert after(("1", "pq", "m"), ("2", "p", "m")) == "partial gain: some rules were mended, others are left"
    assert after(("1", "pq", "m"), ("2", "", "m")) == "nothing fails any more"


@pytest.mark.parametrize(
    ("reason", "asked"),
    [
        (Reason.MUST_NOT, "How did the forbidden thing come about, and is it undone?"),
        (Reason.BLOCKED, "What does the agent not know about a.x.y?"),
        (Reason.UNCONFIRMED, "The review is outstanding: is it done?"),
        (Reason.USER_STOP, "What should be different next time?"),
        (Reason.STUCK, "What does the agent not know about a.x.y?"),
        (Reason.SAME_ERROR, "What does the agent not know about a.x.y?"),
        (Reason.THRASHING, "Which of the two versions is right about a.x.y?"),
        (Reason.STAGNATION, "Is a.x.y worth more rounds, or is it good enough?"),
        (Reason.BUDGET_EXCEEDED, "Is the result worth a larger budget?"),
        (Reason.ITERATION_LIMIT, "Is another round worth it, or is a.x.y asking for the wrong thing?"),
        (Reason.PHASE_ERROR, "Why does the agent not answer as it should?"),
    ],
)
def test_the_one_question_for_a_person(tell: Tell, reason: Reason, asked: str) -> None:
    assert ask_question(tell().judged("a.x.y").state, reason) == asked


def test_where_an_agent_alone_is_not_satisfied_it_is_asked_what_is_missing(tell: Tell) -> None:
    state = tell().judged().judged().state.replace(exit_signal=False)
    asked = ask_question(state, Reason.ITERATION_LIMIT)
    assert asked == "Every rule passes, and the agent says that it is not done: what is missing?"


def test_the_question_about_a_claim_quotes_it(tell: Tell) -> None:
    claim = Blocked(rule="a.x.y", reason="it\ncontradicts b.x.y\x1b[2K" + "!" * 999)
    state = tell().state.replace(blocked=claim)
    asked = ask_question(state, Reason.BLOCKED)
    assert asked.startswith("Is the agent right that a.x.y cannot be met (it !!!")
    assert len(asked) == 400


def test_a_question_about_nothing_in_particular(tell: Tell) -> None:
    assert ask_question(tell().state, Reason.STUCK) == "What does the agent not know about the rule that fails?"


# -- for machines

PINNED = [
    "schema_version", "run_id", "task_alias", "status", "stop", "iteration", "max_iterations", "phase", "score",
    "threshold", "artifact_status", "rules", "failed", "warnings", "regressions", "void", "findings", "best",
    "distance_to_success", "usage", "decision", "history",
]  # fmt: skip


def stories(tell: Tell) -> list[Story]:
    fresh = tell()
    going_on = tell().judged("a.x.y")
    succeeded = tell().judged().judged().to_the_end()
    stopped = tell(max_iterations=1).judged("a.x.y", void=True, findings=[{"kind": "test_deletion", "path": "t.py"}])
    return [fresh, going_on, succeeded, stopped.to_the_end()]


def test_every_result_has_every_key_and_is_json(tell: Tell) -> None:
    for story in stories(tell):
        found = the_result(story)
        assert [name for name in PINNED if name not in found] == []
        assert json.loads(json.dumps(found)) == found
        assert list(found["stop"]) == ["passed", "reason"]
        assert list(found["rules"]) == ["total", "passed"]
        assert found["best"] is None or list(found["best"]) == ["iteration", "score"]
        assert list(found["usage"]) == ["tokens", "cost_usd", "seconds"]


def test_the_result_of_a_success(tell: Tell) -> None:
    found = the_result(tell().judged().judged(seconds=1.5).to_the_end())
    assert {name: found[name] for name in ("schema_version", "status", "stop", "iteration", "phase", "score")} == {
        "schema_version": 1, "status": "completed", "stop": {"passed": True, "reason": "threshold_reached"},
        "iteration": 1, "phase": "B", "score": 1.0,
    }  # fmt: skip
    assert (found["threshold"], found["rules"]) == (0.9, {"total": 2, "passed": 2})
    assert (found["best"], found["distance_to_success"]) == ({"iteration": 1, "score": 1.0}, None)
    assert found["usage"] == {"tokens": None, "cost_usd": None, "seconds": 1.5}
    assert found["decision"]["action"] == "proceed"
    assert found["history"] == ".loop/it/history.jsonl"
    assert found["budgets"]["usd"] == {"used": None, "limit": 25.0}


def test_the_result_of_a_failure(tell: Tell, rule: Make) -> None:
    rules = [rule("a.x.y"), rule("a.x.z"), rule("a.x.w", WARN)]
    story = tell(*rules, max_iterations=2).judged("a.x.y").judged("a.x.y", "a.x.z", "a.x.w", message="other")
    found = the_result(story.to_the_end())
    assert (found["failed"], found["warnings"], found["regressions"]) == (
        ["a.x.y", "a.x.z"], ["a.x.w"], ["a.x.z", "a.x.w"],
    )  # fmt: skip
    assert found["distance_to_success"]["blocking"] == ["a.x.y", "a.x.z"]
    assert found["decision"]["action"] == "escalate"
    assert found["best"] == {"iteration": 1, "score": 0.6}


def test_the_result_of_a_void_evaluation_names_what_was_found(tell: Tell) -> None:
    found = the_result(stories(tell)[-1])
    assert (found["void"], found["stop"]["passed"], found["best"]) == (True, False, None)
    assert found["findings"] == [{"kind": "test_deletion", "path": "t.py", "rule": "", "detail": ""}]


def test_a_run_that_goes_on_gives_the_decision_that_was_written_down(tell: Tell) -> None:
    story = tell().judged("a.x.y", decision={"action": "retry"}).until(Kind.REFINEMENT_DONE)
    assert the_result(story)["decision"] == {"action": "retry"}
    assert the_result(tell())["decision"] is None
    assert the_result(tell().judged("a.x.y", decision="nonsense"))["decision"] is None


def test_an_evaluation_of_another_tool_does_not_say_how_many_rules_there_are(tell: Tell) -> None:
    story = tell().judged("a.x.y", total=0, passing=0)
    assert the_result(story)["rules"] == {"total": 1, "passed": 0}
    assert the_result(tell())["rules"] == {"total": 1, "passed": 0}
    assert story.state.phase is Phase.A
