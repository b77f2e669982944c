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


def measured(letters: str, iteration: int = 0) -> Measurement:
    """Cases a, b, c, ... by a letter each, as pytest writes them."""
    results = tuple(CaseResult(id=chr(97 + at), outcome=OUTCOMES[one]) for at, one in enumerate(letters))
    return Measurement(iteration=iteration, results=results)


def test_a_measurement_counts_failures_and_errors_of_the_infrastructure_apart() -> None:
    found = measured("..FE")
    assert [sorted(one) for one in (found.passing, found.failing, found.unmeasured)] == [["a", "b"], ["c"], ["d"]]
    assert str(found) == "2/4 passing (50%), 1 not measured"
    assert str(measured("")) == "0/0 passing (0%)"
    assert [one.passed for one in found.results] == [True, True, False, False]


def test_only_a_measurement_in_which_all_pass_has_converged() -> None:
    assert measured("..").has_converged
    assert not any(measured(one).has_converged for one in ("", ".F", ".E"))


def test_two_fixed_and_one_broken_is_a_regression_though_the_net_gain_is_one() -> None:
    found = compare_measurements(measured(".FF."), measured("F..."))
    assert (found.fixed, found.regressions, found.lost) == (("b", "c"), ("a",), ())


def test_a_case_that_could_not_be_measured_is_neither_broken_nor_fixed() -> None:
    found = compare_measurements(measured(".EF"), measured("E.E"))
    assert (found.fixed, found.regressions, found.lost) == ((), (), ("a",))


def test_the_best_is_the_first_with_the_most_passing() -> None:
    assert find_best([measured("F.", 0), measured("..", 1), measured("..", 2)]).iteration == 1


def test_hidden_cases_are_not_among_what_somebody_sees() -> None:
    assert [one.id for one in measured("..F").exclude_cases({"b"}).results] == ["a", "c"]


def test_up_to_five_failing_cases_are_looked_at_first_and_three_passing_ones_guard() -> None:
    assert suggest_cases(measured("FFFFFFF....."), hidden={"a", "h"}) == (tuple("bcdef"), tuple("ijk"))


def test_a_remark_says_what_is_there_of_place_and_severity() -> None:
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
def test_only_a_report_that_says_so_is_a_pass_or_a_failure(reported: Outcome, outcome: CaseOutcome) -> None:
    assert read_case_result("a", Evidence(outcome=reported)).outcome is outcome


def test_what_a_report_says_about_a_case_is_kept() -> None:
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
