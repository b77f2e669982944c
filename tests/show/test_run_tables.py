from __future__ import annotations

from pytest_loop.core.reporting.iteration_records import build_records
from pytest_loop.show.run_tables import render_iterations
from tests.show.runs import RunStory

NAMES = [f"r{number}" for number in range(4)]


def render_lines(story: RunStory) -> list[str]:
    return list(render_iterations(story.state, build_records(story.state, story.events)))


def test_single_iteration_has_no_table() -> None:
    assert render_lines(RunStory("a")) == []
    assert render_lines(RunStory("a").evaluate(["a"])) == []


def test_table_of_iterations_names_unknown_values() -> None:
    story = RunStory(*NAMES).evaluate(NAMES).refine(usage={"tokens": 1200, "cost_usd": 0.25}).evaluate(NAMES[2:])
    assert render_lines(story) == [
        "",
        "iteration  phase  quality  change  verified  tokens   cost     seconds",
        "1          A      0                failed    unknown  unknown  1.5",
        "2          A      50       +50     failed    1,200    0.25     3.5",
        "best: iteration 2 with 50 of 100",
    ]


def test_trajectory_degradation_and_unobservable_limits_are_shown() -> None:
    story = RunStory(*NAMES).evaluate(NAMES).refine().evaluate(NAMES[3:]).refine().evaluate(NAMES[2:])
    assert render_lines(story)[-3:] == [
        "best: iteration 2 with 75 of 100, and the last is worse",
        "trajectory: fluctuating (some iterations raised the score, others did not)",
        "unobservable: no agent reports usd, so this limit cannot end the run",
    ]


def test_void_iterations_have_no_best() -> None:
    story = RunStory("a").evaluate(["a"], void=True).refine().evaluate(["a"], void=True)
    assert [line for line in render_lines(story) if line.startswith("best")] == []
