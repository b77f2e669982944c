"""The reporter: events at each verbosity, the status block, and build servers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.vocabulary import Kind
from pytest_loop.core.text.redactor import Redactor
from pytest_loop.run.console import Console
from pytest_loop.run.reporter import RunReporter
from pytest_loop.settings.options import OutputSettings
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.show.look import Look
from pytest_loop.store.project_runs import Store
from tests.core.scripted_experiment import ScriptedExperiment
from tests.core.scripted_run import ScriptedRun


def make_reporter(root: Path, **settings: Any) -> tuple[RunReporter, io.StringIO]:
    stream = io.StringIO()
    redact = Redactor({"API_TOKEN": "sesame-open-now"})
    look = Look(settings.get("verbosity", 0))
    return RunReporter(make_default_settings(root, **settings), Console(stream, look), redact), stream


def report(run: ScriptedRun, root: Path, **settings: Any) -> str:
    reporter, stream = make_reporter(root, **settings)
    reporter.report_event(run.events[-1], run.state)
    return stream.getvalue()


def test_evaluation_is_shown_and_its_line_of_the_history_only_if_verbose(tmp_path: Path) -> None:
    run = ScriptedRun().evaluate("a.x.y")
    assert "a.x.y" in report(run, tmp_path)
    assert "evaluation_done" not in report(run, tmp_path)
    assert "evaluation_done" in report(run, tmp_path, verbosity=2)


def test_other_events_are_shown_only_if_verbose(tmp_path: Path) -> None:
    run = ScriptedRun().complete(Kind.PLAN_CREATED)
    assert report(run, tmp_path) == ""
    assert "plan_created" in report(run, tmp_path, verbosity=2)


def test_options_to_decide_about_are_shown_however_quiet(tmp_path: Path) -> None:
    run = ScriptedExperiment().measure("F..").complete(Kind.CRITIQUE_DONE)
    text = report(run, tmp_path, verbosity=-2)
    assert "  1. o11 [p.md] (medium confidence, recommended)\n     why: m11\n     - x\n     + y11\n" in text
    assert "decided: 1. o11" in report(run.complete(Kind.REFINEMENT_DONE), tmp_path, verbosity=-2)


def test_status_block_follows_an_evaluation_if_it_is_switched_on(tmp_path: Path) -> None:
    output = {"output": OutputSettings(status_block=True)}
    assert "---LOOP_STATUS---" in report(ScriptedRun().evaluate("a.x.y"), tmp_path, **output)
    assert "---LOOP_STATUS---" not in report(ScriptedRun().complete(Kind.PLAN_CREATED), tmp_path, **output)


def test_end_is_annotated_and_summarised_on_github(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    run = ScriptedRun(max_iterations=1).evaluate("a.x.y", message="sesame-open-now").finish()
    reporter, stream = make_reporter(tmp_path)
    with reporter.mute_commands():
        reporter.report_end(run.state, Store(tmp_path).get_run("guide"))
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("::stop-commands::")
    assert lines[-1] == f"::{lines[0].removeprefix('::stop-commands::')}::"
    assert any(line.startswith("::error") and "[API_TOKEN]" in line for line in lines)
    assert "sesame" not in (tmp_path / "summary.md").read_text()
    assert "iteration_limit" in (tmp_path / "summary.md").read_text()


def test_end_elsewhere_is_only_printed(tmp_path: Path) -> None:
    reporter, stream = make_reporter(tmp_path)
    with reporter.mute_commands():
        reporter.report_end(ScriptedRun().evaluate().evaluate().finish().state, Store(tmp_path).get_run("guide"))
    assert stream.getvalue().startswith("done in 0:00 · ")
    assert "::" not in stream.getvalue()


def test_summary_that_cannot_be_written_is_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    reporter, stream = make_reporter(tmp_path)
    reporter.report_end(ScriptedRun().evaluate().evaluate().finish().state, Store(tmp_path).get_run("guide"))
    assert "the job summary could not be written: Is a directory" in stream.getvalue()
