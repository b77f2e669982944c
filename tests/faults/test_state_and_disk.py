"""Signals, disks, clocks and other loops: each is answered with a clear message, loses nothing, and never says green.

One test for each row of the list "State and disk"; what can be seen without a run is in `tests/store`.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store

Told = dict[str, Any]
Tell = Callable[[Sequence[dict[str, Any]]], list[Told]]
RESUME = ["--loop-resume"]
EVENTS = ["run_started", "plan_created", "artifact_created"]


class Command(Protocol):
    process: Any

    def wait_for(self, name: str) -> None: ...
    def end(self) -> tuple[int, str, str]: ...


Begin = Callable[..., Command]


def _start(rules: str, agent: str, *more: str) -> list[str]:
    return [rules, "--loop-task", "Write a guide", "--loop-agent", agent, "--loop-yes", *more]


def _sleepers() -> list[str]:
    """The processes that an agent or a rule has left behind."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", b"97.31"]:
            found.append(path.parent.name)
    return found


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
def test_interrupted_at_work_it_can_go_on_and_leaves_no_process(
    begin: Begin, folder: Path, place: str, name: str, times: int
) -> None:
    rules, agent, events = WORKING[place]
    command = begin(*_start(rules, agent))
    command.wait_for("started")
    for _ in range(times):
        command.process.send_signal(getattr(signal, name))
        time.sleep(0.15)
    code, out, err = command.end()
    assert (code, err) == (pytest.ExitCode.INTERRUPTED, "")
    assert out.endswith("interrupted: the run can go on with pytest --loop-resume\n")
    files = Store(folder).get_existing_run("write-a-guide")
    state, history = files.read()
    assert [one.event for one in history.events] == EVENTS[:events]
    assert (history.damage, state.is_over, files.owner) == ([], False, Owner.NONE)
    assert _sleepers() == []


def test_interrupted_while_two_agents_work_it_ends_at_once_and_leaves_no_process(begin: Begin, folder: Path) -> None:
    """PRODUCE and PREPARE at the same time."""
    (folder / "kind.rules.yaml").write_text(
        "rules: [{id: a.tone.kind, description: It is kind, check: It reads kindly}]"
    )
    slow = "command:sh -c 'touch started; sleep 97.31'"
    command = begin(*_start("kind.rules.yaml", slow), "--loop-judge", slow)
    command.wait_for("started")
    command.process.send_signal(signal.SIGINT)
    code, _, err = command.end()
    assert (code, err) == (pytest.ExitCode.INTERRUPTED, "")
    assert _sleepers() == []


# -- disks


@pytest.fixture(scope="module")
def undisturbed(project: Path, start: list[str], tell: Tell) -> Told:
    return tell([{"project": str(project), "commands": [{"arguments": start}]}])[0]


def _gist(told: Told) -> tuple[Any, ...]:
    """What a run came to: its events with their scores and artifacts, its state, its files."""
    names = ("score", "passed", "artifact_hash", "usage", "reason")
    events = [
        (one["event"], one["iteration"], one["phase"], [one["payload"].get(name) for name in names])
        for one in told["events"]
        if one["event"] != Kind.RUN_ADOPTED.value
    ]
    state = told["state"]
    return events, state["status"], state["usage"], state["evaluations"], told["artifact"], told["files"]


def _is_clear(text: str, error: str) -> bool:
    """A sentence with what cannot be done and why; no traceback."""
    return "Traceback" not in text and "ERROR: cannot " in text and os.strerror(getattr(errno, error)) in text


FULL = {"names": ["write", "fsync", "replace"]}
OPENED = 40


@pytest.mark.parametrize(
    ("error", "where", "step"),
    [
        ("ENOSPC", FULL, 9),
        pytest.param("EROFS", FULL, 11, marks=pytest.mark.thorough),
        ("EIO", {"names": ["fsync"]}, 5),
        pytest.param("EMFILE", {"names": ["open"], "path": "/.loop"}, 6, marks=pytest.mark.thorough),
    ],
    ids=["ENOSPC", "EROFS", "EIO", "EMFILE"],
)
def test_disk_that_fails_is_named_and_nothing_is_lost(
    undisturbed: Told, project: Path, start: list[str], tell: Tell, error: str, where: dict[str, Any], step: int
) -> None:
    """From the n-th call on nothing can be written; then the disk is mended."""
    calls = OPENED if "path" in where else sum(name in where["names"] for name in undisturbed["calls"])
    faults = [{"kind": "fails", "at": at, "error": error, **where} for at in range(1, calls, step)]
    repair = [{"arguments": RESUME}, {"arguments": start, "after": 4}]
    told = tell(
        [{"project": str(project), "commands": [{"arguments": start, "fault": fault}, *repair]} for fault in faults]
    )
    assert len(told) > 6
    first = {fault["at"]: one["said"][0] for fault, one in zip(faults, told, strict=True)}
    assert {at: text for at, text in first.items() if not _is_clear(text, error)} == {}
    assert [one["codes"][0] for one in told] == [4] * len(told)
    assert [one["codes"][-1] for one in told] == [0] * len(told)
    assert [_gist(one) == _gist(undisturbed) for one in told] == [True] * len(told)
    assert max(len(one["asked"]) for one in told) <= len(undisturbed["asked"]) + 1


def test_short_writes_and_a_clock_that_jumps_change_nothing(
    undisturbed: Told, project: Path, start: list[str], tell: Tell
) -> None:
    told = tell(
        [
            {"project": str(project), "commands": [{"arguments": start, "fault": {"kind": kind}}]}
            for kind in ("short", "clock")
        ]
    )
    assert [one["codes"] for one in told] == [[0], [0]]
    assert [_gist(one) == _gist(undisturbed) for one in told] == [True, True]
    times = [one["ts"] for one in told[1]["events"]]
    assert times != sorted(times)
    assert 0 <= told[1]["state"]["completed_phase_seconds"] < 60


@pytest.mark.parametrize(("path", "code"), [("/run.json", 0), ("/history.jsonl", 4)], ids=["run.json", "history.jsonl"])
def test_file_that_cannot_be_read_is_made_again_or_named(
    undisturbed: Told, project: Path, start: list[str], tell: Tell, path: str, code: int
) -> None:
    killed = {"arguments": start, "fault": {"kind": "after", "at": 60}}
    fault = {"kind": "fails", "at": 1, "error": "EACCES", "names": ["open"], "path": path}
    story = {
        "project": str(project),
        "commands": [killed, {"arguments": RESUME, "fault": fault}, {"arguments": RESUME}],
    }
    told = tell([story])[0]
    assert told["codes"][1] == code
    assert "Traceback" not in told["said"][1]
    if code:
        expected = "history.jsonl: Permission denied; give this user access, then go on with pytest --loop-resume"
        assert expected in told["said"][1]
        assert _gist(told) == _gist(undisturbed)
    assert (told["codes"][-1], told["state"]["status"]) == (0, "completed")


# -- folders that are taken away


def test_state_folder_deleted_by_an_agent_is_written_again_and_the_run_says_so(
    undisturbed: Told, project: Path, tell: Tell
) -> None:
    start = {"arguments": _start("guide.rules.yaml", "python:writers:sweeper")}
    again = {"arguments": ["--loop-resume"]}
    told = tell([{"project": str(project), "commands": [start, again]}])[0]
    assert told["codes"] == [4, 0]
    expected = (
        "history.jsonl was deleted or replaced while the run was going on; what this process knew is written again: "
        "look who did that, then go on with pytest --loop-resume=write-a-guide"
    )
    assert expected in told["said"][0]
    assert "Traceback" not in told["said"][0]
    assert _gist(told) == _gist(undisturbed)
    assert told["asked"] == undisturbed["asked"]


def test_working_folder_deleted_by_an_agent_ends_the_run_with_a_message(project: Path, tell: Tell) -> None:
    start = {"arguments": _start("guide.rules.yaml", "python:writers:vandal")}
    told = tell([{"project": str(project), "commands": [start]}])[0]
    assert told["codes"] == [4]
    assert "Traceback" not in told["said"][0]
    assert "was deleted or replaced while the run was going on" in told["said"][0]
    assert told["artifact"] == "# Guide\n"
    assert [one["event"] for one in told["events"]] == EVENTS


# -- other loops


def test_second_loop_on_the_same_run_is_refused_with_the_process_that_works_on_it(begin: Begin) -> None:
    first = begin(*_start("guide.rules.yaml", "python:writers:sleeper"))
    first.wait_for("started")
    code, out, err = begin("--loop-resume").end()
    assert (code, out) == (pytest.ExitCode.USAGE_ERROR, "")
    expected = (
        f"ERROR: the run 'write-a-guide' is being worked on: process {first.process.pid} works there: "
        "watch it with --loop-status=write-a-guide, or end it with --loop-stop\n\n"
    )
    assert err == expected


def test_loop_inside_a_loop_cannot_touch_the_outer_one(undisturbed: Told, project: Path, tell: Tell) -> None:
    """The agent itself tries to go on with the run that asked it."""
    told = tell(
        [{"project": str(project), "commands": [{"arguments": _start("guide.rules.yaml", "python:writers:nested")}]}]
    )
    assert told[0]["codes"] == [0]
    assert told[0]["nested"].startswith("4 ERROR: the run 'write-a-guide' is being worked on: process ")
    assert _gist(told[0]) == _gist(undisturbed)


# -- what somebody did to the files of a run that was interrupted


@pytest.fixture(scope="module")
def interrupted(project: Path, start: list[str], tell: Tell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose run was killed in its second iteration."""
    folder = tmp_path_factory.mktemp("interrupted") / "project"
    story = {"project": str(project), "commands": [{"arguments": start, "fault": {"kind": "after", "at": 75}}]}
    assert tell([story | {"keep": str(folder)}])[0]["codes"] == [-9]
    return folder


Edit = Callable[[Path], object]


def _lines(change: Callable[[list[bytes]], bytes]) -> Edit:
    def edit(run: Path) -> None:
        path = run / "history.jsonl"
        path.write_bytes(change(path.read_bytes().splitlines()))

    return edit


def _joined(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def _replaced(make: Callable[[Path], object], name: str = "run.json") -> Edit:
    def edit(run: Path) -> None:
        (run / name).unlink()
        make(run / name)

    return edit


def _newer(run: Path) -> None:
    data = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps(data | {"schema_version": 9}))


def _both_lost(run: Path) -> None:
    (run / "run.json").write_text("{}")
    (run / "history.jsonl").write_text("")


GOES_ON: dict[str, tuple[Edit, str]] = {
    "torn last line": (_lines(lambda lines: _joined(lines) + lines[-1][:50]), ""),
    "padding at the end": (_lines(lambda lines: _joined(lines) + b"\0" * 4096), ""),
    "two objects on a line": (_lines(lambda lines: lines[0] + _joined(lines[1:])), ""),
    "Windows line ends": (_lines(lambda lines: b"\r\n".join(lines) + b"\r\n"), ""),
    "byte order mark": (_lines(lambda lines: b"\xef\xbb\xbf" + _joined(lines)), ""),
    "no end of the last line": (_lines(b"\n".join), ""),
    "empty run.json": (_replaced(lambda path: path.write_text("")), ""),
    "run.json is {}": (_replaced(lambda path: path.write_text("{}")), ""),
    "wrong types in run.json": (_replaced(lambda path: path.write_text('{"run_id": [], "phase": 7}')), ""),
    "no run.json": (_replaced(lambda path: None), ""),
    "pipe for run.json": (_replaced(os.mkfifo), ""),
    "link for run.json": (_replaced(lambda path: path.symlink_to("/etc/passwd")), ""),
    "nonsense in current.json": (lambda run: (run.parent / "current.json").write_text("?"), ""),
    "pipe for current.json": (_replaced(os.mkfifo, "../current.json"), ""),
    "torn line in the middle": (
        _lines(lambda lines: _joined([lines[0], lines[1][:50], *lines[2:]])),
        "write-a-guide: line 2 of the history cannot be read",
    ),
    "invalid text in the middle": (
        _lines(lambda lines: _joined([lines[0], b"\xff\xfe", *lines[2:]])),
        "write-a-guide: line 2 of the history cannot be read",
    ),
    "a very long line": (
        _lines(lambda lines: _joined([lines[0], b"a" * 10_000_000, *lines[1:]])),
        "write-a-guide: line 2 of the history cannot be read",
    ),
    "an edited line": (
        _lines(lambda lines: _joined([lines[0], lines[1].replace(b"plan_created", b"plan_made"), *lines[2:]])),
        "write-a-guide: line 3 of the history does not follow the line before it",
    ),
    "no history": (
        _replaced(lambda path: None, "history.jsonl"),
        "write-a-guide: the history lacks events that run.json was made from",
    ),
}
REFUSED: dict[str, tuple[Edit, str]] = {
    "run.json of a newer version": (
        _newer,
        "run.json was written by a newer version (schema 9, known is 1): update pytest-agent-loop",
    ),
    "folder for run.json": (
        _replaced(lambda path: path.mkdir()),
        "run.json: Is a directory; move that folder away, then go on with pytest --loop-resume",
    ),
    "folder for the history": (
        _replaced(lambda path: path.mkdir(), "history.jsonl"),
        "history.jsonl: Is a directory; move that folder away, then go on with pytest --loop-resume",
    ),
    "pipe for the history": (
        _replaced(os.mkfifo, "history.jsonl"),
        "history.jsonl: it is not a file; free the way, then go on with pytest --loop-resume",
    ),
    "link for the history": (
        _replaced(lambda path: path.symlink_to("run.json"), "history.jsonl"),
        "history.jsonl: it is a symbolic link; move that link away, then go on with pytest --loop-resume",
    ),
    "both lost": (
        _both_lost,
        "history.jsonl is missing or empty; bring one of them back, or start anew with --loop-task",
    ),
}


def _resumed(edits: dict[str, tuple[Edit, str]], interrupted: Path, tmp_path: Path, tell: Tell) -> dict[str, Told]:
    stories = []
    for number, (edit, _) in enumerate(edits.values()):
        folder = Path(shutil.copytree(interrupted, tmp_path / str(number)))
        edit(folder / ".loop" / "write-a-guide")
        resume = {"arguments": ["--loop-resume=write-a-guide"]}
        stories.append({"project": str(folder), "in_place": True, "commands": [resume]})
    return dict(zip(edits, tell(stories), strict=True))


def test_run_goes_on_whatever_became_of_one_of_its_files(
    undisturbed: Told, interrupted: Path, tmp_path: Path, tell: Tell
) -> None:
    told = _resumed(GOES_ON, interrupted, tmp_path, tell)
    assert {name: one["codes"] for name, one in told.items()} == {name: [0] for name in GOES_ON}
    whole = [name for name, (_, message) in GOES_ON.items() if not message]
    assert [name for name in whole if _gist(told[name]) != _gist(undisturbed)] == []
    for name, (_, message) in GOES_ON.items():
        assert message in told[name]["said"][0], name
        assert told[name]["artifact"] == undisturbed["artifact"], name
        assert told[name]["state"]["evaluations"] == 4, name


def test_run_that_cannot_go_on_says_why_and_nothing_is_touched(interrupted: Path, tmp_path: Path, tell: Tell) -> None:
    told = _resumed(REFUSED, interrupted, tmp_path, tell)
    assert {name: one["codes"] for name, one in told.items()} == {name: [4] for name in REFUSED}
    for name, (_, message) in REFUSED.items():
        assert message in told[name]["said"][0], name
        assert "Traceback" not in told[name]["said"][0], name
        assert told[name]["artifact"] == (interrupted / ".loop/write-a-guide/artifact.md").read_text()
