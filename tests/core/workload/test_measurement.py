from __future__ import annotations

import pytest

from pytest_loop.core.model.rules import Evidence, Finding, Outcome
from pytest_loop.core.workload.measurement import (
    CaseOutcome,
    CaseResult,
    Measurement,
    Remark,
    compare_measurements,
    find_best,
    read_case_result,
    suggest_cases,
)

OUTCOMES = {".": CaseOutcome.PASSED, "F": CaseOutcome.FAILED, "E": CaseOutcome.INFRASTRUCTURE}


def build_measurement(letters: str, iteration: int = 0) -> Measurement:
    """Cases a, b, c, ... by a letter each, as pytest writes them."""
    results = tuple(CaseResult(id=chr(97 + number), outcome=OUTCOMES[letter]) for number, letter in enumerate(letters))
    return Measurement(iteration=iteration, results=results)


def test_measurement_counts_failures_and_infrastructure_errors_apart() -> None:
    measurement = build_measurement("..FE")
    assert [sorted(cases) for cases in (measurement.passing, measurement.failing, measurement.unmeasured)] == [
        ["a", "b"],
        ["c"],
        ["d"],
    ]
    assert str(measurement) == "2/4 passing (50%), 1 not measured"
    assert str(build_measurement("")) == "0/0 passing (0%)"
    assert [result.passed for result in measurement.results] == [True, True, False, False]


def test_measurement_has_converged_only_if_all_cases_pass() -> None:
    assert build_measurement("..").has_converged
    assert not any(build_measurement(result).has_converged for result in ("", ".F", ".E"))


def test_two_fixed_cases_do_not_hide_one_regression() -> None:
    measurement = compare_measurements(build_measurement(".FF."), build_measurement("F..."))
    assert (measurement.fixed, measurement.regressions, measurement.lost) == (("b", "c"), ("a",), ())


def test_unmeasured_case_is_neither_broken_nor_fixed() -> None:
    measurement = compare_measurements(build_measurement(".EF"), build_measurement("E.E"))
    assert (measurement.fixed, measurement.regressions, measurement.lost) == ((), (), ("a",))


def test_best_measurement_is_the_first_with_the_most_passing_cases() -> None:
    assert (
        find_best([build_measurement("F.", 0), build_measurement("..", 1), build_measurement("..", 2)]).iteration == 1
    )


def test_held_out_cases_are_excluded() -> None:
    assert [result.id for result in build_measurement("..F").exclude_cases({"b"}).results] == ["a", "c"]


def test_five_failing_cases_and_three_guards_are_suggested() -> None:
    assert suggest_cases(build_measurement("FFFFFFF....."), held_out_cases={"a", "h"}) == (tuple("bcdef"), tuple("ijk"))


def test_remark_is_printed_with_its_place_and_severity() -> None:
    assert str(Remark(message="wrong")) == "wrong"
    assert str(Remark(message="wrong", severity="Blocking", location="a:1")) == "a:1: Blocking: wrong"


@pytest.mark.parametrize(
    ("reported", "outcome"),
    [
        (Outcome.PASSED, CaseOutcome.PASSED),
        (Outcome.FAILED, CaseOutcome.FAILED),
        (Outcome.ERROR, CaseOutcome.INFRASTRUCTURE),
        (Outcome.MISSING, CaseOutcome.INFRASTRUCTURE),
        (Outcome.SKIPPED, CaseOutcome.INFRASTRUCTURE),
    ],
)
def test_other_outcomes_than_pass_and_failure_are_infrastructure_errors(
    reported: Outcome, outcome: CaseOutcome
) -> None:
    assert read_case_result("a", Evidence(outcome=reported)).outcome is outcome


def test_remarks_of_a_report_are_parsed() -> None:
    findings = (Finding(expected="", found="Minor: short", where="a:1", detail="-x"), Finding(expected="", found="b"))
    assert read_case_result(
        "a", Evidence(outcome=Outcome.FAILED, findings=findings, text="t", seconds=2)
    ) == CaseResult(
        id="a",
        outcome=CaseOutcome.FAILED,
        critiques=(Remark(message="short", severity="Minor", location="a:1"), Remark(message="b")),
        difference="-x",
        text="t",
        seconds=2,
    )
