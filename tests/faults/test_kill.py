"""Killed at any instant and resumed, a run ends as it would have ended."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

Told = dict[str, Any]
Tell = Callable[[Sequence[dict[str, Any]]], list[Told]]
Point = tuple[str, int]

RESUME = ["--loop-resume"]
USAGE_ERROR = 4
# `tox -e kill`: before and after every single call, and with real sessions and a real agent, which takes many minutes.
IS_EVERY = bool(os.environ.get("PYTEST_LOOP_EVERY_KILL"))
STEP, PARTS = (1, 6) if IS_EVERY else (3, 2)


def _story(project: Path, start: list[str], point: Point | None, *, quick: bool = True) -> dict[str, Any]:
    """Start a run, kill it, and go on; where it was killed before its first event, there is nothing but to start it."""
    commands: list[dict[str, Any]] = [{"arguments": start}]
    if point:
        commands[0]["fault"] = {"kind": point[0], "at": point[1]}
        commands += [{"arguments": RESUME}, {"arguments": start, "after": USAGE_ERROR}]
    return {"project": str(project), "quick": quick, "commands": commands}


def _gist(told: Told) -> dict[str, Any]:
    """What has to be the same; times are not."""
    names = ("score", "passed", "artifact_hash", "previous_artifact_hash", "exit_signal", "usage", "reason", "plan")
    kept = ("status", "stop", "iteration", "phase", "last_score")
    progress = ("usage", "best", "artifact_hash", "evaluations")
    return {
        "events": [
            (
                one["event"],
                one["iteration"],
                one["phase"],
                one["step"],
                {name: one["payload"].get(name) for name in names},
            )
            for one in told["events"]
        ],
        "state": {name: told["state"][name] for name in kept} if told["state"] else None,
        "progress": {name: told["state"]["progress"][name] for name in progress} if told["state"] else None,
        "artifact": told["artifact"],
        "files": told["files"],
    }


@pytest.fixture(scope="module")
def undisturbed(project: Path, start: list[str], tell: Tell) -> Told:
    return tell([_story(project, start, None)])[0]


@pytest.fixture(scope="module")
def points(undisturbed: Told) -> list[Point]:
    """After every counted call, and in the middle of every write; before a call is after the one before it."""
    calls = list(enumerate(undisturbed["calls"], 1))
    return [
        *(("after", at) for at, _ in calls),
        *(("torn", at) for at, name in calls if name == "write"),
        *(("before", at) for at, _ in calls if IS_EVERY),
    ]


def test_undisturbed_run_takes_three_iterations_and_leaves_three_files(undisturbed: Told) -> None:
    assert undisturbed["codes"] == [0], undisturbed["said"][0]
    assert undisturbed["files"] == [f"write-a-guide/{name}" for name in ("artifact.md", "history.jsonl", "run.json")]
    assert undisturbed["asked"] == ["PRODUCE 1", "REFINE 1", "REFINE 2"]
    evaluations = [one for one in undisturbed["events"] if one["event"] == "evaluation_done"]
    assert [(one["iteration"], one["phase"]) for one in evaluations] == [(1, "A"), (2, "A"), (2, "B"), (3, "B")]


def test_there_are_more_than_a_hundred_points_to_kill_it_at(points: list[Point]) -> None:
    assert len(points) > (220 if IS_EVERY else 120)


@pytest.mark.parametrize("part", range(PARTS))
def test_killed_anywhere_and_resumed_it_ends_as_it_would_have_ended(
    part: int, points: list[Point], undisturbed: Told, project: Path, start: list[str], tell: Tell
) -> None:
    some = [point for at, point in enumerate(points) if at % STEP == 0 or point[0] == "torn"]
    mine = some[part::PARTS]
    told = tell([_story(project, start, point) for point in mine])
    different = {point: _difference(undisturbed, one) for point, one in zip(mine, told, strict=True)}
    assert {point: found for point, found in different.items() if found} == {}


@pytest.mark.parametrize("part", range(PARTS if IS_EVERY else 1))
def test_killed_and_resumed_with_real_sessions_and_a_real_agent_it_ends_the_same(
    part: int, undisturbed: Told, project: Path, start: list[str], tell: Tell
) -> None:
    every = [("after", at) for at in range(1, len(undisturbed["calls"]) + 1)]
    mine = every[part::PARTS] if IS_EVERY else every[len(every) // 2 : len(every) // 2 + 1]
    told = tell([_story(project, start, None), *(_story(project, start, point, quick=False) for point in mine)])
    different = {point: _difference(undisturbed, one) for point, one in zip(mine, told[1:], strict=True)}
    assert {point: found for point, found in different.items() if found} == {}


def test_killed_again_while_it_resumes_it_ends_as_it_would_have_ended(
    undisturbed: Told, project: Path, start: list[str], tell: Tell
) -> None:
    """The first end leaves an answer whose event is not in the history, so that there is something to go on with."""
    first = {"arguments": start, "fault": {"kind": "before", "at": _appends(undisturbed["calls"])[3]}}
    again = [{"arguments": RESUME, "fault": {"kind": "after", "at": at}} for at in range(1, 41, STEP)]
    told = tell([{"project": str(project), "commands": [first, one, {"arguments": RESUME}]} for one in again])
    assert [one["codes"] for one in told] == [[-9, -9, 0]] * len(told)
    assert [_gist(one) == _gist(undisturbed) for one in told] == [True] * len(told)
    assert [one["asked"][:3] for one in told] == [["PRODUCE 1", "REFINE 1", "REFINE 2"]] * len(told)


def _appends(calls: list[str]) -> list[int]:
    """The calls that add to the history: written and flushed, but not renamed."""
    return [
        at
        for at, name in enumerate(calls, 1)
        if name == "write" and calls[at : at + 1] == ["fsync"] and calls[at + 1 : at + 2] != ["replace"]
    ]


LIMITED = ["--loop-max-iterations", "2"]
RAISED = ["--loop-resume", "--loop-max-iterations", "4"]


def test_killed_while_a_limit_is_raised_it_is_raised_once(project: Path, start: list[str], tell: Tell) -> None:
    limited = {"arguments": [*start, *LIMITED]}
    stories = [
        {"project": str(project), "commands": [limited, *more, {"arguments": RAISED}]}
        for more in ([], *([{"arguments": RAISED, "fault": {"kind": "after", "at": at}}] for at in range(1, 25, STEP)))
    ]
    undisturbed, *told = tell(stories)
    assert undisturbed["codes"] == [1, 0]
    assert [one["event"] for one in undisturbed["events"]].count("limits_raised") == 1
    assert [one["codes"] for one in told] == [[1, -9, 0]] * len(told)
    assert [_gist(one) == _gist(undisturbed) for one in told] == [True] * len(told)


def test_killed_while_a_dead_run_is_stopped_it_is_stopped_once(
    undisturbed: Told, project: Path, start: list[str], tell: Tell
) -> None:
    dead = {"arguments": start, "fault": {"kind": "before", "at": _appends(undisturbed["calls"])[2]}}
    stop = ["--loop-stop", "--loop-alias", "write-a-guide"]
    stories = [
        {"project": str(project), "commands": [dead, *more, {"arguments": stop}]}
        for more in ([], *([{"arguments": stop, "fault": {"kind": "after", "at": at}}] for at in range(1, 12, STEP)))
    ]
    alone, *told = tell(stories)
    assert alone["codes"] == [-9, 0]
    assert alone["state"]["stop"] == {"passed": False, "reason": "user_stop"}
    assert [one["codes"] for one in told] == [[-9, -9, 0]] * len(told)
    assert [_gist(one) == _gist(alone) for one in told] == [True] * len(told)


def _difference(undisturbed: Told, told: Told) -> str:
    """What is not as it should be; the last words of the person's commands help to see why."""
    if told["codes"] not in ([-9, 0], [-9, USAGE_ERROR, 0]):
        return f"exit codes {told['codes']}: {told['said'][-1][-2000:]}"
    if len(told["asked"]) > len(undisturbed["asked"]) + 1:
        return f"asked for {told['asked']}"
    expected, found = _gist(undisturbed), _gist(told)
    return "; ".join(f"{name}: {found[name]}" for name in expected if expected[name] != found[name])
