"""The report of one iteration of an experiment."""

from __future__ import annotations

from pytest_loop.core.workload.measurement import Measurement
from pytest_loop.workloads.experiment_history import ExperimentHistory, read_experiment
from pytest_loop.workloads.iteration_report import render_sections
from tests.core.scripted_experiment import ScriptedExperiment
from tests.workloads.test_debrief import make_analysis_event, make_edit_event, make_event, make_measurement_event

SEVEN = [
    "Summary", "Failure modes", "Root causes", "Fix options", "Regression risks", "Case by case", "Reasoning trail",
]  # fmt: skip


def test_report_has_seven_sections() -> None:
    history = read_experiment([make_measurement_event("F.E"), make_analysis_event(1)])
    assert [title for title, _ in render_sections(history, 1)] == SEVEN
    assert dict(render_sections(history, 1))["Case by case"] == [
        "| Case | Status | Before |", "|---|---|---|", "| a | Failing | New |", "| c | Not measured | New |",
        "", "1 others pass.",
    ]  # fmt: skip


def test_iteration_without_analysis_has_no_report() -> None:
    assert list(render_sections(ExperimentHistory(), 1)) == []
    assert list(render_sections(read_experiment([make_measurement_event("F.")]), 1)) == []


def test_regressions_are_marked_and_unchanged_cases_are_counted() -> None:
    history = read_experiment(
        [
            make_measurement_event("F.."),
            make_analysis_event(1),
            make_edit_event(1),
            make_measurement_event(".F.", 2),
            make_analysis_event(2),
        ]
    )
    assert dict(render_sections(history, 2))["Case by case"][2:] == [
        "| b | Regressed | Passing |", "| a | Passing | Failing |", "", "1 others pass as before.",
    ]  # fmt: skip
    history = read_experiment(
        [make_measurement_event("FF"), make_analysis_event(1), make_measurement_event("FF", 2), make_analysis_event(2)]
    )
    assert dict(render_sections(history, 2))["Case by case"][2:] == [
        "| a | Failing | Failing |",
        "| b | Failing | Failing |",
    ]
    calm = read_experiment([make_measurement_event(".."), make_analysis_event(1)])
    assert dict(render_sections(calm, 1))["Case by case"] == ["2 others pass."]


def test_failures_with_the_same_location_are_one_mode() -> None:
    history = read_experiment([make_measurement_event("FF."), make_analysis_event(1)])
    assert dict(render_sections(history, 1))["Failure modes"][2:] == ["| total | unknown | 2/3 | no total | a, b |"]


def test_case_with_several_remarks_counts_once() -> None:
    payload = make_measurement_event("F.").payload.dump()["measurement"]
    payload["results"][0]["critiques"] = [{"message": "x", "location": f"line {number}"} for number in (1, 2)]
    history = read_experiment(
        [make_event("baseline_done", 0, score=0.5, passed=False, measurement=payload), make_analysis_event(1)]
    )
    assert dict(render_sections(history, 1))["Failure modes"][2] == "| line # | unknown | 1/2 (2 remarks) | x | a |"


def test_held_out_cases_are_counted_apart() -> None:
    started = ScriptedExperiment(held_out="c").events[0]
    history = read_experiment([started, make_measurement_event("F.F"), make_measurement_event("..F", 2)])
    assert (history.held_out, history.measurements[-1].has_converged) == ((0, 1), True)
    assert isinstance(history.final, Measurement)
