"""Start one pytest session in a new process, and return its result."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.errors import LoopError
from pytest_loop.processes import child
from pytest_loop.processes.fence import Fence
from pytest_loop.session.bytecode import BYTECODE_VARIABLE, BytecodeCache
from pytest_loop.session.history import SessionHistory
from pytest_loop.session.result import SessionResult

# The variable that names the pipe of a session, a pipe with the key of its messages, and its order. A program can read
# the variables with which it was started, but not a pipe that is empty.
SESSION_VARIABLE = "PYTEST_LOOP_SESSION"
# Like `python -m pytest`, but a module of the working folder never hides an installed one.
START_SCRIPT = """\
import os, sys
here = os.getcwd()
sys.path[:] = [path for path in sys.path if path not in ("", here)] + [here]
import pytest
sys.exit(pytest.main())
"""
# Shows a session while it runs: its name, and a function that describes its progress.
ShowProgress = Callable[[str, Callable[[], str]], AbstractContextManager[None]]
# Where pytest looks for its settings, in this order.
_SETTINGS_FILES = ("pytest.toml", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
_KEY_LENGTH = 16
_INTERRUPTED, _INTERNAL_ERROR, _USAGE_ERROR = 2, 3, 4


class SessionError(LoopError):
    """The session ended before it judged anything."""


class SessionStoppedError(SessionError):
    """The session was stopped on request."""


class LauncherDiedError(LoopError):
    """The launcher died while its session was running."""


class Session(Protocol):
    """A way to run pytest sessions that judge."""

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        """Run one session with `extra` arguments; raise `SessionError` if nothing was judged."""


class Launcher(Protocol):
    """Start the process of a session: `ColdLauncher` here, or one of `session.warm`."""

    def has_loaded_pytest(self, fence: Fence | None) -> bool:
        """Return whether the next session inside this fence finds pytest imported."""

    def start(self, command: child.Command, mark: str) -> child.Child:
        """Start a session whose processes carry `mark`; its `wait` raises `LauncherDiedError` if the launcher died."""

    def recover(self) -> None:
        """Prepare for the next session after the launcher has died."""

    def close(self) -> None:
        """End every process that serves sessions."""


class ColdLauncher:
    """Start every session as a new interpreter."""

    def has_loaded_pytest(self, fence: Fence | None) -> bool:  # noqa: ARG002 - the protocol has it
        return False

    def start(self, command: child.Command, mark: str) -> child.Child:
        return child.start_process(command, mark)

    def recover(self) -> None:
        """Do nothing: there is no process that could die."""

    def close(self) -> None:
        """Do nothing: there is no process to end."""


@dataclass
class SubprocessSession:
    """Run each session in its own process, with the user's arguments for pytest.

    `columns` is the width of the terminal that shows their output, 0 if none does; `display` are pytest's arguments for
    this output.
    """

    arguments: tuple[str, ...]
    folder: Path
    timeout: float
    environment: Mapping[str, str]
    on_output: Callable[[bytes], None]
    should_continue: Callable[[], bool] = lambda: True
    bytecode: BytecodeCache | None = None
    launcher: Launcher = field(default_factory=ColdLauncher)
    history: SessionHistory = field(default_factory=SessionHistory)
    fence: Fence | None = None
    columns: int = 0
    display: tuple[str, ...] = ()
    show_progress: ShowProgress = lambda _name, _describe: nullcontext()

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        order = order.model_copy(update={"columns": self.columns})
        result = self._run(self.history.extend_order(order), (*extra, *self.display))
        if order.can_stop_early and result.plan is not None and result.has_failures:
            result.evidence |= self.history.find_earlier(result.plan.items, result.evidence)
        self.history.add(result.evidence)
        return result

    def _run(self, order: SessionOrder, extra: tuple[str, ...]) -> SessionResult:
        variables: dict[str, str] = {}
        launcher: Launcher = ColdLauncher() if order.is_deciding else self.launcher
        if self.bytecode is not None:
            folder = self.bytecode.prepare(is_cold=not launcher.has_loaded_pytest(self.fence))
            variables = {BYTECODE_VARIABLE: str(folder), "PYTHONDONTWRITEBYTECODE": ""}
        try:
            return self._run_process(order, extra, variables, launcher.start)
        except LauncherDiedError:
            self.launcher.recover()
            return self._run_process(order, extra, variables, child.start_process)

    def _run_process(
        self, order: SessionOrder, extra: tuple[str, ...], variables: Mapping[str, str], start: child.Starter
    ) -> SessionResult:
        read_end, write_end = os.pipe()
        result = SessionResult()
        key = secrets.token_bytes(_KEY_LENGTH)
        key_end, key_entry = os.pipe()
        os.write(key_entry, key)
        os.close(key_entry)
        reader = threading.Thread(target=result.read_messages, args=(read_end, key), daemon=True)
        with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
            path = Path(folder) / "order.json"
            path.write_text(order.model_dump_json(), encoding="utf-8")
            command = self._make_command(f"{write_end} {key_end} {path}", (write_end, key_end), extra, variables)
            reader.start()
            name = "collecting tests" if "--collect-only" in extra else "running tests"
            try:
                with self.show_progress(name, result.describe_progress):
                    completed = child.run_command(command, start)
            except child.CannotStartError as error:
                raise SessionError(str(error)) from None
            finally:
                os.close(write_end)
                os.close(key_end)
                reader.join(child.GRACE_PERIOD)
        result.ending = _describe_ending(completed)
        result.output = completed.output
        if completed.ending is child.Ending.REQUEST:
            raise SessionStoppedError("the evaluation was stopped on request")
        _check_result(result)
        return result

    def _make_command(
        self, order: str, pipes: tuple[int, int], extra: tuple[str, ...], variables: Mapping[str, str]
    ) -> child.Command:
        return child.Command(
            [sys.executable, "-c", START_SCRIPT, *_replace_missing_settings(self.arguments), *extra],
            self.folder,
            self.timeout,
            env={**self.environment, **variables, SESSION_VARIABLE: order},
            pass_fds=pipes,
            on_output=self.on_output,
            should_continue=self.should_continue,
            ends_detached=True,
            fence=self.fence,
        )


def _replace_missing_settings(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Replace the file after `-c` if it is gone: a task may ask to move the settings to another file."""
    if "-c" not in arguments:
        return arguments
    index = arguments.index("-c") + 1
    path = Path(arguments[index])
    if path.exists():
        return arguments
    paths = (path.with_name(name) for name in _SETTINGS_FILES)
    other = next((str(other) for other in paths if other.exists()), os.devnull)
    return (*arguments[:index], other, *arguments[index + 1 :])


def _check_result(result: SessionResult) -> None:
    """Raise `SessionError` if nothing was judged; a session that stopped at a failure has judged."""
    is_interrupted = result.exit_status == _INTERRUPTED and not result.problems and not result.has_failures
    if result.plan is None or is_interrupted or result.exit_status in (_INTERNAL_ERROR, _USAGE_ERROR):
        last_lines = [line for line in result.output.splitlines() if line.strip()][-3:]
        raise SessionError(f"the evaluation could not be carried out ({result.ending}): {' / '.join(last_lines)}")


def _describe_ending(completed: child.CommandResult) -> str:
    if completed.ending is not child.Ending.COMPLETED:
        return str(completed.ending.value)
    code = completed.exit_code
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
