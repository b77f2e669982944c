"""Runs in the background: started apart from their terminal, followed, paused, and taken up again after a crash."""

from __future__ import annotations

import codecs
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import pytest

from pytest_loop.cli import runs
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import StateError
from pytest_loop.session.runner import START
from pytest_loop.settings.command_line import build_resume_arguments
from pytest_loop.settings.settings import Settings
from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

PATIENCE = 60.0
MOST_ATTEMPTS = 3
_POLL = 0.05


def detach(files: RunFiles, arguments: Sequence[str], folder: Path, say: PrintLine) -> int:
    """Let a process of its own go on with a run that this one has begun; gives the exit code.

    It has a session of its own, so that no terminal ends it, and everything it says is in the log of the run.
    """
    files.release()
    words = [*build_resume_arguments(arguments), f"--loop-resume={files.alias}"]
    begin = files.log.length
    with files.log.open_for_appending() as log:
        process = subprocess.Popen(
            [sys.executable, "-c", START, *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    _wait(lambda: process.poll() is not None or (files.is_busy and files.pid == str(process.pid)))
    if process.poll() is not None:
        for line in files.log.read_after(begin).decode("utf-8", "replace").splitlines():
            say(line)
        return process.returncode
    process.returncode = 0  # nobody waits for it
    say(f"{files.alias} works in the background: process {process.pid}, log {files.log.path}")
    say(f"follow it with pytest --loop-attach={files.alias}, end it with pytest --loop-stop --loop-alias={files.alias}")
    return 0


def _wait(is_done: Callable[[], bool], patience: float = PATIENCE) -> bool:
    until = time.monotonic() + patience
    while not is_done():
        if time.monotonic() >= until:
            return False
        time.sleep(_POLL)
    return True


# -- after a crash


def attempt(files: RunFiles, *, force: bool) -> int:
    """Which attempt it is to take up a run whose process died; 0 where it did not, and an error after too many."""
    if files.owner is not Owner.DEAD:
        return 0
    state = files.read()[0]
    before = files.count_attempts(state.progress.evaluations)
    if before >= MOST_ATTEMPTS and not force and not state.is_over:
        where = f"{state.current_step.value} of iteration {state.iteration}"
        raise StateError(
            f"{files.alias} was taken up {before} times at {where}, and its process died each time: "
            f"find out why, then go on with pytest --loop-resume={files.alias} --loop-force"
        )
    return before + 1


# -- commands


def carry_out(name: str, settings: Settings, store: Store, say: PrintLine, stream: TextIO) -> int:
    """The exit code of a command: attach or pause."""
    if name == "attach":
        return _attach(settings, store, say, stream)
    return _pause(settings, store, say)


def _attach(settings: Settings, store: Store, say: PrintLine, stream: TextIO) -> int:
    """Show what a run says until nobody works on it; whoever leaves before leaves it at work."""
    files = runs.chosen(store, settings.start.alias or settings.commands.attach)
    if not files.log.exists:
        raise StateError(f"{files.alias} has no log: only a run that was started with --loop-detach can be followed")
    try:
        _follow(files, stream)
    except KeyboardInterrupt:
        say(f"\n{files.alias} goes on: end it with pytest --loop-stop --loop-alias={files.alias}")
        return int(pytest.ExitCode.INTERRUPTED)
    state, history = files.read()
    if settings.output.json:
        runs.give(runs.result(files, state, history), settings.output.json, say)
    return _left(state, files, say)


def _follow(files: RunFiles, stream: TextIO) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    place = 0
    is_busy = True
    while is_busy:
        is_busy = files.is_busy  # before we read: what was said until then is read
        data = files.log.read_after(place)
        place += len(data)
        stream.write(decoder.decode(data))
        stream.flush()
        if is_busy and not data:
            time.sleep(_POLL)


def _left(state: RunState, files: RunFiles, say: PrintLine) -> int:
    """The exit code for a run that nobody works on any more."""
    if state.is_over:
        return int(pytest.ExitCode.OK if state.status is Status.COMPLETED else pytest.ExitCode.TESTS_FAILED)
    say(f"{files.alias} is {runs.condition(state, files)}: go on with pytest --loop-resume={files.alias}")
    return int(pytest.ExitCode.INTERRUPTED)


def _pause(settings: Settings, store: Store, say: PrintLine) -> int:
    """Ask the process of a run to leave it where it stands."""
    files = runs.at_work(store, settings.start.alias or settings.commands.pause, "pause")
    if not files.is_busy:
        say(f"nobody works on {files.alias}: {runs.shown_status(files.read()[0], files)}")
        return 0
    files.request_pause()
    is_left = _wait(lambda: not files.is_busy)
    words = f"paused {files.alias}" if is_left else f"asked {files.alias} to pause"
    say(f"{words}: go on with pytest --loop-resume={files.alias}")
    if settings.output.json:
        runs.give(runs.result(files, *files.read()), settings.output.json, say)
    return 0
