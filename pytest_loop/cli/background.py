"""Runs in the background: detach, attach, pause, and resume after a crash."""

from __future__ import annotations

import codecs
import subprocess
import sys
import time
from typing import TextIO

import pytest

from pytest_loop.cli.output import build_result, write_json
from pytest_loop.cli.runs import describe_condition, describe_status, find_active_run, find_run, get_exit_code
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import StateError
from pytest_loop.run.console import Console
from pytest_loop.session.runner import START_SCRIPT
from pytest_loop.settings.command_line import build_resume_arguments
from pytest_loop.settings.settings import Settings
from pytest_loop.store.lock import Owner, wait_until
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

WAIT_SECONDS = 60.0
MAX_ATTEMPTS = 3
_POLL_SECONDS = 0.05


def detach(files: RunFiles, settings: Settings, print_line: PrintLine) -> int:
    """Continue a run in a background process; return the exit code of that process if it ends at once, else 0.

    Closing the terminal does not end the background process; it writes its output to the log of the run.
    """
    files.release()
    arguments = [*build_resume_arguments(settings.arguments), f"--loop-resume={files.alias}"]
    log_start = files.log.length
    with files.log.open_for_appending() as log:
        process = subprocess.Popen(
            [sys.executable, "-c", START_SCRIPT, *arguments],
            cwd=settings.folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    wait_until(lambda: process.poll() is not None or (files.is_busy and files.pid == str(process.pid)), WAIT_SECONDS)
    if process.poll() is not None:
        for line in files.log.read_after(log_start).decode("utf-8", "replace").splitlines():
            print_line(line)
        return process.returncode
    process.returncode = 0  # keeps Popen from warning about a child that is still running
    print_line(f"{files.alias} works in the background: process {process.pid}, log {files.log.path}")
    print_line(
        f"follow it with pytest-loop attach --run {files.alias}, end it with pytest-loop stop --run {files.alias}"
    )
    return 0


def check_attempts(files: RunFiles, *, force: bool) -> int:
    """Return the number of this attempt to resume a run whose process died, or 0 if it did not die.

    Raises `StateError` after too many attempts at the same step, unless `force` is set.
    """
    if files.owner is not Owner.DEAD:
        return 0
    state = files.read()[0]
    attempts = files.count_attempts(state.progress.evaluations)
    if attempts >= MAX_ATTEMPTS and not force and not state.is_over:
        place = f"{state.current_step.value} of iteration {state.iteration}"
        raise StateError(
            f"{files.alias} was taken up {attempts} times at {place}, and its process died each time: "
            f"find out why, then go on with pytest-loop resume --run {files.alias} --force"
        )
    return attempts + 1


def attach(settings: Settings, store: Store, console: Console) -> int:
    """Show the log of a run until its process ends; an interrupt leaves the run working."""
    files = find_run(store, settings.start.alias or settings.commands.attach)
    if not files.log.exists:
        raise StateError(f"{files.alias} has no log: only runs started with --loop-detach can be attached to")
    try:
        _follow_log(files, console.stream)
    except KeyboardInterrupt:
        console.print_line(f"\n{files.alias} goes on: end it with pytest-loop stop --run {files.alias}")
        return int(pytest.ExitCode.INTERRUPTED)
    state, history = files.read()
    if settings.output.json:
        write_json(build_result(files, state, history), settings.output.json, console.print_line)
    if state.is_over:
        return get_exit_code(state)
    condition = describe_condition(state, files)
    console.print_line(f"{files.alias} is {condition}: go on with pytest-loop resume --run {files.alias}")
    return int(pytest.ExitCode.INTERRUPTED)


def _follow_log(files: RunFiles, stream: TextIO) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    position = 0
    is_busy = True
    while is_busy:
        is_busy = files.is_busy  # before the log is read, so that its last lines are not missed
        data = files.log.read_after(position)
        position += len(data)
        stream.write(decoder.decode(data))
        stream.flush()
        if is_busy and not data:
            time.sleep(_POLL_SECONDS)


def pause(settings: Settings, store: Store, console: Console) -> int:
    """Ask the process of a run to end, so that the run can be resumed."""
    files = find_active_run(store, settings.start.alias or settings.commands.pause, "pause")
    if not files.is_busy:
        console.print_line(f"no process works on {files.alias}: {describe_status(files.read()[0], files)}")
        return 0
    files.requests.ask_to_pause()
    is_paused = wait_until(lambda: not files.is_busy, WAIT_SECONDS)
    action = f"paused {files.alias}" if is_paused else f"asked {files.alias} to pause"
    console.print_line(f"{action}: go on with pytest-loop resume --run {files.alias}")
    if settings.output.json:
        write_json(build_result(files, *files.read()), settings.output.json, console.print_line)
    return 0
