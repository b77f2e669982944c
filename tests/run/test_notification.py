"""A person is told that a run has ended."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_loop.run.console import Console
from pytest_loop.run.notification import notify_end, render_notification, run_stop_command
from pytest_loop.settings.options import OutputSettings
from pytest_loop.settings.settings import make_default_settings
from tests.core.scripted_run import ScriptedRun

STATE = ScriptedRun().state
ALIAS = STATE.task_alias


def test_command_gets_status_alias_and_report(tmp_path: Path) -> None:
    script = "import sys; open('told', 'w').write(' '.join(sys.argv[1:]))"
    output = OutputSettings(on_stop=f'{sys.executable} -c "{script}" {{status}} {{alias}} {{report}}', report="r.html")
    settings = replace(make_default_settings(tmp_path), output=output)
    notify_end(STATE, settings, Console(io.StringIO()))
    assert (tmp_path / "told").read_text() == f"running {ALIAS} {tmp_path / 'r.html'}"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("no-such-program", "loop_on_stop: cannot run 'no-such-program': no such command is installed here"),
        ("echo 'x", "loop_on_stop: No closing quotation"),
        (f"{sys.executable} -c \"import sys; sys.exit('odd')\"", "loop_on_stop: it ended with exit code 1: odd"),
    ],
)
def test_command_that_fails_is_named(words: str, problem: str, tmp_path: Path) -> None:
    stream = io.StringIO()
    settings = replace(make_default_settings(tmp_path), output=OutputSettings(on_stop=words))
    notify_end(STATE, settings, Console(stream))
    assert stream.getvalue() == f"{problem}\n"


def test_command_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_loop.run.notification.COMMAND_SECONDS", 0.2)
    assert run_stop_command("sleep 9", STATE, "", tmp_path) == "loop_on_stop: it did not end within 0.2 s"


def test_terminal_shows_a_notification_after_a_long_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(Console, "can_ask", True)
    notify_end(STATE, make_default_settings(tmp_path), Console(stream))
    assert stream.getvalue() == ""
    notify_end(STATE.replace(completed_phase_seconds=61.0), make_default_settings(tmp_path), Console(stream))
    assert stream.getvalue() == render_notification(STATE) == f"\x1b]9;pytest-loop: {ALIAS} running\x1b\\\a"
