"""The closing verdict of a run, and its evidence."""

from __future__ import annotations

import json

import pytest

from pytest_loop.core.machine.breakers import count_repetitions
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.rules import Proof, Severity
from pytest_loop.core.model.run_setup import ConfirmedDraft
from pytest_loop.core.model.vocabulary import Kind, Target
from pytest_loop.core.reporting.closing_verdict import (
    Closing,
    build_verdict,
    count_evidence,
    decide_closing,
    list_judged_rules,
    render_status_block,
)
from pytest_loop.core.reporting.outcome import build_result
from tests.core.scripted_run import ScriptedRun, make_rule


@pytest.mark.parametrize(
    ("proofs", "reversal", "word", "because"),
    [
        ([Proof.EXECUTION], "2A", Closing.SHIP, "every rule was verified"),
        ([Proof.OBSERVATION, Proof.MEASUREMENT], "2B", Closing.SHIP, "every rule was verified"),
        ([Proof.EXECUTION], "1", Closing.MONITOR, "it passes, and it is hard to take back"),
        ([Proof.EXECUTION, Proof.REVIEW], "2A", Closing.MONITOR, "it passes, and a.x.1 was judged by reading only"),
        ([Proof.REVIEW, Proof.REVIEW], "2A", Closing.MONITOR, "it passes, and a.x.0 and 1 more were judged by reading"),
    ],
)
def test_verdict_of_a_success_depends_on_proof_and_reversal(
    proofs: list[Proof], reversal: str, word: Closing, because: str
) -> None:
    rules = [make_rule(f"a.x.{number}", proof=proof) for number, proof in enumerate(proofs)]
    run = ScriptedRun(*rules, draft=ConfirmedDraft(reversal=reversal)).evaluate().finish()
    closing, reason_text = decide_closing(run.state)
    assert (closing, reason_text[: len(because)]) == (word, because)


def test_run_without_success_needs_research() -> None:
    run = ScriptedRun(max_iterations=1).evaluate("a.x.y").finish()
    assert decide_closing(run.state) == (Closing.RESEARCH, "it is not done (iteration_limit)")
    unconfirmed = ScriptedRun(make_rule(), make_rule("a.manual.x")).evaluate(assumed=("a.manual.x",)).finish()
    assert decide_closing(unconfirmed.state) == (Closing.RESEARCH, "not confirmed yet: a.manual.x")


def test_success_without_rules_needs_research() -> None:
    run = ScriptedRun(make_rule("b.x.y", severity=Severity.INFO)).evaluate().finish()
    bare = run.state.model_copy(update={"criteria": run.state.criteria.model_copy(update={"rules": ()})})
    assert decide_closing(type(bare).model_validate(bare.model_dump())) == (Closing.RESEARCH, "no rule verifies it")


def test_success_with_a_warning_needs_monitoring() -> None:
    rules = [make_rule("a.x.y"), make_rule("b.x.y", Severity.WARN, weight=9)]
    run = ScriptedRun(*rules).evaluate().evaluate("b.x.y").finish()
    assert run.state.stop.reason == "no_major_issues"
    assert decide_closing(run.state) == (Closing.MONITOR, "nothing blocks, and b.x.y does not pass")


def test_success_after_an_edit_of_what_judges_needs_monitoring() -> None:
    run = ScriptedRun(max_iterations=1).evaluate("a.x.y").finish()
    run.record(Kind.ANSWERED, text="change it", unseal=["/tests/test_x.py"], max_iterations=2).evaluate().finish()
    because = "it passes, and an answer allowed edits of tests/test_x.py, which judges"
    assert decide_closing(run.state) == (Closing.MONITOR, because)


def test_success_needs_monitoring_if_nobody_judges_a_rule_of_the_project() -> None:
    run = ScriptedRun(draft=ConfirmedDraft(unjudged=("a.must-not.x", "a.must-not.y"))).evaluate().finish()
    assert decide_closing(run.state) == (Closing.MONITOR, "it passes, and nothing judged a.must-not.x and 1 more")


def test_success_needs_monitoring_if_no_failing_test_named_the_new_code() -> None:
    run = ScriptedRun(draft=ConfirmedDraft(unmeasured=("receipt",))).evaluate().finish()
    assert decide_closing(run.state) == (Closing.MONITOR, "it passes, and no test that failed names receipt")


@pytest.mark.parametrize(("confirmed_by", "word"), [("--loop-yes", Closing.MONITOR), ("terminal", Closing.SHIP)])
def test_success_by_tests_that_an_agent_wrote_and_no_person_read_needs_monitoring(
    confirmed_by: str, word: Closing
) -> None:
    draft = ConfirmedDraft(confirmed_by=confirmed_by)
    run = ScriptedRun(draft=draft, written_tests=("tests/test_csv.py",)).evaluate().finish()
    assert decide_closing(run.state)[0] is word


def test_success_with_files_that_are_not_part_of_the_change_needs_monitoring() -> None:
    run = ScriptedRun().evaluate().finish()
    finding = SealFinding(kind="not verified", path="big.db", detail="it changed")
    assert run.state.evaluation is not None
    evaluation = run.state.evaluation.model_copy(update={"findings": (finding,)})
    because = "it passes, and big.db is not verified: it changed"
    assert decide_closing(run.state.replace(evaluation=evaluation)) == (Closing.MONITOR, because)


def test_success_without_an_edit_had_nothing_to_do() -> None:
    start = {"target": Target.WORKSPACE, "artifact_hash": "0" * 64}
    word, because = decide_closing(ScriptedRun(**start).evaluate().finish().state)
    assert (word, because[:24]) == (Closing.SHIP, "there was nothing to do:")
    worked = ScriptedRun(**start).evaluate("a.x.y").evaluate().finish()
    assert decide_closing(worked.state)[1].startswith("every rule was verified")


def test_refactoring_needs_monitoring() -> None:
    run = ScriptedRun(target=Target.WORKSPACE, artifact_hash="0" * 64, edits_first=True).evaluate().finish()
    assert decide_closing(run.state)[0] is Closing.MONITOR


def test_guards_are_no_evidence_for_the_goal() -> None:
    run = ScriptedRun(make_rule(), make_rule("a.guard.x", weight=0, guard=True)).evaluate().finish()
    assert [rule.id for rule, _ in list_judged_rules(run.state)] == ["a.x.y"]


def test_evidence_is_counted_by_proof_without_info_rules() -> None:
    rules = [
        make_rule("a.x.run"),
        make_rule("a.x.read", proof=Proof.REVIEW),
        make_rule("a.x.asked", proof=Proof.REVIEW),
        make_rule("a.x.told", severity=Severity.INFO),
        make_rule("a.x.seen", proof=Proof.OBSERVATION),
    ]
    run = ScriptedRun(*rules, max_iterations=1).evaluate("a.x.seen", assumed=("a.x.asked",)).finish()
    assert count_evidence(run.state) == {
        Proof.EXECUTION: (1, 1),
        Proof.OBSERVATION: (0, 1),
        Proof.REVIEW: (1, 1),
        Proof.ASSUMPTION: (0, 1),
    }
    assert build_verdict(run.state)["evidence"]["code review"] == {"passed": 1, "total": 1}
    assert count_evidence(ScriptedRun().state) == {}


def test_result_has_a_verdict_after_the_end() -> None:
    run = ScriptedRun().evaluate()
    assert build_result(run.state, [], "")["verdict"] is None
    result = build_result(run.finish().state, [], "")
    assert result["verdict"]["word"] == "SHIP"
    assert result["draft"]["shape"] == "tool"
    assert result["breakers"]["stuck"] == {"times": 0, "limit": 5}


def test_status_block_has_the_format_of_other_loops() -> None:
    run = ScriptedRun()
    run.evaluate("a.x.y").evaluate("a.x.y")
    begin, signal, criteria, stuck, following, end = render_status_block(run.state, "REFINE\nthen")
    assert (begin, end) == ("---LOOP_STATUS---", "---END_STATUS---")
    assert (signal, stuck, following) == ("EXIT_SIGNAL: false", "STUCK_COUNT: 1", "NEXT: REFINE then")
    assert json.loads(criteria.removeprefix("CRITERIA: ")) == {
        "a.x.y": {"met": False, "verification": "execution output"}
    }
    run.evaluate().finish()
    assert "EXIT_SIGNAL: true" in list(render_status_block(run.state, "nothing"))


def test_breakers_count_up_to_their_limits() -> None:
    run = ScriptedRun(max_iterations=20)
    assert set(count_repetitions(run.state).values()) == {(0, 5), (0, 3), (0, 2)}
    run.evaluate("a.x.y", message="one").evaluate("a.x.y", message="two", rewrites=2)
    assert count_repetitions(run.state) == {
        "stuck": (2, 5),
        "same_error": (1, 3),
        "thrashing": (2, 5),
        "stagnation": (0, 2),
    }


@pytest.mark.parametrize(
    ("reason", "rounds"), [("same_error", 3), ("stuck", 5), ("thrashing", 1)], ids=["same_error", "stuck", "thrashing"]
)
def test_raised_limit_restarts_the_count_of_a_breaker(reason: str, rounds: int) -> None:
    run = ScriptedRun(max_iterations=20)
    for number in range(rounds):
        message = "the same" if reason == "same_error" else f"{'x' * number} {'y' * (9 - number)}"
        run.evaluate("a.x.y", message=message, rewrites=9 if reason == "thrashing" else 0)
    assert run.finish().state.stop.reason == reason
    run.record(Kind.LIMITS_RAISED, max_iterations=21)
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    assert all(times == 0 for times, _ in count_repetitions(run.state).values())


def test_success_of_the_built_in_search_needs_monitoring() -> None:
    run = ScriptedRun(agents=("codex",)).evaluate("a.x.y")  # `resume --agent builtin` keeps the agents of the start
    run.complete(Kind.REFINEMENT_DONE, agent="builtin").evaluate().finish()
    assert decide_closing(run.state)[0] is Closing.MONITOR


def test_built_in_search_that_found_nothing_leaves_the_verdict_to_the_next_agent() -> None:
    run = ScriptedRun(agents=("builtin:60", "codex")).evaluate("a.x.y")
    run.complete(Kind.REFINEMENT_DONE, agent="builtin", artifact_hash=run.state.progress.artifact_hash)
    run.evaluate("a.x.y").complete(Kind.REFINEMENT_DONE, agent="codex").evaluate().finish()
    assert decide_closing(run.state)[0] is Closing.SHIP


def test_run_that_was_not_signed_here_is_at_best_monitored() -> None:
    run = ScriptedRun(target=Target.WORKSPACE, artifact_hash="0" * 64, is_unsigned=True).evaluate().finish()
    assert decide_closing(run.state) == (
        Closing.MONITOR,
        "it passes, and this machine has not signed how the run began",
    )
