"""Notify the user that a run has ended: through the terminal, and with the command of `loop_on_stop`."""

from __future__ import annotations

import shlex
from pathlib import Path

from pytest_loop.agents.presets import fill_placeholders
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes.child import CannotStartError, Command, Ending, run_command
from pytest_loop.run.console import Console
from pytest_loop.settings.settings import Settings

# A shorter run needs no notification: the user is probably still at the terminal.
_LONG_RUN_SECONDS = 60
COMMAND_SECONDS = 30.0


def notify_end(state: RunState, settings: Settings, console: Console) -> None:
    """Notify the user through the terminal, if the run was long, and with their command, if there is one."""
    output = settings.output
    if console.can_ask and state.completed_phase_seconds >= _LONG_RUN_SECONDS:
        console.stream.write(render_notification(state))
    if output.on_stop:
        report = str((settings.folder / output.report).resolve()) if output.report else ""
        if problem := run_stop_command(output.on_stop, state, report, settings.root):
            console.print_line(problem)


def render_notification(state: RunState) -> str:
    """Return the escape sequence of a desktop notification (OSC 9), and a bell."""
    return f"\x1b]9;pytest-loop: {state.task_alias} {state.status.value}\x1b\\\a"


def run_stop_command(command: str, state: RunState, report: str, folder: Path) -> str:
    """Run the user's command without a shell; return what went wrong, or an empty text."""
    values = {"status": state.status.value, "alias": state.task_alias, "report": report}
    try:
        words = fill_placeholders(shlex.split(command), values)
        result = run_command(Command(words, folder, COMMAND_SECONDS))
    except (CannotStartError, ValueError, IndexError) as error:
        return f"loop_on_stop: {error}"
    if result.ending is not Ending.COMPLETED:
        return f"loop_on_stop: it did not end within {COMMAND_SECONDS:g} s"
    lines = result.output.strip().splitlines()
    reason = f": {shorten(lines[-1])}" if lines else ""
    return f"loop_on_stop: it ended with exit code {result.exit_code}{reason}" if result.exit_code else ""
