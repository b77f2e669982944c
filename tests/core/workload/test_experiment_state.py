"""The machine of experiments: its order of steps, its notes, and its end."""

from __future__ import annotations

from functools import reduce
from typing import Any

import pytest

from pytest_loop.core.events.run_decision import Action
from pytest_loop.core.machine.run_machine import IllegalTransition
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.vocabulary import Kind, Place, Reason, Status
from pytest_loop.core.reporting.decision import decide
from pytest_loop.core.reporting.outcome import build_result
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import StateError
from pytest_loop.workloads.experiment_notes import make_note
from tests.core.scripted_experiment import ScriptedExperiment
from tests.event_factory import make_event


def list_kinds(run: ScriptedExperiment) -> list[str]:
    return [event.event for event in run.events]


def test_experiment_is_calibrated_measured_composed_edited_and_judged() -> None:
    run = ScriptedExperiment(on_regression="accept")
    run.measure(".FF", "F..", "...").finish()
    assert list_kinds(run) == [
        "run_started", "calibration_done", "baseline_done",
        "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced",
        "evaluation_done", "hypothesis_judged", "regression_detected",
        "critique_done", "refinement_done", "hypothesis_formed", "iteration_advanced",
        "evaluation_done", "hypothesis_judged", "stopped",
    ]  # fmt: skip
    assert (run.state.status, run.state.stop.reason) == (Status.COMPLETED, "converged")
    assert run.state.iteration == 3
    assert reduce(run.machine.apply, run.events[1:], run.first_state) == run.state
    assert ExperimentState.model_validate_json(run.state.model_dump_json()) == run.state


def test_baseline_is_iteration_0_and_iteration_1_uses_it() -> None:
    run = ScriptedExperiment().measure("F..")
    event = make_event(run.state, Kind.BASELINE_DONE.value, {}, "now")
    assert (event.iteration, run.state.iteration, run.experiment.measurements[0].iteration) == (0, 1, 0)
    assert run.due_kinds == [Kind.CRITIQUE_DONE]


def test_experiment_ends_if_all_cases_pass_at_baseline() -> None:
    run = ScriptedExperiment().measure("...")
    run.finish()
    assert list_kinds(run)[-2:] == ["baseline_done", "stopped"]


def test_failed_calibration_ends_the_experiment() -> None:
    """Vector 16: three tries, and no more."""
    run = ScriptedExperiment().complete(Kind.CALIBRATION_DONE, passed=False, errors=["x"] * 3)
    assert (run.due_kinds, run.finish().state.status) == ([Kind.FAILED], Status.FAILED)
    assert run.state.stop.reason == "calibration"


def test_regression_is_reported_although_more_cases_pass() -> None:
    """Vector 16: two fixed, one broken, net one more."""
    run = ScriptedExperiment().measure(".FF", "F..").finish()
    payload = next(event.payload for event in run.events if event.event == "regression_detected")
    assert payload.dump() == {"regressions": ["a"], "fixed": ["b", "c"], "likely_cause": "o11", "action": "stop"}
    assert (run.state.stop.reason, run.state.status) == ("regression", Status.STOPPED)
    assert decide(run.state, Reason.REGRESSION).action is Action.ESCALATE


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
        ({"held_out": "c"}, ["FFF", "..F"], "converged"),
        ({"held_out": "c"}, ["FF.", ".FF", "..F"], "converged"),
    ],
)
def test_policy_decides_how_an_experiment_ends(fields: dict[str, Any], letters: list[str], reason: str) -> None:
    assert ScriptedExperiment(**fields).measure(*letters).finish().state.stop.reason == reason


def test_plateau_count_restarts_after_a_decision_to_continue() -> None:
    run = ScriptedExperiment(on_plateau="continue").measure(*["F.."] * 6)
    assert [
        event.iteration for event in run.advance_to(Kind.CRITIQUE_DONE).events if event.event == "plateau_reached"
    ] == [3, 5]


def test_void_measurement_is_no_success() -> None:
    run = ScriptedExperiment().measure("...", void=True)
    assert run.due_kinds == [Kind.CRITIQUE_DONE]
    assert not run.state.stop.passed


def test_skipped_iteration_is_composed_again_and_not_measured() -> None:
    run = ScriptedExperiment().measure("F..").advance_to(Kind.REFINEMENT_DONE)
    run.record(Kind.REFINEMENT_DONE, decision={"chosen": None, "feedback": "look at b"}, option=None)
    assert run.due_kinds == [Kind.ITERATION_ADVANCED]
    run.record(Kind.ITERATION_ADVANCED)
    assert (run.state.current_step, run.due_kinds) == (Place.CRITIQUE, [Kind.CRITIQUE_DONE])
    assert (run.state.iteration, isinstance(run, ScriptedExperiment) and run.experiment.hypotheses) == (2, ())


def test_baseline_suggests_focus_unless_it_was_set() -> None:
    assert ScriptedExperiment().measure("FF.").experiment.focus == ("a", "b")
    assert ScriptedExperiment(held_out="a").measure("FF.").experiment.focus == ("b",)
    experiment = ScriptedExperiment(guards="b").measure("FF.").experiment
    assert (experiment.focus, experiment.guards) == (("a", "b"), ("b",))


@pytest.mark.parametrize(
    ("seal", "plugins"),
    [
        (Seal(plugins=None), ("cov", "dsession")),
        (Seal(plugins=("cov",)), ("cov",)),
        (None, None),
    ],
    ids=["no plugins yet", "plugins of an old history", "no seal"],
)
def test_baseline_adds_its_plugins_to_a_seal_without_any(seal: Seal | None, plugins: tuple[str, ...] | None) -> None:
    run = ScriptedExperiment(seal=seal).measure("F..", plugins=["cov", "dsession"])
    assert (run.state.setup.seal.plugins if run.state.setup.seal else None) == plugins


def test_plugins_of_later_measurements_are_not_sealed() -> None:
    run = ScriptedExperiment(seal=Seal(plugins=None)).measure("F..", plugins=["cov"]).measure("F..", plugins=["cheat"])
    assert run.state.setup.seal is not None
    assert run.state.setup.seal.plugins == ("cov",)


def test_earlier_measurements_keep_only_outcomes() -> None:
    run = ScriptedExperiment().advance_to(Kind.BASELINE_DONE)
    assert isinstance(run, ScriptedExperiment)
    payload = run.build_measurement_payload("F..")
    payload["measurement"]["results"][0]["critiques"] = [{"message": "no"}]
    run.record(Kind.BASELINE_DONE, **payload)
    assert run.experiment.measurements[0].results[0].critiques
    assert not run.measure("F..").experiment.measurements[0].results[0].critiques


def test_tried_edit_has_the_cases_that_failed_before() -> None:
    experiment = ScriptedExperiment().measure("FF.", ".F.").experiment
    assert [(edit.edit, sorted(edit.failing)) for edit in experiment.tried] == [(("p.md", "x", "y11"), ["a", "b"])]


def test_event_before_a_due_note_is_refused() -> None:
    run = ScriptedExperiment(2, on_regression="accept").measure(".F", "F.")
    with pytest.raises(IllegalTransition, match="expected hypothesis_judged"):
        run.record(Kind.CRITIQUE_DONE, analysis={})
    with pytest.raises(IllegalTransition, match="does not bear out"):
        run.record(Kind.STOPPED, reason="converged")


@pytest.mark.parametrize(
    ("letters", "policy", "is_open"),
    [
        ([".FF", "F.."], {"on_regression": "accept"}, True),
        ([".FF", "F.."], {"on_regression": "different"}, True),
        ([".FF", "F.."], {"on_plateau": "continue"}, False),
        (["F..", "F..", "F.."], {"on_plateau": "continue"}, True),
        (["F..", "F..", "F.."], {"max_iterations": 20}, False),
    ],
)
def test_changed_policy_reopens_an_experiment_that_it_stopped(
    letters: list[str], policy: dict[str, Any], is_open: bool
) -> None:
    run = ScriptedExperiment().measure(*letters)
    run.finish()
    if not is_open:
        with pytest.raises(IllegalTransition):
            run.record(Kind.LIMITS_RAISED, **policy)
        return
    run.record(Kind.LIMITS_RAISED, **policy)
    assert (run.state.status, run.due_kinds) == (Status.RUNNING, [Kind.CRITIQUE_DONE])
    assert policy.items() <= run.experiment.policy.model_dump(mode="json").items()


def test_changed_policy_of_an_active_experiment_is_ignored() -> None:
    run = ScriptedExperiment().measure("F..")
    before = run.experiment
    run.record(Kind.LIMITS_RAISED, on_regression="accept", on_plateau="continue")
    assert run.experiment == before


def test_note_that_is_not_due_is_refused() -> None:
    run = ScriptedExperiment().measure("F..")
    skipped = ScriptedExperiment().measure("F..").complete(Kind.REFINEMENT_DONE, decision={"chosen": None}, option=None)
    for state, kind in (
        (run.state, Kind.HYPOTHESIS_FORMED),
        (run.measure("F..").advance_to(Kind.CRITIQUE_DONE).state, Kind.HYPOTHESIS_JUDGED),
        (skipped.state, Kind.HYPOTHESIS_FORMED),
    ):
        assert isinstance(state, ExperimentState)
        with pytest.raises(StateError):
            make_note(kind, state, None)


def test_result_has_hypotheses_and_held_out_cases() -> None:
    run = ScriptedExperiment(held_out="c").measure("F.F", "..F")
    result = build_result(run.finish().state, run.events, "h")["workload"]
    assert result == {
        "id": "letters", "manifest": "loop.manifest.json", "mode": "precision", "cases": 3, "baseline": 1, "passing": 2,
        "failing": [], "not_measured": [], "hypotheses": [{"iteration": 1, "theory": "t1", "truth": "confirmed"}],
        "held_out": {"passing": 0, "total": 1},
    }  # fmt: skip
    assert run.events[-1].payload.dump()["held_out"] == {"passing": 0, "total": 1}
    nothing = build_result(ScriptedExperiment().state, [], "h")["workload"]
    assert (nothing["baseline"], nothing["failing"], nothing["held_out"]) == (None, [], None)
