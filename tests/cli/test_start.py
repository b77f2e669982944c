"""The steps of a new run: task, draft, confirmation, start and end, inside this process."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from pytest_loop import hookspecs
from pytest_loop.agents.presets import Preset
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.start import StartCommand
from pytest_loop.errors import NothingToJudgeError, StateError
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


def make_start(project: Path, **groups: Any) -> tuple[StartCommand, io.StringIO]:
    """Return an invocation whose document passes already, so that no agent is needed."""
    (project / "good.md").write_text("# Guide\nNote\n")
    plugins = pytest.PytestPluginManager()
    plugins.add_hookspecs(hookspecs)
    stream = io.StringIO()
    settings = make_default_settings(project, **{"judging": COLD, "workspace": GOOD, "start": YES, **groups})
    return StartCommand(settings, plugins.hook, Store(project), Console(stream)), stream


def test_run_that_passes_writes_its_results(project: Path) -> None:
    output = OutputSettings(json=str(project / "out.json"), report=str(project / "out.html"))
    start, stream = make_start(project, output=output)
    assert start.execute() == pytest.ExitCode.OK
    lines = stream.getvalue().splitlines()
    assert lines[0].startswith("Write a guide · ")
    assert lines[-2:] == [f"wrote {project / 'out.json'}", f"wrote {project / 'out.html'}"]
    state = Store(project).get_run("guide").read()[0]
    assert (state.stop.reason, state.setup.draft.confirmed_by) == ("threshold_reached", "--loop-yes")
    assert not Store(project).get_run("guide").is_busy


def test_run_without_confirmation_is_refused_and_leaves_nothing(project: Path) -> None:
    start, _ = make_start(
        project, start=StartSettings(task="Write a guide"), arguments=("--loop-task", "Write a guide")
    )
    expected = "type pytest --loop-task 'Write a guide' --loop-yes"
    with pytest.raises(pytest.UsageError, match=expected):
        start.execute()
    assert not (project / ".loop").exists()


def test_document_has_no_tests_first(project: Path) -> None:
    start, _ = make_start(project, start=StartSettings(task="Write a guide", yes=True, tests_first=True))
    with pytest.raises(pytest.UsageError, match="expected a run that edits files, found one of a document"):
        start.execute()
    assert not (project / ".loop").exists()


@pytest.mark.thorough
def test_ini_file_may_confirm_every_run(project: Path) -> None:
    start, _ = make_start(project, start=StartSettings(task="Write a guide", alias="guide", ask="never"))
    assert start.execute() == pytest.ExitCode.OK
    assert Store(project).get_run("guide").read()[0].setup.draft.confirmed_by == "loop_ask"


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


def test_rules_that_read_a_document_and_name_none_cannot_judge_the_project(project: Path) -> None:
    start, _ = make_start(project, workspace=WorkspaceSettings(workspace=True))
    with pytest.raises(
        StateError, match=r"expected `artifact` for the check of a\.content\.title, found none in the file"
    ):
        start.execute()
    assert not (project / ".loop").exists()


TOOL_RULE = "  - {id: a.tool.lint, description: Clean, check: {command: no-such-tool}}\n"


def test_run_whose_rules_cannot_be_judged_is_not_started(project: Path) -> None:
    (project / "guide.rules.yaml").write_text(f"artifact: good.md\nrules:\n{TOOL_RULE}")
    start, _ = make_start(project)
    expected = "no rule can be judged here, so that nothing was started:\n  a.tool.lint: cannot run 'no-such-tool'"
    with pytest.raises(NothingToJudgeError, match=expected):
        start.execute()
    assert not (project / ".loop").exists()


def test_rule_that_cannot_be_judged_is_named_in_the_draft_and_ends_the_run(project: Path) -> None:
    rules = (project / "guide.rules.yaml").read_text()
    (project / "guide.rules.yaml").write_text(f"{rules}{TOOL_RULE}")
    start, stream = make_start(project)
    assert start.execute() == pytest.ExitCode.TESTS_FAILED
    lines = stream.getvalue().splitlines()
    reason = "cannot run 'no-such-tool': no such command is installed here"
    assert f"note: a.tool.lint cannot be judged here: {reason}" in lines
    assert "1/4  ✗ 1 of 2 pass in phase A, 1 cannot be judged" in lines
    assert f"       cannot be judged: a.tool.lint: {reason}" in lines
    assert any(" · setup_error: rules cannot be judged here" in line for line in lines)
    assert "question: What does a.tool.lint need here, so that it can be judged?" in lines
    assert "continue: pytest-loop resume --run guide" in lines
    state = Store(project).get_run("guide").read()[0]
    assert (state.stop.reason, state.progress.usage.tokens, state.critique) == ("setup_error", None, None)


@pytest.mark.parametrize(
    ("clients", "message"),
    [
        ((), "no agent is installed that can do this"),
        (("codex", "gemini"), r"several agents are installed \(codex, gem"),
    ],
)
def test_document_that_nobody_can_write_is_refused_after_its_draft(
    project: Path, monkeypatch: pytest.MonkeyPatch, clients: tuple[str, ...], message: str
) -> None:
    monkeypatch.setattr(Preset, "find_program", lambda preset: preset.program if preset.program in clients else None)
    start, stream = make_start(project, workspace=WorkspaceSettings(artifact="new.md"))
    with pytest.raises(pytest.UsageError, match=message):
        start.execute()
    assert stream.getvalue().startswith("Write a guide · ")
    assert not (project / ".loop").exists()
