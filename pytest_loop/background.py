"""Runs in the background: started apart from their terminal, followed, paused, and taken up again after a crash."""

from __future__ import annotations

import codecs
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import pytest

from pytest_loop import looking
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.errors import StateError
from pytest_loop.evaluate.session import START
from pytest_loop.options import NO_ALIAS
from pytest_loop.run_options import RunOptions
from pytest_loop.store.lock import Owner
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles

Say = Callable[[str], None]
PATIENCE = 60.0
MOST_ATTEMPTS = 3
_POLL = 0.05
# What only the process says that begins a run; the one in the background goes on with it.
_OF_THE_BEGINNING = ("--loop-task", "--loop-alias", "--loop-resume")


def detach(files: RunFiles, arguments: Sequence[str], folder: Path, resumed: str | None, say: Say) -> int:
    """Let a process of its own go on with a run that this one has begun; gives the exit code.

    It has a session of its own, so that no terminal ends it, and everything it says is in the log of the run.
    """
    files.release()
    words = [*later_words(arguments, resumed), f"--loop-resume={files.alias}"]
    begin = files.log.length
    with files.log.opened() as log:
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
        for line in files.log.after(begin).decode("utf-8", "replace").splitlines():
            say(line)
        return process.returncode
    process.returncode = 0  # nobody waits for it
    say(f"{files.alias} works in the background: process {process.pid}, log {files.log.path}")
    say(f"follow it with pytest --loop-attach={files.alias}, end it with pytest --loop-stop --loop-alias={files.alias}")
    return 0


def later_words(arguments: Sequence[str], resumed: str | None = None, keep: Sequence[str] = ()) -> Iterator[str]:
    """The arguments of a person for the process that goes on: without what the run has taken from them already.

    One that nobody listens to writes no result to its standard output; `keep` are options that stay all the same.
    """
    words = iter(arguments)
    for word in words:
        name, sign, value = word.partition("=")
        if name == "--loop-detach" and name not in keep:
            continue
        if name in _OF_THE_BEGINNING:
            is_followed = name != "--loop-resume" or resumed not in (None, NO_ALIAS)
            if not sign and is_followed:
                next(words, None)
        elif name == "--loop-json" and name not in keep:
            value = value if sign else next(words, "")
            if value != "-":
                yield f"{name}={value}"
        else:
            yield word


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
    before = files.attempts(state.evaluations)
    if before >= MOST_ATTEMPTS and not force and not state.is_over:
        where = f"{state.current_step.value} of iteration {state.iteration}"
        raise StateError(
            f"{files.alias} was taken up {before} times at {where}, and its process died each time: "
            f"find out why, then go on with pytest --loop-resume={files.alias} --loop-force"
        )
    return before + 1


# -- commands


def carry_out(name: str, options: RunOptions, store: Store, say: Say, stream: TextIO) -> int:
    """The exit code of a command: attach or pause."""
    if name == "attach":
        return _attach(options, store, say, stream)
    return _pause(options, store, say)


def _attach(options: RunOptions, store: Store, say: Say, stream: TextIO) -> int:
    """Show what a run says until nobody works on it; whoever leaves before leaves it at work."""
    files = looking.chosen(store, options.alias or options.attach)
    if not files.log.exists:
        raise StateError(f"{files.alias} has no log: only a run that was started with --loop-detach can be followed")
    try:
        _follow(files, stream)
    except KeyboardInterrupt:
        say(f"\n{files.alias} goes on: end it with pytest --loop-stop --loop-alias={files.alias}")
        return int(pytest.ExitCode.INTERRUPTED)
    state, history = files.read()
    if options.json:
        looking.give(looking.result(files, state, history), options.json, say)
    return _left(state, files, say)


def _follow(files: RunFiles, stream: TextIO) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    place = 0
    is_busy = True
    while is_busy:
        is_busy = files.is_busy  # before we read: what was said until then is read
        data = files.log.after(place)
        place += len(data)
        stream.write(decoder.decode(data))
        stream.flush()
        if is_busy and not data:
            time.sleep(_POLL)


def _left(state: RunState, files: RunFiles, say: Say) -> int:
    """The exit code for a run that nobody works on any more."""
    if state.is_over:
        return int(pytest.ExitCode.OK if state.status is Status.COMPLETED else pytest.ExitCode.TESTS_FAILED)
    say(f"{files.alias} is {looking.condition(state, files)}: go on with pytest --loop-resume={files.alias}")
    return int(pytest.ExitCode.INTERRUPTED)


def _pause(options: RunOptions, store: Store, say: Say) -> int:
    """Ask the process of a run to leave it where it stands."""
    files = looking.at_work(store, options.alias or options.pause, "pause")
    if not files.is_busy:
        say(f"nobody works on {files.alias}: {looking.shown_status(files.read()[0], files)}")
        return 0
    files.ask_to_pause()
    is_left = _wait(lambda: not files.is_busy)
    words = f"paused {files.alias}" if is_left else f"asked {files.alias} to pause"
    say(f"{words}: go on with pytest --loop-resume={files.alias}")
    if options.json:
        looking.give(looking.result(files, *files.read()), options.json, say)
    return 0
