from __future__ import annotations

from pytest_loop.core.workload.measurement import Measurement
from pytest_loop.workloads.experiment_history import ExperimentHistory, read_experiment
from pytest_loop.workloads.report import report
from tests.workloads.test_debrief import analysed, edit, event, measured

SEVEN = [
    "Summary", "Failure modes", "Root causes", "Fix options", "Regression risks", "Case by case", "Reasoning trail",
]  # fmt: skip


def test_a_report_has_seven_sections() -> None:
    """E5."""
    found = read_experiment([measured("F.E"), analysed(1)])
    assert [title for title, _ in report(found, 1)] == SEVEN
    assert dict(report(found, 1))["Case by case"] == [
        "| Case | Status | Before |", "|---|---|---|", "| a | Failing | New |", "| c | Not measured | New |",
        "", "1 others pass.",
    ]  # fmt: skip


def test_an_iteration_that_nobody_analysed_has_no_report() -> None:
    assert list(report(ExperimentHistory(), 1)) == []
    assert list(report(read_experiment([measured("F.")]), 1)) == []


def test_what_became_worse_is_told_apart_and_what_stayed_is_counted() -> None:
    found = read_experiment([measured("F.."), analysed(1), edit(1), measured(".F.", 2), analysed(2)])
    assert dict(report(found, 2))["Case by case"][2:] == [
        "| b | Regressed | Passing |", "| a | Passing | Failing |", "", "1 others pass as before.",
    ]  # fmt: skip
    found = read_experiment([measured("FF"), analysed(1), measured("FF", 2), analysed(2)])
    assert dict(report(found, 2))["Case by case"][2:] == ["| a | Failing | Failing |", "| b | Failing | Failing |"]
    calm = read_experiment([measured(".."), analysed(1)])
    assert dict(report(calm, 1))["Case by case"] == ["2 others pass."]


def test_failures_about_the_same_place_are_one_mode() -> None:
    found = read_experiment([measured("FF."), analysed(1)])
    assert dict(report(found, 1))["Failure modes"][2:] == ["| total | unknown | 2/3 | no total | a, b |"]


def test_a_case_with_several_remarks_counts_once() -> None:
    payload = measured("F.").payload.dump()["measurement"]
    payload["results"][0]["critiques"] = [{"message": "x", "location": f"line {number}"} for number in (1, 2)]
    found = read_experiment([event("baseline_done", 0, measurement=payload), analysed(1)])
    assert dict(report(found, 1))["Failure modes"][2] == "| line # | unknown | 1/2 (2 remarks) | x | a |"


def test_cases_that_were_held_out_are_counted_apart() -> None:
    hidden = {"notebook": {"hidden": ["c"]}}
    found = read_experiment([event("run_started", state=hidden), measured("F.F"), measured("..F", 2)])
    assert (found.held_out, found.measurements[-1].has_converged) == ((0, 1), True)
    assert isinstance(found.final, Measurement)
