from __future__ import annotations

from pytest_loop.core.reporting.iteration_records import build_records
from pytest_loop.show.analysis import analysis_lines
from tests.show.runs import Told

NAMES = [f"r{number}" for number in range(4)]


def lines(told: Told) -> list[str]:
    return list(analysis_lines(told.state, build_records(told.state, told.events)))


def test_single_iteration_has_no_table() -> None:
    assert lines(Told("a")) == []
    assert lines(Told("a").judged(["a"])) == []


def test_table_of_iterations_names_unknown_values() -> None:
    told = Told(*NAMES).judged(NAMES).refined(usage={"tokens": 1200, "cost_usd": 0.25}).judged(NAMES[2:])
    assert lines(told) == [
        "",
        "iteration  phase  quality  change  verified  tokens   cost     seconds",
        "1          A      0                failed    unknown  unknown  1.5",
        "2          A      50       +50     failed    1,200    0.25     3.5",
        "best: iteration 2 with 50 of 100",
    ]


def test_trajectory_degradation_and_unobservable_limits_are_shown() -> None:
    told = Told(*NAMES).judged(NAMES).refined().judged(NAMES[3:]).refined().judged(NAMES[2:])
    assert lines(told)[-3:] == [
        "best: iteration 2 with 75 of 100, and the last is worse",
        "trajectory: fluctuating (the score went up and down)",
        "unobservable: nobody reports usd, so that this limit cannot end a run",
    ]


def test_void_iterations_have_no_best() -> None:
    told = Told("a").judged(["a"], void=True).refined().judged(["a"], void=True)
    assert [line for line in lines(told) if line.startswith("best")] == []
