"""A run that is killed at any point and resumed ends like an undisturbed run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import Report, RunScenarios, Scenario

Point = tuple[str, int]

RESUME = ["--loop-resume"]
USAGE_ERROR = 4
# `tox -e kill`: before and after every counted call, and with real sessions and a real agent. Takes many minutes.
IS_EVERY = bool(os.environ.get("PYTEST_LOOP_EVERY_KILL"))
STEP, TORN_STEP, PARTS = (1, 1, 6) if IS_EVERY else (6, 2, 2)


def _make_scenario(
    project: Path, start_arguments: list[str], point: Point | None = None, *, quick: bool = True
) -> Scenario:
    """Start a run, kill it at the point and resume it; start it again if it was killed before its first event."""
    commands: list[dict[str, Any]] = [{"arguments": start_arguments}]
    if point:
        commands[0]["fault"] = {"kind": point[0], "at": point[1]}
        commands += [{"arguments": RESUME}, {"arguments": start_arguments, "after": USAGE_ERROR}]
    return {"project": str(project), "quick": quick, "commands": commands}


def _summarize(report: Report) -> dict[str, Any]:
    """Return the parts of a report that must not differ; times may."""
    payload_names = (
        "score", "passed", "artifact_hash", "previous_artifact_hash", "exit_signal", "usage", "reason", "plan",
    )  # fmt: skip
    state_names = ("status", "stop", "iteration", "phase", "last_score")
    progress_names = ("usage", "best", "artifact_hash", "evaluations")
    progress = report["state"]["progress"] if report["state"] else {}
    return {
        "events": [
            (
                event["event"],
                event["iteration"],
                event["phase"],
                event["step"],
                {name: event["payload"].get(name) for name in payload_names},
            )
            for event in report["events"]
        ],
        "state": {name: report["state"][name] for name in state_names} if report["state"] else None,
        "progress": {name: progress[name] for name in progress_names} if progress else None,
        "artifact": report["artifact"],
        "files": report["files"],
    }


@pytest.fixture(scope="module")
def undisturbed(project: Path, start_arguments: list[str], run_scenarios: RunScenarios) -> Report:
    return run_scenarios([_make_scenario(project, start_arguments)])[0]


@pytest.fixture(scope="module")
def points(undisturbed: Report) -> list[Point]:
    """After every counted call and in the middle of every write; before a call equals after the previous one."""
    calls = list(enumerate(undisturbed["calls"], 1))
    return [
        *(("after", at) for at, _ in calls),
        *(("torn", at) for at, name in calls if name == "write"),
        *(("before", at) for at, _ in calls if IS_EVERY),
    ]


def test_undisturbed_run_takes_three_iterations_and_leaves_six_files(undisturbed: Report) -> None:
    assert undisturbed["codes"] == [0], undisturbed["outputs"][0]
    names = ("artifact.md", "files.json", "files.kept", "history.jsonl", "left-out.json", "run.json")
    assert undisturbed["files"] == [".gitignore", *(f"write-a-guide/{name}" for name in names)]
    assert undisturbed["requests"] == ["PRODUCE 1", "REFINE 1", "REFINE 2"]
    evaluations = [event for event in undisturbed["events"] if event["event"] == "evaluation_done"]
    assert [(event["iteration"], event["phase"]) for event in evaluations] == [(1, "A"), (2, "A"), (2, "B"), (3, "B")]


def test_run_can_be_killed_at_more_than_a_hundred_points(points: list[Point]) -> None:
    assert len(points) > (220 if IS_EVERY else 120)


@pytest.mark.parametrize("part", range(PARTS))
def test_resume_after_a_kill_at_any_point_ends_like_the_undisturbed_run(
    part: int,
    points: list[Point],
    undisturbed: Report,
    project: Path,
    start_arguments: list[str],
    run_scenarios: RunScenarios,
) -> None:
    steps = {"torn": TORN_STEP}
    selection = [point for at, point in enumerate(points) if at % steps.get(point[0], STEP) == 0][part::PARTS]
    reports = run_scenarios([_make_scenario(project, start_arguments, point) for point in selection])
    assert _find_differences(undisturbed, selection, reports) == {}


@pytest.mark.parametrize("part", range(PARTS if IS_EVERY else 1))
def test_resume_after_a_kill_with_real_sessions_and_a_real_agent_ends_like_the_undisturbed_run(
    part: int, undisturbed: Report, project: Path, start_arguments: list[str], run_scenarios: RunScenarios
) -> None:
    points = [("after", at) for at in range(1, len(undisturbed["calls"]) + 1)]
    middle = len(points) // 2
    selection = points[part::PARTS] if IS_EVERY else points[middle : middle + 1]
    scenarios = [_make_scenario(project, start_arguments, point, quick=False) for point in selection]
    reports = run_scenarios([_make_scenario(project, start_arguments), *scenarios])
    assert _find_differences(undisturbed, selection, reports[1:]) == {}


def test_run_that_is_killed_again_while_it_resumes_ends_like_the_undisturbed_run(
    undisturbed: Report, project: Path, start_arguments: list[str], run_scenarios: RunScenarios
) -> None:
    """The first kill leaves an answer without its event in the history, so that the resume has work to do."""
    first = {"arguments": start_arguments, "fault": {"kind": "before", "at": _find_appends(undisturbed["calls"])[3]}}
    resumes = [{"arguments": RESUME, "fault": {"kind": "after", "at": at}} for at in range(1, 41, STEP)]
    reports = run_scenarios(
        [{"project": str(project), "commands": [first, resume, {"arguments": RESUME}]} for resume in resumes]
    )
    assert [report["codes"] for report in reports] == [[-9, -9, 0]] * len(reports)
    assert [_summarize(report) == _summarize(undisturbed) for report in reports] == [True] * len(reports)
    requests = ["PRODUCE 1", "REFINE 1", "REFINE 2"]
    assert [list(dict.fromkeys(report["requests"])) for report in reports] == [requests] * len(reports)
    # A kill before an answer is written down costs this answer.
    assert [report["requests"] for report in reports if len(report["requests"]) > len(requests) + 1] == []


def _find_appends(calls: list[str]) -> list[int]:
    """Return the writes that append to the history: flushed, but not followed by a rename."""
    return [
        at
        for at, name in enumerate(calls, 1)
        if name == "write" and calls[at : at + 1] == ["fsync"] and calls[at + 1 : at + 2] != ["replace"]
    ]


LIMITED = ["--loop-max-iterations", "2"]
RAISED = ["--loop-resume", "--loop-max-iterations", "4"]


def _repeat_with_kills(
    project: Path, first: dict[str, Any], arguments: list[str], kills: Sequence[int]
) -> list[Scenario]:
    """Run a second command after the first one: once undisturbed, then killed and repeated for each kill."""
    last = {"arguments": arguments}
    attempts = [[], *([{"arguments": arguments, "fault": {"kind": "after", "at": at}}] for at in kills)]
    return [{"project": str(project), "commands": [first, *attempt, last]} for attempt in attempts]


def test_limit_is_raised_once_although_raising_it_is_killed(
    project: Path, start_arguments: list[str], run_scenarios: RunScenarios
) -> None:
    limited = {"arguments": [*start_arguments, *LIMITED]}
    undisturbed, *reports = run_scenarios(_repeat_with_kills(project, limited, RAISED, range(1, 25, STEP)))
    assert undisturbed["codes"] == [1, 0]
    assert [event["event"] for event in undisturbed["events"]].count("limits_raised") == 1
    assert [report["codes"] for report in reports] == [[1, -9, 0]] * len(reports)
    assert [_summarize(report) == _summarize(undisturbed) for report in reports] == [True] * len(reports)


def test_dead_run_is_stopped_once_although_stopping_it_is_killed(
    undisturbed: Report, project: Path, start_arguments: list[str], run_scenarios: RunScenarios
) -> None:
    dead = {"arguments": start_arguments, "fault": {"kind": "before", "at": _find_appends(undisturbed["calls"])[2]}}
    stop = ["--loop-stop", "--loop-alias", "write-a-guide"]
    stopped, *reports = run_scenarios(_repeat_with_kills(project, dead, stop, range(1, 12, STEP)))
    assert stopped["codes"] == [-9, 0]
    assert stopped["state"]["stop"] == {"passed": False, "reason": "user_stop"}
    assert [report["codes"] for report in reports] == [[-9, -9, 0]] * len(reports)
    assert [_summarize(report) == _summarize(stopped) for report in reports] == [True] * len(reports)


def _find_differences(undisturbed: Report, points: Sequence[Point], reports: Sequence[Report]) -> dict[Point, str]:
    """Describe how the reports differ from the undisturbed one, by the point of the kill."""
    differences = {
        point: _describe_difference(undisturbed, report) for point, report in zip(points, reports, strict=True)
    }
    return {point: difference for point, difference in differences.items() if difference}


def _describe_difference(undisturbed: Report, report: Report) -> str:
    if report["codes"] not in ([-9, 0], [-9, USAGE_ERROR, 0]):
        return f"exit codes {report['codes']}: {report['outputs'][-1][-2000:]}"
    if len(report["requests"]) > len(undisturbed["requests"]) + 1:
        return f"requests {report['requests']}"
    expected, summary = _summarize(undisturbed), _summarize(report)
    return "; ".join(f"{name}: {summary[name]}" for name in expected if expected[name] != summary[name])
