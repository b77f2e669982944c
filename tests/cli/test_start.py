"""The steps of a new run: task, draft, confirmation, start and end, inside this process."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from pytest_loop import hookspecs
from pytest_loop.cli.draft import NothingToJudgeError
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.start import Start
from pytest_loop.run.console import Console
from pytest_loop.settings.options import (
    JudgingSettings,
    OutputSettings,
    StartSettings,
    WorkspaceSettings,
)
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.store.project_runs import Store

COLD = JudgingSettings(session="cold", rules=("guide.rules.yaml",))
GOOD = WorkspaceSettings(artifact="good.md")
YES = StartSettings(task="Write a guide", alias="guide", yes=True)


def make_start(project: Path, **groups: Any) -> tuple[Start, io.StringIO]:
    """Return an invocation whose document passes already, so that no agent is needed."""
    (project / "good.md").write_text("# Guide\nNote\n")
    plugins = pytest.PytestPluginManager()
    plugins.add_hookspecs(hookspecs)
    stream = io.StringIO()
    settings = make_default_settings(project, **{"judging": COLD, "workspace": GOOD, "start": YES, **groups})
    return Start(settings, plugins.hook, Store(project), Console(stream)), stream


def test_run_that_passes_writes_its_results(project: Path) -> None:
    output = OutputSettings(json=str(project / "out.json"), report=str(project / "out.html"))
    start, stream = make_start(project, output=output)
    assert start.execute() == pytest.ExitCode.OK
    lines = stream.getvalue().splitlines()
    assert lines[0] == "task        Write a guide"
    assert lines[-2:] == [f"wrote {project / 'out.json'}", f"wrote {project / 'out.html'}"]
    state = Store(project).get_run("guide").read()[0]
    assert (state.stop.reason, state.setup.draft.confirmed_by) == ("threshold_reached", "--loop-yes")
    assert not Store(project).get_run("guide").is_busy


def test_run_without_confirmation_is_refused_and_leaves_nothing(project: Path) -> None:
    start, _ = make_start(
        project, start=StartSettings(task="Write a guide"), arguments=("--loop-task", "Write a guide")
    )
    expected = "start it with pytest --loop-task 'Write a guide' --loop-yes"
    with pytest.raises(pytest.UsageError, match=expected):
        start.execute()
    assert not (project / ".loop").exists()


def test_ini_file_may_confirm_every_run(project: Path) -> None:
    start, _ = make_start(project, start=StartSettings(task="Write a guide", alias="guide", confirm="never"))
    assert start.execute() == pytest.ExitCode.OK
    assert Store(project).get_run("guide").read()[0].setup.draft.confirmed_by == "loop_confirm"


def test_run_without_rules_is_refused(project: Path) -> None:
    (project / "empty.rules.yaml").write_text("artifact: good.md\nrules: []\n")
    start, _ = make_start(project, judging=JudgingSettings(session="cold"), paths=("nothing",), arguments=("nothing",))
    (project / "nothing").mkdir()
    with pytest.raises(NothingToJudgeError, match="name rules with --loop-rules, --loop-template or paths"):
        start.execute()


def test_task_that_cannot_be_measured_is_refused(project: Path) -> None:
    start, _ = make_start(
        project,
        judging=JudgingSettings(session="cold"),
        workspace=WorkspaceSettings(),
        start=StartSettings(task="make it better", yes=True),
    )
    (project / "guide.rules.yaml").unlink()
    with pytest.raises(UnclearError):
        start.execute()
    assert not (project / ".loop").exists()


def test_report_that_cannot_be_written_is_refused_before_the_run(project: Path) -> None:
    start, _ = make_start(project, output=OutputSettings(report=str(project)))
    with pytest.raises(Exception, match="found a folder"):
        start.execute()
    assert not (project / ".loop").exists()
