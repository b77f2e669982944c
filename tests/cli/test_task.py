"""Reading the task, and what the project says about it."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from pytest_loop.cli.readiness import UnclearError, assess_readiness
from pytest_loop.cli.task import MAX_TASK_LENGTH, check_measurable, infer_rules, read_task, read_task_context
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Setup, Task
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.inference.project_context import ProjectContext
from pytest_loop.settings.options import StartSettings
from pytest_loop.settings.settings import Settings, make_default_settings


def make_settings(root: Path, task: str, *arguments: str) -> Settings:
    return make_default_settings(root, start=StartSettings(task=task), arguments=arguments)


def test_task_is_read_from_the_command_line(tmp_path: Path) -> None:
    assert read_task(make_settings(tmp_path, " Write \0it\n")) == "Write it"


def test_task_is_read_from_a_file_although_pytest_replaced_it(tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("Write it\nwell\n")
    assert read_task(make_settings(tmp_path, "@task.md")) == "Write it\nwell"
    assert read_task(make_settings(tmp_path, "Write it", "--loop-task", "@task.md")) == "Write it\nwell"


def test_task_is_read_from_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Write it\n"))
    assert read_task(make_settings(tmp_path, "-")) == "Write it"


@pytest.mark.parametrize(
    ("task", "message"),
    [
        (" ", "expected what to do, found an empty text"),
        ("x" * (MAX_TASK_LENGTH + 1), "expected at most 200,000 characters, found 200,001"),
        ("@none.md", "cannot read @none.md: No such file or directory"),
    ],
)
def test_unusable_task_is_refused(tmp_path: Path, task: str, message: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"--loop-task: {message}"):
        read_task(make_settings(tmp_path, task))


def test_rules_are_inferred_from_a_task_that_can_be_measured(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): assert False\n")
    context = infer_rules(read_task_context("fix the failing tests", tmp_path, can_judge=False), tmp_path)
    assert context.proposal is not None
    assert not context.adds_tests
    assert any(line.startswith("inferred    ") for line in context.render_notes())
    assert context.choose_test_paths(["tests"]) == ("tests",)


def test_vague_task_cannot_be_measured(tmp_path: Path) -> None:
    context = read_task_context("make it better", tmp_path, can_judge=False)
    with pytest.raises(UnclearError):
        check_measurable(context, tmp_path)


def make_state(task: str) -> RunState:
    rule = RunRule(id="a.x", description="x", key="tests::a.x")
    return RunState(
        run_id="x-1",
        task_alias="x",
        task=Task(prompt=task),
        criteria=RunCriteria(rules=(rule,)),
        setup=Setup(target=Target.WORKSPACE),
    )


def test_work_that_is_hard_to_undo_asks_for_safety_measures() -> None:
    readiness = assess_readiness(make_state("fix the failing tests in src/a.py"), ("src/*.py",))
    assert readiness.question == "start?"
    risky = assess_readiness(make_state("drop the production database table users"), ("src/*.py",))
    assert risky.missing
    assert risky.question.startswith("this is hard to take back, and lacks ")
    assert any(line.startswith("lacking     ") for line in risky.render_lines())


def test_unclear_project_stops_a_clear_task() -> None:
    readiness = assess_readiness(
        make_state("fix the failing tests in src/a.py"), ("src/*.py",), ProjectContext(clarity=1)
    )
    with pytest.raises(UnclearError, match=r"SHAPE.md: its spec score is below 5"):
        list(readiness.render_lines())
