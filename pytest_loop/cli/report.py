"""The report of a run as a file, and in a browser."""

from __future__ import annotations

import os
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.text.redaction import Redactor
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.errors import StateError
from pytest_loop.settings.settings import Settings
from pytest_loop.show import html
from pytest_loop.store import disk


def check(settings: Settings) -> None:
    """What can be seen to be wrong before a run begins whose report nobody could write."""
    if not settings.output.report:
        return
    html.check()
    path = Path(settings.output.report)
    with disk.translate_errors("write", path, "write it with --loop-report"):
        if path.is_dir():
            raise StateError(f"--loop-report: expected a path like report.html, found a folder: {path}")
        if not path.parent.is_dir():
            raise StateError(f"--loop-report: there is no folder {path.parent}: make it first")


def write(settings: Settings, state: RunState, events: Sequence[Event], say: PrintLine, status: str = "") -> None:
    """Write the report, and show it where that was asked for; secrets of the environment stay out of it."""
    check(settings)
    path = Path(settings.output.report)
    page = Redactor(os.environ)(html.report(state, events, status))
    with disk.translate_errors("write", path, "write it with --loop-report"):
        path.write_bytes(page.encode("utf-8", "replace"))
    say(f"wrote {path}")
    if settings.output.report_open and not webbrowser.open(path.resolve().as_uri()):
        say(f"no browser was found: open {path} yourself")
