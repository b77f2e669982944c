"""An experiment as a run: what has to happen in it, what is noted, and how it ends."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from pytest_loop.core.events.run_payloads import Action
from pytest_loop.core.machine.run_machine import IllegalTransition
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status
from pytest_loop.core.reporting.outcome import build_result, decide
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import StateError
from pytest_loop.workloads.experiment_notes import make_note
from tests.core.laboratory import ExperimentStory
from tests.event_factory import make_event


def kinds(story: ExperimentStory) -> list[str]:
    return [event.event for event in story.events]


def test_an_experiment_is_calibrated_measured_composed_edited_and_judged() -> None:
    story = ExperimentStory(on_regression="accept")
    story.measures(".FF", "F..", "...").to_the_end()
    assert kinds(story) == [
        "run_started", "calibration_done", "baseline_done",
        "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced",
        "evaluation_done", "hypothesis_judged", "regression_detected",
        "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced",
        "evaluation_done", "hypothesis_judged", "stopped",
    ]  # fmt: skip
    assert (story.state.status, story.state.stop.reason) == (Status.COMPLETED, "converged")
    assert story.state.iteration == 3
    assert reduce(story.machine.apply, story.events[1:], story.first_state) == story.state
    assert ExperimentState.model_validate_json(story.state.model_dump_json()) == story.state


def test_the_baseline_is_iteration_0_and_iteration_1_uses_it() -> None:
    story = ExperimentStory().measures("F..")
    said = make_event(story.state, Kind.BASELINE_DONE.value, {}, "now")
    assert (said.iteration, story.state.iteration, story.experiment.measurements[0].iteration) == (0, 1, 0)
    assert story.todo == [Kind.CRITIQUE_DONE]


def test_where_all_cases_pass_at_once_nobody_composes() -> None:
    story = ExperimentStory().measures("...")
    story.to_the_end()
    assert kinds(story)[-2:] == ["baseline_done", "stopped"]


def test_a_calibration_that_failed_is_the_end() -> None:
    """Vector 16: three tries, and no more."""
    story = ExperimentStory().does(Kind.CALIBRATION_DONE, passed=False, errors=["x"] * 3)
    assert (story.todo, story.to_the_end().state.status) == ([Kind.FAILED], Status.FAILED)
    assert story.state.stop.reason == "calibration"


def test_a_regression_is_surfaced_although_more_cases_pass() -> None:
    """Vector 16: two fixed, one broken, net one more."""
    story = ExperimentStory().measures(".FF", "F..").to_the_end()
    noted = next(event.payload for event in story.events if event.event == "regression_detected")
    assert noted.dump() == {"regressions": ["a"], "fixed": ["b", "c"], "likely_cause": "o11", "action": "stop"}
    assert (story.state.stop.reason, story.state.status) == ("regression", Status.STOPPED)
    assert decide(story.state, Reason.REGRESSION).action is Action.ESCALATE


@pytest.mark.parametrize(
    ("fields", "letters", "reason"),
    [
        ({}, ["F..", "F..", "F.."], "plateau"),
        ({"on_plateau": "continue", "max_iterations": 4}, ["F..", "F..", "F..", "F.."], "iteration_limit"),
        ({"max_iterations": 1}, ["F.."], "iteration_limit"),
        ({"max_iterations": 1}, ["..."], "converged"),
        ({"on_regression": "different", "max_iterations": 2}, [".FF", "F.."], "iteration_limit"),
        ({"max_iterations": 2}, [".FF", "F.."], "regression"),
        ({"mode": "exploration", "max_iterations": 2}, ["..F", "FF."], "iteration_limit"),
        ({"mode": "exploration", "on_plateau": "continue"}, ["..F", "FF.", "F..", "FF."], "regression"),
        ({}, [".EF", ".E.", "..."], "converged"),
        ({}, [".F.", ".E.", ".E."], "plateau"),
        ({"hidden": "c"}, ["FFF", "..F"], "converged"),
        ({"hidden": "c"}, ["FF.", ".FF", "..F"], "converged"),
    ],
)
def test_an_experiment_ends_as_the_policies_say(fields: dict[str, Any], letters: list[str], reason: str) -> None:
    assert ExperimentStory(**fields).measures(*letters).ended().stop.reason == reason


def test_a_plateau_that_was_gone_on_from_is_counted_anew() -> None:
    story = ExperimentStory(on_plateau="continue").measures(*["F.."] * 6)
    assert [
        event.iteration for event in story.until(Kind.CRITIQUE_DONE).events if event.event == "plateau_reached"
    ] == [3, 5]


def test_a_void_measurement_is_no_success() -> None:
    story = ExperimentStory().measures("...", void=True)
    assert story.todo == [Kind.CRITIQUE_DONE]
    assert not story.state.stop.passed


def test_a_skipped_iteration_is_composed_again_and_not_measured() -> None:
    story = ExperimentStory().measures("F..").until(Kind.REFINEMENT_DONE)
    story.happens(Kind.REFINEMENT_DONE, decision={"chosen": None, "feedback": "look at b"}, option=None)
    assert story.todo == [Kind.ITERATION_ADVANCED]
    story.happens(Kind.ITERATION_ADVANCED)
    assert (story.state.current_step, story.todo) == (Place.CRITIQUE, [Kind.CRITIQUE_DONE])
    assert (story.state.iteration, isinstance(story, ExperimentStory) and story.experiment.hypotheses) == (2, ())


def test_what_the_first_measurement_says_to_look_at_is_kept_unless_somebody_said_it() -> None:
    assert ExperimentStory().measures("FF.").experiment.focus == ("a", "b")
    assert ExperimentStory(hidden="a").measures("FF.").experiment.focus == ("b",)
    said = ExperimentStory(guards="b").measures("FF.").experiment
    assert (said.focus, said.guards) == (("a", "b"), ("b",))


def test_of_earlier_measurements_only_the_outcomes_are_kept() -> None:
    story = ExperimentStory().until(Kind.BASELINE_DONE)
    assert isinstance(story, ExperimentStory)
    payload = story.measurement("F..")
    payload["measurement"]["results"][0]["critiques"] = [{"message": "no"}]
    story.happens(Kind.BASELINE_DONE, **payload)
    assert story.experiment.measurements[0].results[0].critiques
    assert not story.measures("F..").experiment.measurements[0].results[0].critiques


def test_an_edit_is_remembered_with_the_cases_that_failed_then() -> None:
    book = ExperimentStory().measures("FF.", ".F.").experiment
    assert [(one.edit, sorted(one.failing)) for one in book.tried] == [(("p.md", "x", "y11"), ["a", "b"])]


def test_what_is_due_comes_first() -> None:
    story = ExperimentStory(2, on_regression="accept").measures(".F", "F.")
    with pytest.raises(IllegalTransition, match="expected hypothesis_judged"):
        story.happens(Kind.CRITIQUE_DONE, analysis={})
    with pytest.raises(IllegalTransition, match="does not bear out"):
        story.happens(Kind.STOPPED, reason="converged")


@pytest.mark.parametrize(
    ("letters", "said", "goes_on"),
    [
        ([".FF", "F.."], {"on_regression": "accept"}, True),
        ([".FF", "F.."], {"on_regression": "different"}, True),
        ([".FF", "F.."], {"on_plateau": "continue"}, False),
        (["F..", "F..", "F.."], {"on_plateau": "continue"}, True),
        (["F..", "F..", "F.."], {"max_iterations": 20}, False),
    ],
)
def test_an_experiment_that_a_policy_has_stopped_goes_on_with_another(
    letters: list[str], said: dict[str, Any], goes_on: bool
) -> None:
    story = ExperimentStory().measures(*letters)
    story.to_the_end()
    if not goes_on:
        with pytest.raises(IllegalTransition):
            story.happens(Kind.LIMITS_RAISED, **said)
        return
    story.happens(Kind.LIMITS_RAISED, **said)
    assert (story.state.status, story.todo) == (Status.RUNNING, [Kind.CRITIQUE_DONE])
    assert said.items() <= story.experiment.policy.model_dump(mode="json").items()


def test_raising_what_has_stopped_nothing_changes_nothing() -> None:
    story = ExperimentStory().measures("F..")
    before = story.experiment
    story.happens(Kind.LIMITS_RAISED, on_regression="accept", on_plateau="continue")
    assert story.experiment == before


def test_what_is_not_due_is_not_noted() -> None:
    story = ExperimentStory().measures("F..")
    skipped = ExperimentStory().measures("F..").does(Kind.REFINEMENT_DONE, decision={"chosen": None}, option=None)
    for state, kind in (
        (story.state, Kind.HYPOTHESIS_FORMED),
        (story.measures("F..").until(Kind.CRITIQUE_DONE).state, Kind.HYPOTHESIS_JUDGED),
        (skipped.state, Kind.HYPOTHESIS_FORMED),
    ):
        assert isinstance(state, ExperimentState)
        with pytest.raises(StateError):
            make_note(kind, state, None)


def test_the_result_tells_what_was_believed_and_how_the_unseen_cases_do() -> None:
    story = ExperimentStory(hidden="c").measures("F.F", "..F")
    found = build_result(story.ended(), story.events, "h")["workload"]
    assert found == {
        "id": "letters", "manifest": "loop.manifest.json", "mode": "precision", "cases": 3, "baseline": 1, "passing": 2,
        "failing": [], "not_measured": [], "hypotheses": [{"iteration": 1, "theory": "t1", "truth": "confirmed"}],
        "held_out": {"passing": 0, "total": 1},
    }  # fmt: skip
    assert story.events[-1].payload.dump()["held_out"] == {"passing": 0, "total": 1}
    nothing = build_result(ExperimentStory().state, [], "h")["workload"]
    assert (nothing["baseline"], nothing["failing"], nothing["held_out"]) == (None, [], None)
