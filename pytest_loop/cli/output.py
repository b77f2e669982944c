"""Files that a command writes: the result as JSON, the report as HTML, the debrief as Markdown."""

from __future__ import annotations

import json
import os
import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pytest_loop.cli.runs import describe_condition, describe_status
from pytest_loop.core.events.event import Event
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.core.reporting import outcome
from pytest_loop.core.text.lengths import clip_text
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.errors import StateError
from pytest_loop.run.ending import read_change
from pytest_loop.settings.options import OutputSettings
from pytest_loop.store import disk
from pytest_loop.store.history import History
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workloads.debrief import render_debrief
from pytest_loop.workspace.artifact import Artifact

MAX_DOCUMENT_LENGTH = 256 * 1024


def build_result(files: RunFiles, state: RunState, history: History) -> dict[str, Any]:
    """Return the JSON of a run: its result, the condition of its process, and damage of its files."""
    pid = int(files.pid) if files.is_busy and files.pid.isdigit() else None
    condition = {"condition": describe_condition(state, files) or None, "pid": pid, "damage": history.damage}
    return outcome.build_result(state, history.events, str(files.history)) | condition


def write_json(data: Any, path: str, print_line: PrintLine) -> None:
    """Write JSON into a file, or to standard output for `-`."""
    text = json.dumps(data, indent=1, ensure_ascii=False) + "\n"
    if path == "-":
        sys.stdout.write(text.encode("utf-8", "replace").decode())
        sys.stdout.flush()
        return
    try:
        Path(path).write_bytes(text.encode("utf-8", "replace"))
    except OSError as error:
        raise StateError(f"--loop-json: cannot write {path}: {error.strerror or error}") from None
    print_line(f"wrote {path}")


def check_report_path(output: OutputSettings) -> None:
    """Raise `StateError` if the report could not be written at the end."""
    if not output.report:
        return
    path = Path(output.report)
    with disk.translate_errors("write", path, "write it with --loop-report"):
        if path.is_dir():
            raise StateError(f"--loop-report: expected a path like report.html, found a folder: {path}")
        if not path.parent.is_dir():
            raise StateError(f"--loop-report: there is no folder {path.parent}: make it first")


def write_report(
    output: OutputSettings, files: RunFiles, state: RunState, events: Sequence[Event], print_line: PrintLine
) -> None:
    """Write the report of a run."""
    from pytest_loop.show.html.report_page import render_report

    change, document = _read_diff_and_document(files, state)
    page = render_report(state, events, describe_status(state, files), change=change, document=document)
    _write_page(output, page, print_line)


def write_comparison(output: OutputSettings, runs: Sequence[RunFiles], print_line: PrintLine) -> None:
    """Write two runs side by side."""
    from pytest_loop.show.html.comparison_page import ComparedRun, render_comparison

    compared_runs = []
    for files in runs:
        state, history = files.read()
        compared_runs.append(ComparedRun(state, history.events, *_read_diff_and_document(files, state)))
    _write_page(output, render_comparison(*compared_runs), print_line)


def _read_diff_and_document(files: RunFiles, state: RunState) -> tuple[str, str]:
    """Return the diff of the project since the run began, and the document of the run: one of them is empty."""
    if state.setup.target is Target.WORKSPACE:
        return read_change(state, files), ""
    path = files.project / state.setup.artifact if state.setup.artifact else files.artifact
    return "", clip_text(Artifact(path).read_text() or "", MAX_DOCUMENT_LENGTH)


def _write_page(output: OutputSettings, page: str, print_line: PrintLine) -> None:
    """Write a page without secrets of the environment, and open it if `--loop-report-open` is set."""
    check_report_path(output)
    path = Path(output.report)
    page = Redactor(os.environ)(page)
    with disk.translate_errors("write", path, "write it with --loop-report"):
        path.write_bytes(page.encode("utf-8", "replace"))
    print_line(f"wrote {path}")
    if output.report_open and not webbrowser.open(path.resolve().as_uri()):
        print_line(f"no browser was found: open {path} yourself")


def write_debrief(files: RunFiles, path: str, print_line: PrintLine) -> None:
    """Write the debrief of an experiment, made from its events; missing folders are created."""
    state, history = files.read()
    if not isinstance(state, ExperimentState):
        raise StateError(f"a debrief needs a run of a workload: {files.alias} has no cases")
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(render_debrief(history.events), encoding="utf-8", errors="replace")
    except OSError as error:
        raise StateError(f"--loop-debrief: cannot write {path}: {error.strerror or error}") from None
    print_line(f"wrote {path}")
