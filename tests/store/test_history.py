"""A history is read whatever became of it, and what became of it is said."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.store import history as histories
from pytest_loop.store.run_files import RunFiles

MakeEvent = Callable[..., Event]
Edit = Callable[[list[bytes]], bytes]


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _edited(files: RunFiles, edit: Edit) -> histories.History:
    files.history.write_bytes(edit(files.history.read_bytes().splitlines()))
    return histories.read_history(files.history)


HARMLESS: dict[str, Edit] = {
    "as written": _joined,
    "with Windows line ends": lambda lines: b"\r\n".join(lines) + b"\r\n",
    "with a byte order mark": lambda lines: b"\xef\xbb\xbf" + _joined(lines),
    "with empty lines": lambda lines: b"\n\n".join(lines) + b"\n\n",
    "with padding between lines": lambda lines: b"\n\0\0\0".join(lines) + b"\n",
    "with two objects on a line": lambda lines: lines[0] + lines[1] + b"\n" + lines[2] + b"\n",
    "with two objects and a space on a line": lambda lines: lines[0] + b"  " + lines[1] + b"\n" + lines[2] + b"\n",
    "without an end of the last line": lambda lines: b"\n".join(lines),
}
TORN: dict[str, Edit] = {
    "half a line": lambda lines: _joined(lines) + lines[2][:40],
    "one byte": lambda lines: _joined(lines) + b"{",
    "padding": lambda lines: _joined(lines) + b"\0" * 4096,
    "half a line and padding": lambda lines: _joined(lines) + lines[2][:40] + b"\0" * 512,
    "half a character": lambda lines: _joined(lines) + b'{"ts": "\xc3',
    "half a line with an end": lambda lines: _joined(lines) + lines[2][:40] + b"\n",
    "something that is no event": lambda lines: _joined(lines) + b"[1, 2]\n",
}
DAMAGED: dict[str, tuple[Edit, str]] = {
    "a torn line in the middle": (
        lambda lines: _joined([lines[0], lines[1][:30], lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "a line that is no text": (
        lambda lines: _joined([lines[0], b"\xff\xfe\xff", lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "a number that is none": (
        lambda lines: _joined([lines[0], lines[1].replace(b'["one", "two"]', b"NaN"), lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "endless nesting": (
        lambda lines: _joined([lines[0], b'{"a":' * 100_000, lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "an edited line": (
        lambda lines: _joined([lines[0], lines[1].replace(b"two", b"six"), lines[2]]),
        "line 3 of the history does not follow the line before it",
    ),
    "a missing line": (
        lambda lines: _joined([lines[0], lines[2]]),
        "line 2 of the history does not follow the line before it",
    ),
    "lines in another order": (
        lambda lines: _joined([lines[0], lines[2], lines[1]]),
        "line 2 of the history does not follow the line before it",
    ),
    "a line of somebody else": (
        lambda lines: _joined([*lines, _unchained(lines[1])]),
        "line 4 of the history was not written by this run",
    ),
    "several unreadable lines at the end": (
        lambda lines: _joined([*lines, b"what", b"is this"]),
        "line 4 of the history cannot be read",
    ),
}


def _unchained(line: bytes) -> bytes:
    return json.dumps({name: value for name, value in json.loads(line).items() if name != "prev"}).encode()


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS.keys())
def test_other_ways_to_write_the_same_are_no_damage(files: RunFiles, planned: RunState, edit: Edit) -> None:
    found = _edited(files, edit)
    assert [one.event for one in found.events] == ["run_started", "plan_created", "coffee_made"]
    assert found.damage == []
    assert histories.fold_events(found) == planned


@pytest.mark.parametrize("edit", TORN.values(), ids=TORN.keys())
def test_torn_end_is_cut_and_nothing_before_it_is_lost(files: RunFiles, planned: RunState, edit: Edit) -> None:
    whole = files.history.read_bytes()
    found = _edited(files, edit)
    assert (found.is_torn, found.damage, len(found.events)) == (True, [], 3)
    assert files.read()[0] == planned
    files.repair(found)
    assert files.history.read_bytes() == whole


@pytest.mark.parametrize(("edit", "problem"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_reported_and_nothing_is_concluded_from_it(
    files: RunFiles, planned: RunState, edit: Edit, problem: str
) -> None:
    found = _edited(files, edit)
    assert found.damage[0] == problem
    assert histories.fold_events(found) is None


def test_line_that_is_too_long_is_damage_or_torn_and_read_in_bounded_memory(files: RunFiles, planned: RunState) -> None:
    long = b'{"ts": "' + b"a" * 100_000_000
    assert _edited(files, lambda lines: _joined(lines) + long).is_torn
    found = _edited(files, lambda lines: _joined([lines[0], long, *lines[1:3]]))
    assert found.damage == ["line 2 of the history cannot be read"]
    assert len(found.events) == 3


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_something_else_in_place_of_a_history_is_damage(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "run.json")
    found = histories.read_history(path)
    assert len(found.damage) == 1
    assert found.damage[0].startswith(f"cannot read {path}: ")


def test_missing_history_is_empty(tmp_path: Path) -> None:
    found = histories.read_history(tmp_path / "history.jsonl")
    assert (found.events, found.damage, found.last_hash) == ([], [], "")


def test_events_that_cannot_follow_each_other_are_damage(files: RunFiles, planned: RunState, event: MakeEvent) -> None:
    files.append([event("refinement_done", artifact_hash="1")], planned)
    found = files.read_history()
    assert histories.fold_events(found) is None
    assert found.damage == ["the events of the history do not follow from each other"]


def test_what_no_file_can_hold_is_replaced(files: RunFiles, planned: RunState, event: MakeEvent) -> None:
    files.append([event("odd", half="\ud800", number=float("nan"), infinite=float("inf"), umlaut="ü")], planned)
    found = files.read_history()
    assert found.damage == []
    assert found.events[-1].payload.dump() == {"half": "?", "number": None, "infinite": None, "umlaut": "ü"}


def test_forged_start_at_the_end_is_not_where_the_state_comes_from(files: RunFiles, planned: RunState) -> None:
    def edit(lines: list[bytes]) -> bytes:
        forged = json.loads(lines[0])
        forged["payload"]["state"]["status"] = "completed"
        return _joined([*lines, json.dumps(forged).encode()])

    found = _edited(files, edit)
    assert found.damage == ["line 4 of the history does not follow the line before it"]
    assert files.read()[0] == planned
