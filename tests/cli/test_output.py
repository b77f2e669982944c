"""The files that commands write, and the one result for machines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_loop.cli.output import build_result, check_report_path, write_debrief, write_json, write_report
from pytest_loop.core.model.run_state import Task
from pytest_loop.errors import StateError
from pytest_loop.settings.options import OutputSettings
from tests.cli.conftest import Command, MakeRun


def test_run_and_status_write_the_same_result(command: Command, project: Path) -> None:
    (project / "good.md").write_text("# Guide\nNote\n")
    arguments = ("guide.rules.yaml", "--loop-task=Write", "--loop-artifact=good.md", "--loop-alias=guide", "--loop-yes")
    assert command(*arguments, "--loop-json=run.json").code == 0
    assert command("--loop-status", "--loop-json=status.json").code == 0
    result = json.loads((project / "run.json").read_text())
    assert list(result) == list(json.loads((project / "status.json").read_text()))
    assert result == json.loads((project / "status.json").read_text())
    assert (result["condition"], result["damage"]) == (None, [])


def test_result_names_the_condition_of_an_idle_run(make_run: MakeRun) -> None:
    files = make_run()
    assert build_result(files, *files.read())["condition"] == "paused"


def test_json_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"--loop-json: cannot write .*: Is a directory"):
        write_json({}, str(tmp_path), print)


def test_report_path_is_checked_before_the_run(tmp_path: Path) -> None:
    check_report_path(OutputSettings())
    check_report_path(OutputSettings(report=str(tmp_path / "report.html")))
    with pytest.raises(StateError, match=r"expected a path like report\.html, found a folder"):
        check_report_path(OutputSettings(report=str(tmp_path)))
    with pytest.raises(StateError, match="there is no folder"):
        check_report_path(OutputSettings(report=str(tmp_path / "none" / "report.html")))


def test_report_has_no_secrets(tmp_path: Path, make_run: MakeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_API_KEY", "s3cr3t-s3cr3t-s3cr3t")
    files = make_run(task=Task(prompt="Use s3cr3t-s3cr3t-s3cr3t"))
    state, history = files.read()
    lines: list[str] = []
    path = tmp_path / "report.html"
    write_report(OutputSettings(report=str(path)), files, state, history.events, lines.append)
    assert lines == [f"wrote {path}"]
    assert "s3cr3t-s3cr3t-s3cr3t" not in path.read_text()


def test_debrief_needs_an_experiment(make_run: MakeRun) -> None:
    with pytest.raises(StateError, match="a debrief needs a run of a workload: guide has no cases"):
        write_debrief(make_run(), "debrief.md", print)
