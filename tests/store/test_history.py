"""A damaged history is read as far as possible, and its damage is reported."""

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
from pytest_loop.store.signature import Signer

MakeEvent = Callable[..., Event]
Edit = Callable[[list[bytes]], bytes]


def _join(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _edit_history(files: RunFiles, edit: Edit) -> histories.History:
    files.history.write_bytes(edit(files.history.read_bytes().splitlines()))
    return histories.read_history(files.history, Signer(files.folder))


HARMLESS: dict[str, Edit] = {
    "as written": _join,
    "with Windows line ends": lambda lines: b"\r\n".join(lines) + b"\r\n",
    "with a byte order mark": lambda lines: b"\xef\xbb\xbf" + _join(lines),
    "with empty lines": lambda lines: b"\n\n".join(lines) + b"\n\n",
    "with padding between lines": lambda lines: b"\n\0\0\0".join(lines) + b"\n",
    "with two objects on a line": lambda lines: lines[0] + lines[1] + b"\n" + lines[2] + b"\n",
    "with two objects and a space on a line": lambda lines: lines[0] + b"  " + lines[1] + b"\n" + lines[2] + b"\n",
    "without an end of the last line": lambda lines: b"\n".join(lines),
}
TORN: dict[str, Edit] = {
    "half a line": lambda lines: _join(lines) + lines[2][:40],
    "one byte": lambda lines: _join(lines) + b"{",
    "padding": lambda lines: _join(lines) + b"\0" * 4096,
    "half a line and padding": lambda lines: _join(lines) + lines[2][:40] + b"\0" * 512,
    "half a character": lambda lines: _join(lines) + b'{"ts": "\xc3',
    "half a line with an end": lambda lines: _join(lines) + lines[2][:40] + b"\n",
    "something that is no event": lambda lines: _join(lines) + b"[1, 2]\n",
}
DAMAGED: dict[str, tuple[Edit, str]] = {
    "a torn line in the middle": (
        lambda lines: _join([lines[0], lines[1][:30], lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "a line that is no text": (
        lambda lines: _join([lines[0], b"\xff\xfe\xff", lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "a number that is none": (
        lambda lines: _join([lines[0], lines[1].replace(b'["one", "two"]', b"NaN"), lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "endless nesting": (
        lambda lines: _join([lines[0], b'{"a":' * 100_000, lines[2]]),
        "line 2 of the history cannot be read",
    ),
    "an edited line": (
        lambda lines: _join([lines[0], lines[1].replace(b"two", b"six"), lines[2]]),
        "line 3 of the history does not follow the line before it",
    ),
    "a missing line": (
        lambda lines: _join([lines[0], lines[2]]),
        "line 2 of the history does not follow the line before it",
    ),
    "lines in another order": (
        lambda lines: _join([lines[0], lines[2], lines[1]]),
        "line 2 of the history does not follow the line before it",
    ),
    "a line of another tool": (
        lambda lines: _join([*lines, _remove_chain(lines[1])]),
        "line 4 of the history was not written by this run",
    ),
    "several unreadable lines at the end": (
        lambda lines: _join([*lines, b"what", b"is this"]),
        "line 4 of the history cannot be read",
    ),
}


def _remove_chain(line: bytes) -> bytes:
    return json.dumps({name: value for name, value in json.loads(line).items() if name != "prev"}).encode()


@pytest.mark.parametrize("edit", HARMLESS.values(), ids=HARMLESS.keys())
def test_other_formats_of_the_same_lines_are_no_damage(files: RunFiles, planned: RunState, edit: Edit) -> None:
    history = _edit_history(files, edit)
    assert [event.event for event in history.events] == ["run_started", "plan_created", "coffee_made"]
    assert history.damage == []
    assert histories.fold_events(history) == planned


@pytest.mark.parametrize("edit", TORN.values(), ids=TORN.keys())
def test_torn_end_is_cut_and_nothing_before_it_is_lost(files: RunFiles, planned: RunState, edit: Edit) -> None:
    data = files.history.read_bytes()
    history = _edit_history(files, edit)
    assert (history.is_torn, history.damage, len(history.events)) == (True, [], 3)
    assert files.read()[0] == planned
    files.repair(history)
    assert files.history.read_bytes() == data


@pytest.mark.parametrize(("edit", "problem"), DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_reported_and_prevents_a_fold(files: RunFiles, planned: RunState, edit: Edit, problem: str) -> None:
    history = _edit_history(files, edit)
    assert history.damage[0] == problem
    assert histories.fold_events(history) is None


def test_too_long_line_is_damage_or_torn_and_read_in_bounded_memory(files: RunFiles, planned: RunState) -> None:
    long = b'{"ts": "' + b"a" * 100_000_000
    assert _edit_history(files, lambda lines: _join(lines) + long).is_torn
    history = _edit_history(files, lambda lines: _join([lines[0], long, *lines[1:3]]))
    assert history.damage == ["line 2 of the history cannot be read"]
    assert len(history.events) == 3


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_path_that_is_no_file_is_damage(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "history.jsonl"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "run.json")
    history = histories.read_history(path, Signer(path.parent))
    assert len(history.damage) == 1
    assert history.damage[0].startswith(f"cannot read {path}: ")


def test_missing_history_is_empty(tmp_path: Path) -> None:
    history = histories.read_history(tmp_path / "history.jsonl", Signer(tmp_path))
    assert (history.events, history.damage, history.last_hash) == ([], [], "")


def test_events_that_cannot_follow_each_other_are_damage(files: RunFiles, planned: RunState, event: MakeEvent) -> None:
    files.append([event("refinement_done", artifact_hash="1")], planned)
    history = files.read_history()
    assert histories.fold_events(history) is None
    assert history.damage == ["the events of the history do not follow from each other"]


def test_values_that_json_cannot_hold_are_replaced(files: RunFiles, planned: RunState, event: MakeEvent) -> None:
    files.append([event("odd", half="\ud800", number=float("nan"), infinite=float("inf"), umlaut="ü")], planned)
    history = files.read_history()
    assert history.damage == []
    assert history.events[-1].payload.dump() == {"half": "?", "number": None, "infinite": None, "umlaut": "ü"}


def test_forged_start_at_the_end_does_not_become_the_state(files: RunFiles, planned: RunState) -> None:
    def edit(lines: list[bytes]) -> bytes:
        forged = json.loads(lines[0])
        forged["payload"]["state"]["status"] = "completed"
        return _join([*lines, json.dumps(forged).encode()])

    history = _edit_history(files, edit)
    assert history.damage == ["line 4 of the history does not follow the line before it"]
    assert files.read()[0] == planned
