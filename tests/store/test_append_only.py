"""The log of a run in the background grows, and is read from any position."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.store.append_only import AppendOnlyFile, RunLog


def test_log_is_appended_to_and_read_after_a_position(tmp_path: Path) -> None:
    log = RunLog(tmp_path / "run.log")
    assert (log.exists, log.length) == (False, 0)
    for line in (b"first\n", b"second\n"):
        with log.open_for_appending() as descriptor:
            os.write(descriptor, line)
    assert (log.exists, log.length) == (True, 13)
    assert log.read_after(6) == b"second\n"


def test_missing_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot read .*run\.log: No such file or directory; .*, then try again"):
        RunLog(tmp_path / "run.log").read_after(0)


def test_failed_append_leaves_the_file_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = AppendOnlyFile(tmp_path / "history.jsonl")
    file.append(b"first\n")

    def fail(_descriptor: int) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(StateError, match="No space left on device"):
        file.append(b"second\n")
    assert file.path.read_bytes() == b"first\n"
    file.close()
