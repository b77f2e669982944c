"""Marks in the environment of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pytest_loop.processes.process_marks import (
    MARK,
    _find_marked_processes,
    _kill,
    add_mark,
    compute_folder_mark,
    end_marked_processes,
    mark_descendants,
)

linux_only = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system shows no environments")


@linux_only
def test_an_outer_mark_finds_the_children_of_an_inner_command(tmp_path: Path) -> None:
    env = add_mark(add_mark({"PATH": os.environ["PATH"]}, "outer"), "inner")
    child = subprocess.Popen(["sleep", "60"], env=env)
    assert end_marked_processes("other") == 0
    assert end_marked_processes("outer") == 1
    assert child.wait() == -signal.SIGKILL
    assert end_marked_processes("outer") == 0


@linux_only
@pytest.mark.parametrize("before", [None, "outer"])
def test_processes_started_under_a_mark_end_after_the_block(
    monkeypatch: pytest.MonkeyPatch, before: str | None
) -> None:
    monkeypatch.delenv(MARK, raising=False)
    if before:
        monkeypatch.setenv(MARK, before)
    with mark_descendants("run"):
        child = subprocess.Popen(["sleep", "60"], start_new_session=True)
        assert child.poll() is None
    assert child.wait() == -signal.SIGKILL
    assert os.environ.get(MARK) == before


def test_a_folder_always_has_the_same_mark(tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(tmp_path)
    assert (
        compute_folder_mark(tmp_path) == compute_folder_mark(tmp_path / "here") != compute_folder_mark(tmp_path.parent)
    )


@linux_only
def test_processes_started_during_the_search_are_ended(tmp_path: Path) -> None:
    """A process that restarts itself has to be faster than two scans."""
    env = add_mark(dict(os.environ), "again")
    script = "for n in 1 2 3; do setsid sleep 60 & sleep 0.01; done; wait"
    child = subprocess.Popen(["sh", "-c", script], env=env, start_new_session=True)
    time.sleep(0.3)
    assert end_marked_processes("again") >= 4
    child.wait()
    assert _find_marked_processes("again") == []


def test_a_process_that_has_ended_is_not_counted_as_killed() -> None:
    with subprocess.Popen(["true"]) as child:
        child.wait()
    assert not _kill(child.pid)
