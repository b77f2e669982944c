"""Runs in the background: following a log, and pausing."""

from __future__ import annotations

import io
import os
import threading
import time
from pathlib import Path

import pytest

from pytest_loop.cli import background
from pytest_loop.errors import StateError
from pytest_loop.run.console import Console
from pytest_loop.settings.options import CommandSettings
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.store.project_runs import Store
from tests.cli.conftest import HoldRuns, MakeRun


def test_attach_needs_a_log(project: Path, make_run: MakeRun) -> None:
    make_run()
    settings = make_default_settings(project, commands=CommandSettings(attach="guide"))
    with pytest.raises(StateError, match="only runs started with --loop-detach can be attached to"):
        background.attach(settings, Store(project), Console(io.StringIO()))


def test_attach_shows_the_log_until_the_run_is_free(project: Path, make_run: MakeRun) -> None:
    files = make_run(reason="iteration_limit")
    files.acquire()
    with files.log.open_for_appending() as log:
        os.write(log, "first ä\n".encode())

    def finish() -> None:
        time.sleep(0.2)
        with files.log.open_for_appending() as log:
            os.write(log, b"last\n")
        files.release()

    stream = io.StringIO()
    settings = make_default_settings(project, commands=CommandSettings(attach="guide"))
    thread = threading.Thread(target=finish)
    thread.start()
    exit_code = background.attach(settings, Store(project), Console(stream))
    thread.join()
    assert (exit_code, stream.getvalue()) == (1, "first ä\nlast\n")


def test_attach_to_an_unfinished_run_tells_how_to_resume(project: Path, make_run: MakeRun) -> None:
    files = make_run()
    with files.log.open_for_appending() as log:
        os.write(log, b"working\n")
    stream = io.StringIO()
    settings = make_default_settings(project, commands=CommandSettings(attach="guide"))
    assert background.attach(settings, Store(project), Console(stream)) == pytest.ExitCode.INTERRUPTED
    assert stream.getvalue() == "working\nguide is paused: go on with pytest-loop resume --run guide\n"


def test_pause_of_an_idle_run_changes_nothing(project: Path, make_run: MakeRun) -> None:
    make_run()
    stream = io.StringIO()
    settings = make_default_settings(project, commands=CommandSettings(pause="guide"))
    assert background.pause(settings, Store(project), Console(stream)) == 0
    assert stream.getvalue() == "no process works on guide: running (paused)\n"


def test_pause_asks_the_process_of_the_run(
    project: Path, make_run: MakeRun, hold_runs: HoldRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = make_run()
    hold_runs("guide")
    monkeypatch.setattr(background, "WAIT_SECONDS", 0.0)
    stream = io.StringIO()
    settings = make_default_settings(project, commands=CommandSettings(pause="guide"))
    assert background.pause(settings, Store(project), Console(stream)) == 0
    assert stream.getvalue() == "asked guide to pause: go on with pytest-loop resume --run guide\n"
    assert files.requests.has_pause
