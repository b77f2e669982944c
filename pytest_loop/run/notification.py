"""Tell a person that a run has ended: through the terminal, or with a command of theirs."""

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
LONG_RUN_SECONDS = 60
COMMAND_SECONDS = 30.0


def notify_end(state: RunState, settings: Settings, console: Console) -> None:
    """Tell the terminal of a long run, and the command of the user, that a run has ended."""
    output = settings.output
    if console.can_ask and state.completed_phase_seconds >= LONG_RUN_SECONDS:
        console.stream.write(render_notification(state))
    if output.on_stop:
        report = str((settings.folder / output.report).resolve()) if output.report else ""
        if problem := run_stop_command(output.on_stop, state, report, settings.root):
            console.print_line(problem)


def render_notification(state: RunState) -> str:
    """Return a bell, and the sequence OSC 9 that terminals show as a notification."""
    return f"\x1b]9;pytest-loop: {state.task_alias} {state.status.value}\x1b\\\a"


def run_stop_command(words: str, state: RunState, report: str, folder: Path) -> str:
    """Run the user's command without a shell, and return what went wrong, if anything."""
    values = {"status": state.status.value, "alias": state.task_alias, "report": report}
    try:
        command = Command(fill_placeholders(shlex.split(words), values), folder, COMMAND_SECONDS)
        result = run_command(command)
    except (CannotStartError, ValueError, IndexError) as error:
        return f"loop_on_stop: {error}"
    if result.ending is not Ending.COMPLETED:
        return f"loop_on_stop: it did not end within {COMMAND_SECONDS:g} s"
    lines = result.output.strip().splitlines()
    reason = f": {shorten(lines[-1])}" if lines else ""
    return f"loop_on_stop: it ended with exit code {result.exit_code}{reason}" if result.exit_code else ""
