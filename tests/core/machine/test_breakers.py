"""Breakers that end a run early: plateaus, diminishing returns and confidence."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_loop.core.machine.breakers import compute_confidence
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.rules import Proof, Severity
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_setup import Breakers
from pytest_loop.core.model.vocabulary import Kind, Reason
from tests.core.scripted_run import ScriptedRun, make_rule

NAMES = [f"a.x.n{number}" for number in range(20)]
FLAT = Breakers(stuck=0, same_error=0, plateau=0.02, diminishing=0.05)
QUIET = Breakers(stuck=0, same_error=0)


def make_run_with_passing_counts(counts: tuple[int, ...], breakers: Breakers = FLAT, **fields: Any) -> ScriptedRun:
    """Return a run with one iteration for each number of passing rules, and another message in each."""
    run = ScriptedRun(*map(make_rule, NAMES), max_iterations=9, breakers=breakers, **fields)
    for number, passing in enumerate(counts):
        run.evaluate(*NAMES[passing:], message=f"{number}")
    return run


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
def test_two_small_changes_in_a_row_end_a_run_only_if_switched_on(
    counts: tuple[int, ...], reason: Reason | None
) -> None:
    assert RUN_MACHINE.find_stop_reason(make_run_with_passing_counts(counts).state) is reason
    assert RUN_MACHINE.find_stop_reason(make_run_with_passing_counts(counts, QUIET).state) is None, "it is switched off"


def test_void_evaluation_is_no_small_change() -> None:
    run = make_run_with_passing_counts((10, 10)).evaluate(*NAMES[10:], message="void", void=True)
    assert RUN_MACHINE.find_stop_reason(run.state) is None
    assert RUN_MACHINE.find_stop_reason(run.evaluate(*NAMES[10:], message="sound").state) is Reason.QUALITY_PLATEAU


def test_next_agent_works_before_a_flat_score_ends_the_run() -> None:
    run = make_run_with_passing_counts((10, 10, 10), agents=("one", "two"))
    assert (RUN_MACHINE.find_stop_reason(run.state), run.state.progress.agent_index) == (None, 1)
    for number in (3, 4, 5):
        assert RUN_MACHINE.find_stop_reason(run.state) is None
        run.evaluate(*NAMES[10:], message=f"{number}")
    assert RUN_MACHINE.find_stop_reason(run.state) is Reason.QUALITY_PLATEAU


def test_raised_limit_continues_a_flat_run_and_restarts_the_count() -> None:
    run = make_run_with_passing_counts((10, 10, 10)).finish()
    assert (run.state.stop.reason, run.state.stop.passed) == ("quality_plateau", False)
    run.record(Kind.LIMITS_RAISED, max_iterations=12)
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    for number in (3, 4):
        assert RUN_MACHINE.find_stop_reason(run.evaluate(*NAMES[10:], message=f"{number}").state) is None
    assert RUN_MACHINE.find_stop_reason(run.evaluate(*NAMES[10:], message="5").state) is Reason.QUALITY_PLATEAU


def make_run_with_doubting_agent(*rules: RunRule, limit: float = 0.95) -> ScriptedRun:
    """Return a run in its second iteration, after the agent has reported that it is not done."""
    run = ScriptedRun(*rules, breakers=Breakers(confidence=limit)).complete(Kind.ARTIFACT_CREATED, exit_signal=False)
    return run.evaluate().evaluate().complete(Kind.REFINEMENT_DONE)


def test_confidence_ends_a_run_only_if_it_passes() -> None:
    rules = (make_rule("a.x.y", weight=97), make_rule("b.x.y", weight=3))
    assert RUN_MACHINE.find_stop_reason(make_run_with_doubting_agent(*rules).evaluate("b.x.y").state) is None, (
        "0.97 verified and 97 of 100, but it fails"
    )
    assert RUN_MACHINE.find_stop_reason(make_run_with_doubting_agent(*rules).evaluate(void=True).state) is None
    assert RUN_MACHINE.find_stop_reason(make_run_with_doubting_agent(*rules).evaluate().state) is Reason.HIGH_CONFIDENCE


def test_confidence_counts_from_the_second_iteration() -> None:
    run = (
        ScriptedRun(breakers=Breakers(confidence=0.95))
        .complete(Kind.ARTIFACT_CREATED, exit_signal=False)
        .evaluate()
        .evaluate()
    )
    assert RUN_MACHINE.find_stop_reason(run.state) is None


def test_rules_judged_by_review_lower_the_confidence() -> None:
    rules = (make_rule("a.x.y", weight=9), make_rule("b.x.y", weight=1, proof=Proof.REVIEW))
    run = make_run_with_doubting_agent(*rules).evaluate()
    assert run.state.evaluation is not None
    assert float(compute_confidence(run.state, run.state.evaluation)) == 0.9
    assert RUN_MACHINE.find_stop_reason(run.state) is None
    assert (
        RUN_MACHINE.find_stop_reason(make_run_with_doubting_agent(*rules, limit=0.9).evaluate().state)
        is Reason.HIGH_CONFIDENCE
    )


def test_rules_without_weight_give_no_confidence() -> None:
    run = make_run_with_doubting_agent(make_rule("a.x.y", Severity.INFO), make_rule("b.x.y", Severity.INFO)).evaluate()
    assert RUN_MACHINE.find_stop_reason(run.state) is None


def test_confidence_does_not_replace_a_confirmation() -> None:
    run = make_run_with_doubting_agent(make_rule(), make_rule("b.manual.x")).evaluate(assumed=("b.manual.x",))
    assert RUN_MACHINE.find_stop_reason(run.state) is None


@pytest.mark.parametrize("status", ["reject", "pending"])
def test_confidence_does_not_overrule_a_review(status: str) -> None:
    run = make_run_with_doubting_agent().evaluate()
    assert RUN_MACHINE.find_stop_reason(run.state) is Reason.HIGH_CONFIDENCE
    assert RUN_MACHINE.find_stop_reason(run.record(Kind.REVIEW_DONE, status=status).state) is None


def test_low_score_above_the_threshold_gives_no_confidence() -> None:
    rules = (make_rule("a.x.y", Severity.WARN, weight=2), make_rule("b.x.y", Severity.WARN, weight=1))
    run = make_run_with_doubting_agent(*rules, limit=0.5)
    payload = run.build_evaluation({"b.x.y": "no"})
    run.advance_to(Kind.EVALUATION_DONE).record(Kind.EVALUATION_DONE, **payload | {"passed": True})
    assert RUN_MACHINE.find_stop_reason(run.state) is None
