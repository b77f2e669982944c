"""Signals, disks, clocks and other loops: each leads to a clear message, loses nothing, and never to a green result.

One test for each row of the list "State and disk"; tests without a run are in `tests/store`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store
from tests.faults.conftest import Report, RunScenarios, StartCommand

RESUME = ["--loop-resume"]
EVENTS = ["run_started", "plan_created", "artifact_created"]


def _make_start_arguments(rules: str, agent: str, *more: str) -> list[str]:
    return [rules, "--loop-task", "Write a guide", "--loop-agent", agent, "--loop-yes", *more]


def _list_sleepers() -> list[str]:
    """Return the processes that an agent or a rule left behind."""
    pids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", b"97.31"]:
            pids.append(path.parent.name)
    return pids


# -- signals

WORKING = {
    "agent": ("guide.rules.yaml", "python:writers:sleeper", 2),
    "command": ("guide.rules.yaml", "command:sh -c 'touch started; sleep 97.31'", 2),
    "evaluation": ("slow.rules.yaml", "python:writers:writer", 3),
}


@pytest.mark.parametrize(
    ("place", "name", "times"),
    [
        ("agent", "SIGINT", 1),
        pytest.param("agent", "SIGINT", 2, marks=pytest.mark.thorough),
        pytest.param("agent", "SIGTERM", 1, marks=pytest.mark.thorough),
        ("command", "SIGTERM", 2),
        pytest.param("command", "SIGHUP", 1, marks=pytest.mark.thorough),
        ("evaluation", "SIGINT", 1),
        pytest.param("evaluation", "SIGINT", 2, marks=pytest.mark.thorough),
        pytest.param("evaluation", "SIGTERM", 1, marks=pytest.mark.thorough),
        ("evaluation", "SIGHUP", 1),
    ],
)
def test_interrupted_run_can_be_resumed_and_leaves_no_process(
    start_command: StartCommand, folder: Path, place: str, name: str, times: int
) -> None:
    rules, agent, events = WORKING[place]
    command = start_command(*_make_start_arguments(rules, agent))
    command.wait_for("started")
    for _ in range(times):
        command.process.send_signal(getattr(signal, name))
        time.sleep(0.15)
    code, out, err = command.end()
    assert (code, err) == (pytest.ExitCode.INTERRUPTED, "")
    assert out.endswith("interrupted: the run can go on with pytest-loop resume\n")
    files = Store(folder).get_existing_run("write-a-guide")
    state, history = files.read()
    assert [event.event for event in history.events] == EVENTS[:events]
    assert (history.damage, state.is_over, files.owner) == ([], False, Owner.NONE)
    assert _list_sleepers() == []


def test_interrupt_while_two_agents_work_ends_both_at_once(start_command: StartCommand, folder: Path) -> None:
    """PRODUCE and PREPARE at the same time."""
    (folder / "kind.rules.yaml").write_text(
        "rules: [{id: a.tone.kind, description: It is kind, check: It reads kindly}]"
    )
    slow = "command:sh -c 'touch started; sleep 97.31'"
    command = start_command(*_make_start_arguments("kind.rules.yaml", slow), "--loop-judge", slow)
    command.wait_for("started")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.end()
    assert (code, err) == (pytest.ExitCode.INTERRUPTED, "")
    assert _list_sleepers() == []


# -- disks


@pytest.fixture(scope="module")
def undisturbed(project: Path, start_arguments: list[str], run_scenarios: RunScenarios) -> Report:
    return run_scenarios([{"project": str(project), "commands": [{"arguments": start_arguments}]}])[0]


def _summarize(report: Report) -> tuple[Any, ...]:
    """Return the outcome of a run: its events with scores and artifacts, its state, its files."""
    names = ("score", "passed", "artifact_hash", "usage", "reason")
    events = [
        (event["event"], event["iteration"], event["phase"], [event["payload"].get(name) for name in names])
        for event in report["events"]
        if event["event"] != Kind.RUN_ADOPTED.value
    ]
    state = report["state"]
    progress = state["progress"]
    return events, state["status"], progress["usage"], progress["evaluations"], report["artifact"], report["files"]


def _is_clear_message(text: str, error: str) -> bool:
    """Return whether a text says what cannot be done and why, without a traceback."""
    return "Traceback" not in text and "ERROR: cannot " in text and os.strerror(getattr(errno, error)) in text


FULL = {"names": ["write", "fsync", "replace"]}
OPENED = 40


@pytest.mark.parametrize(
    ("error", "target", "step"),
    [
        ("ENOSPC", FULL, 9),
        pytest.param("EROFS", FULL, 11, marks=pytest.mark.thorough),
        ("EIO", {"names": ["fsync"]}, 5),
        pytest.param("EMFILE", {"names": ["open"], "path": "/.loop"}, 6, marks=pytest.mark.thorough),
    ],
    ids=["ENOSPC", "EROFS", "EIO", "EMFILE"],
)
def test_failing_disk_is_reported_and_nothing_is_lost(
    undisturbed: Report,
    project: Path,
    start_arguments: list[str],
    run_scenarios: RunScenarios,
    error: str,
    target: dict[str, Any],
    step: int,
) -> None:
    """From the n-th call on nothing can be written; later the disk works again."""
    calls = OPENED if "path" in target else sum(name in target["names"] for name in undisturbed["calls"])
    faults = [{"kind": "fails", "at": at, "error": error, **target} for at in range(1, calls, step)]
    repair = [{"arguments": RESUME}, {"arguments": start_arguments, "after": 4}]
    reports = run_scenarios(
        [
            {"project": str(project), "commands": [{"arguments": start_arguments, "fault": fault}, *repair]}
            for fault in faults
        ]
    )
    assert len(reports) > 6
    first = {fault["at"]: report["outputs"][0] for fault, report in zip(faults, reports, strict=True)}
    assert {at: text for at, text in first.items() if not _is_clear_message(text, error)} == {}
    assert [report["codes"][0] for report in reports] == [4] * len(reports)
    assert [report["codes"][-1] for report in reports] == [0] * len(reports)
    assert [_summarize(report) == _summarize(undisturbed) for report in reports] == [True] * len(reports)
    assert max(len(report["requests"]) for report in reports) <= len(undisturbed["requests"]) + 1


def test_short_writes_and_a_clock_that_jumps_change_nothing(
    undisturbed: Report, project: Path, start_arguments: list[str], run_scenarios: RunScenarios
) -> None:
    reports = run_scenarios(
        [
            {"project": str(project), "commands": [{"arguments": start_arguments, "fault": {"kind": kind}}]}
            for kind in ("short", "clock")
        ]
    )
    assert [report["codes"] for report in reports] == [[0], [0]]
    assert [_summarize(report) == _summarize(undisturbed) for report in reports] == [True, True]
    times = [report["ts"] for report in reports[1]["events"]]
    assert times != sorted(times)
    assert 0 <= reports[1]["state"]["completed_phase_seconds"] < 60


@pytest.mark.parametrize(("path", "code"), [("/run.json", 0), ("/history.jsonl", 4)], ids=["run.json", "history.jsonl"])
def test_unreadable_file_is_rebuilt_or_reported(
    undisturbed: Report, project: Path, start_arguments: list[str], run_scenarios: RunScenarios, path: str, code: int
) -> None:
    killed = {"arguments": start_arguments, "fault": {"kind": "after", "at": 60}}
    fault = {"kind": "fails", "at": 1, "error": "EACCES", "names": ["open"], "path": path}
    scenario = {
        "project": str(project),
        "commands": [killed, {"arguments": RESUME, "fault": fault}, {"arguments": RESUME}],
    }
    report = run_scenarios([scenario])[0]
    assert report["codes"][1] == code
    assert "Traceback" not in report["outputs"][1]
    if code:
        expected = "history.jsonl: Permission denied; give this user access, then go on with pytest-loop resume"
        assert expected in report["outputs"][1]
        assert _summarize(report) == _summarize(undisturbed)
    assert (report["codes"][-1], report["state"]["status"]) == (0, "completed")


# -- deleted folders


def test_state_folder_deleted_by_an_agent_is_written_again_with_a_message(
    undisturbed: Report, project: Path, run_scenarios: RunScenarios
) -> None:
    start = {"arguments": _make_start_arguments("guide.rules.yaml", "python:writers:sweeper")}
    again = {"arguments": ["--loop-resume"]}
    report = run_scenarios([{"project": str(project), "commands": [start, again]}])[0]
    assert report["codes"] == [4, 0]
    expected = (
        "history.jsonl was deleted or replaced while the run was going on; what this process knew is written again: "
        "look who did that, then go on with pytest-loop resume --run write-a-guide"
    )
    assert expected in report["outputs"][0]
    assert "Traceback" not in report["outputs"][0]
    assert _summarize(report) == _summarize(undisturbed)
    assert report["requests"] == undisturbed["requests"]


def test_working_folder_deleted_by_an_agent_ends_the_run_with_a_message(
    project: Path, run_scenarios: RunScenarios
) -> None:
    start = {"arguments": _make_start_arguments("guide.rules.yaml", "python:writers:vandal")}
    report = run_scenarios([{"project": str(project), "commands": [start]}])[0]
    assert report["codes"] == [4]
    assert "Traceback" not in report["outputs"][0]
    assert "was deleted or replaced while the run was going on" in report["outputs"][0]
    assert report["artifact"] == "# Guide\n"
    assert [event["event"] for event in report["events"]] == EVENTS


# -- other loops


def test_second_loop_on_the_same_run_is_refused_with_the_pid_of_the_first(start_command: StartCommand) -> None:
    first = start_command(*_make_start_arguments("guide.rules.yaml", "python:writers:sleeper"))
    first.wait_for("started")
    code, out, err = start_command("--loop-resume").end()
    assert (code, out) == (pytest.ExitCode.USAGE_ERROR, "")
    expected = (
        f"ERROR: the run 'write-a-guide' is being worked on: process {first.process.pid} works there: "
        "watch it with --loop-status=write-a-guide, or end it with --loop-stop\n\n"
    )
    assert err == expected


def test_loop_inside_a_loop_cannot_touch_the_outer_one(
    undisturbed: Report, project: Path, run_scenarios: RunScenarios
) -> None:
    """The agent itself tries to resume the run that called it."""
    reports = run_scenarios(
        [
            {
                "project": str(project),
                "commands": [{"arguments": _make_start_arguments("guide.rules.yaml", "python:writers:nested")}],
            }
        ]
    )
    assert reports[0]["codes"] == [0]
    assert reports[0]["nested"].startswith("4 ERROR: the run 'write-a-guide' is being worked on: process ")
    assert _summarize(reports[0]) == _summarize(undisturbed)


# -- damaged files of an interrupted run


@pytest.fixture(scope="module")
def interrupted(
    project: Path, start_arguments: list[str], run_scenarios: RunScenarios, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A project whose run was killed in its second iteration."""
    folder = tmp_path_factory.mktemp("interrupted") / "project"
    scenario = {
        "project": str(project),
        "commands": [{"arguments": start_arguments, "fault": {"kind": "after", "at": 75}}],
    }
    assert run_scenarios([scenario | {"keep": str(folder)}])[0]["codes"] == [-9]
    return folder


Edit = Callable[[Path], object]


def _make_history_edit(change: Callable[[list[bytes]], bytes]) -> Edit:
    def edit(run: Path) -> None:
        path = run / "history.jsonl"
        path.write_bytes(change(path.read_bytes().splitlines()))

    return edit


def _join(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def _make_replacement(make: Callable[[Path], object], name: str = "run.json") -> Edit:
    def edit(run: Path) -> None:
        (run / name).unlink()
        make(run / name)

    return edit


def _raise_schema_version(run: Path) -> None:
    data = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(data | {"schema_version": 9}))


def _clear_both_files(run: Path) -> None:
    (run / "run.json").write_text("{}")
    (run / "history.jsonl").write_text("")


RECOVERABLE: dict[str, tuple[Edit, str]] = {
    "torn last line": (_make_history_edit(lambda lines: _join(lines) + lines[-1][:50]), ""),
    "padding at the end": (_make_history_edit(lambda lines: _join(lines) + b"\0" * 4096), ""),
    "two objects on a line": (_make_history_edit(lambda lines: lines[0] + _join(lines[1:])), ""),
    "Windows line ends": (_make_history_edit(lambda lines: b"\r\n".join(lines) + b"\r\n"), ""),
    "byte order mark": (_make_history_edit(lambda lines: b"\xef\xbb\xbf" + _join(lines)), ""),
    "no end of the last line": (_make_history_edit(b"\n".join), ""),
    "empty run.json": (_make_replacement(lambda path: path.write_text("")), ""),
    "run.json is {}": (_make_replacement(lambda path: path.write_text("{}")), ""),
    "wrong types in run.json": (_make_replacement(lambda path: path.write_text('{"run_id": [], "phase": 7}')), ""),
    "no run.json": (_make_replacement(lambda path: None), ""),
    "pipe for run.json": (_make_replacement(os.mkfifo), ""),
    "link for run.json": (_make_replacement(lambda path: path.symlink_to("/etc/passwd")), ""),
    "nonsense in current.json": (lambda run: (run.parent / "current.json").write_text("?"), ""),
    "pipe for current.json": (_make_replacement(os.mkfifo, "../current.json"), ""),
    "torn line in the middle": (
        _make_history_edit(lambda lines: _join([lines[0], lines[1][:50], *lines[2:]])),
        "write-a-guide: line 2 of the history cannot be read",
    ),
    "invalid text in the middle": (
        _make_history_edit(lambda lines: _join([lines[0], b"\xff\xfe", *lines[2:]])),
        "write-a-guide: line 2 of the history cannot be read",
    ),
    "a very long line": (
        _make_history_edit(lambda lines: _join([lines[0], b"a" * 10_000_000, *lines[1:]])),
        "write-a-guide: line 2 of the history cannot be read",
    ),
    "an edited line": (
        _make_history_edit(
            lambda lines: _join([lines[0], lines[1].replace(b"plan_created", b"plan_made"), *lines[2:]])
        ),
        "write-a-guide: line 3 of the history does not follow the line before it",
    ),
    "no history": (
        _make_replacement(lambda path: None, "history.jsonl"),
        "write-a-guide: the history lacks events that run.json was made from",
    ),
}
REFUSED: dict[str, tuple[Edit, str]] = {
    "run.json of a newer version": (
        _raise_schema_version,
        "run.json was written by a newer version (schema 9, known is 1): update pytest-agent-loop",
    ),
    "folder for run.json": (
        _make_replacement(lambda path: path.mkdir()),
        "run.json: Is a directory; move that folder away, then go on with pytest-loop resume",
    ),
    "folder for the history": (
        _make_replacement(lambda path: path.mkdir(), "history.jsonl"),
        "history.jsonl: Is a directory; move that folder away, then go on with pytest-loop resume",
    ),
    "pipe for the history": (
        _make_replacement(os.mkfifo, "history.jsonl"),
        "history.jsonl: it is not a file; free the way, then go on with pytest-loop resume",
    ),
    "link for the history": (
        _make_replacement(lambda path: path.symlink_to("run.json"), "history.jsonl"),
        "history.jsonl: it is a symbolic link; move that link away, then go on with pytest-loop resume",
    ),
    "both lost": (
        _clear_both_files,
        "history.jsonl is missing or empty; bring one of them back, or start anew with --loop-task",
    ),
}


def _resume_after_edits(
    edits: dict[str, tuple[Edit, str]], interrupted: Path, tmp_path: Path, run_scenarios: RunScenarios
) -> dict[str, Report]:
    scenarios = []
    for number, (edit, _) in enumerate(edits.values()):
        folder = Path(shutil.copytree(interrupted, tmp_path / str(number)))
        edit(folder / ".loop" / "write-a-guide")
        resume = {"arguments": ["--loop-resume=write-a-guide"]}
        scenarios.append({"project": str(folder), "in_place": True, "commands": [resume]})
    return dict(zip(edits, run_scenarios(scenarios), strict=True))


def test_run_is_resumed_after_damage_to_one_file(
    undisturbed: Report, interrupted: Path, tmp_path: Path, run_scenarios: RunScenarios
) -> None:
    reports = _resume_after_edits(RECOVERABLE, interrupted, tmp_path, run_scenarios)
    assert {name: report["codes"] for name, report in reports.items()} == {name: [0] for name in RECOVERABLE}
    undamaged = [name for name, (_, message) in RECOVERABLE.items() if not message]
    assert [name for name in undamaged if _summarize(reports[name]) != _summarize(undisturbed)] == []
    for name, (_, message) in RECOVERABLE.items():
        assert message in reports[name]["outputs"][0], name
        assert reports[name]["artifact"] == undisturbed["artifact"], name
        assert reports[name]["state"]["progress"]["evaluations"] == 4, name


def test_run_that_cannot_be_resumed_gives_the_reason_and_changes_nothing(
    interrupted: Path, tmp_path: Path, run_scenarios: RunScenarios
) -> None:
    reports = _resume_after_edits(REFUSED, interrupted, tmp_path, run_scenarios)
    assert {name: report["codes"] for name, report in reports.items()} == {name: [4] for name in REFUSED}
    for name, (_, message) in REFUSED.items():
        assert message in reports[name]["outputs"][0], name
        assert "Traceback" not in reports[name]["outputs"][0], name
        assert reports[name]["artifact"] == (interrupted / ".loop/write-a-guide/artifact.md").read_text()
