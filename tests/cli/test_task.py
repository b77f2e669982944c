"""Reading the task, and what the project says about it."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from pytest_loop.cli.inferred_rules import infer_rules
from pytest_loop.cli.readiness import UnclearError, UserChoices, assess_readiness
from pytest_loop.cli.task import (
    MAX_TEXT_LENGTH,
    TaskContext,
    can_judge,
    choose_alias,
    may_only_edit,
    parse_request,
    propose_criteria,
    read_task,
    read_task_context,
)
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_setup import Setup
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.inference.project_context import ProjectContext
from pytest_loop.inference.task_phrases import Route, parse_task
from pytest_loop.run.console import Console
from pytest_loop.settings.options import AgentSettings, StartSettings
from pytest_loop.settings.settings import Settings, make_default_settings
from tests.cli.typing_console import TypingConsole


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
        ("x" * (MAX_TEXT_LENGTH + 1), "expected at most 200,000 characters, found 200,001"),
        ("@none.md", "cannot read @none.md: No such file or directory"),
    ],
)
def test_unusable_task_is_refused(tmp_path: Path, task: str, message: str) -> None:
    with pytest.raises(pytest.UsageError, match=f"--loop-task: {message}"):
        read_task(make_settings(tmp_path, task))


def infer(root: Path, task: str, console: Console | None = None, *, is_agreed: bool = False) -> TaskContext:
    start = StartSettings(task=task, yes=is_agreed)
    settings = make_default_settings(root, start=start, arguments=("--loop-task", task, "--loop-agent", "x"))
    context = read_task_context(parse_task(task), root, can_judge=False)
    return infer_rules(context, settings, console or Console(io.StringIO()))


def test_rules_are_inferred_from_a_task_that_can_be_measured(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it(): assert False\n")
    context = infer(tmp_path, "fix the failing tests")
    assert context.proposal is not None
    assert any(line.startswith("inferred: ") for line in context.render_notes())
    assert context.choose_test_paths(["tests"]) == ("tests",)


def test_vague_task_cannot_be_measured(tmp_path: Path) -> None:
    with pytest.raises(UnclearError) as refusal:
        infer(tmp_path, "make it better, in the background")
    gaps = (
        "what to change: no file, name, tool, number or issue is named",
        "how to tell that it is done: a command that passes, or a number that is reached",
    )
    assert str(refusal.value).splitlines() == [
        "this cannot be measured: make it better, in the background",
        f"  missing: {'; '.join(gaps)}",
        "  for example: pytest --loop-task 'write tests/test_first.py until `pytest` passes' --loop-agent x --loop-detach",
    ]


@pytest.mark.parametrize(
    ("agents", "judge", "unjudged"),
    [
        (("codex",), "", ()),
        (("command:sh fix.sh",), "codex", ()),
        (("command:sh fix.sh",), "", ("a.shape.it-sums", "a.must-not.add-dependencies")),
        (("python:fixer:work", "builtin"), "", ("a.shape.it-sums", "a.must-not.add-dependencies")),
    ],
)
def test_sentences_of_a_project_are_no_rules_if_the_agents_may_only_edit(
    tmp_path: Path, agents: tuple[str, ...], judge: str, unjudged: tuple[str, ...]
) -> None:
    (tmp_path / ".loop/shape").mkdir(parents=True)
    (tmp_path / ".loop/shape/SHAPE.md").write_text(
        "criteria:\n  - It sums\nmustNot:\n  - Add dependencies\n  - `grep -q eval shop.py`\n"
    )
    settings = make_default_settings(tmp_path, agents=AgentSettings(agent=agents, judge=judge))
    judging = {"can_judge": can_judge(settings), "may_only_edit": may_only_edit(settings)}
    context = read_task_context(parse_task("fix until green"), tmp_path, **judging)
    assert context.list_unjudged() == unjudged
    note = "2 rules that only an agent could judge, in the prompt alone: --loop-judge names one"
    assert list(context.render_notes()) == ([f"note: .loop/shape/SHAPE.md: {note}"] if unjudged else [])
    assert len(context.project.rules) == 3 - len(unjudged)


# -- doubts


def make_doubtful_project(root: Path) -> str:
    """Create a project that verifies only a part of the task, and return the task."""
    (root / "Makefile").write_text("lint:\n\tmake --version\n")
    return "fix lint and type errors"


def test_doubt_is_explained_in_three_lines_without_a_terminal(tmp_path: Path) -> None:
    task = make_doubtful_project(tmp_path)
    with pytest.raises(UnclearError) as refusal:
        infer(tmp_path, task, TypingConsole(answers=["y"]), is_agreed=True)
    doubt = "nothing in the project verifies this: types"
    assert str(refusal.value).splitlines() == [
        f"it is not certain that `make lint` judges this: {doubt} (fix lint and type errors)",
        "  to judge by it: pytest --loop-task 'fix lint and type errors until `make lint` passes' --loop-agent x",
        "  to judge by another command, end the task with: until `COMMAND` passes",
    ]


def test_task_without_any_tests_is_offered_tests_first(tmp_path: Path) -> None:
    (tmp_path / "shop.py").touch()
    with pytest.raises(UnclearError) as refusal:
        infer(tmp_path, "fix until green")
    line = "pytest --loop-task 'fix until green' --loop-agent x"
    assert str(refusal.value).splitlines() == [
        "nothing judges this: there are no tests yet: the agent has to write them (fix until green)",
        f"  to let it write failing tests first, which you confirm: {line} --loop-tests-first",
        "  to judge by another command, end the task with: until `COMMAND` passes",
    ]


def test_unclear_task_names_the_sentences_that_a_judge_could_judge(tmp_path: Path) -> None:
    (tmp_path / ".loop/shape").mkdir(parents=True)
    (tmp_path / ".loop/shape/SHAPE.md").write_text("criteria:\n  - It sums\n")
    context = read_task_context(parse_task("make it right"), tmp_path, can_judge=False)
    with pytest.raises(UnclearError, match=r"(?s)cannot be measured.*\n  note: .loop/shape/SHAPE.md: 1 rule that only"):
        propose_criteria(context, make_default_settings(tmp_path))


@pytest.mark.parametrize("answer", ["", "y", "Yes"])
def test_doubt_is_settled_by_a_yes_at_a_terminal(tmp_path: Path, answer: str) -> None:
    console = TypingConsole(answers=[answer])
    context = infer(tmp_path, make_doubtful_project(tmp_path), console)
    assert console.lines[-1] == "Judge by `make lint`? [Y/n/other] "
    assert [line for line in context.render_notes() if line.startswith("inferred")] == [
        "inferred: the linter has no complaint (`make lint`) (high): you confirmed it"
    ]


@pytest.mark.parametrize(
    ("answer", "expected"), [("`git diff --check`", "git diff --check"), ("git status", "git status")]
)
def test_another_command_judges_if_the_user_names_it(tmp_path: Path, answer: str, expected: str) -> None:
    (tmp_path / "shop.py").touch()
    console = TypingConsole(answers=[answer])
    context = infer(tmp_path, "fix until green", console)
    assert console.lines[-1] == "Which command passes when it is done? [the agent writes failing tests first] "
    assert context.proposal is not None
    assert context.proposal.verification_command == expected


@pytest.mark.parametrize("answer", ["n", "NO", None])
def test_nothing_starts_if_the_user_declines(tmp_path: Path, answer: str | None) -> None:
    task = make_doubtful_project(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        infer(tmp_path, task, TypingConsole(answers=[answer, "x"]))


def test_set_up_follows_if_no_command_judges_something_to_write(tmp_path: Path) -> None:
    (tmp_path / "shop.py").touch()
    with pytest.raises(UnclearError, match=r"^No command of the project judges this"):
        infer(tmp_path, "Add something about the garden", TypingConsole(answers=["n"]))


@pytest.mark.parametrize("console", [None, TypingConsole(answers=[])])
def test_text_is_not_judged_by_tests_that_do_not_exist(tmp_path: Path, console: Console | None) -> None:
    (tmp_path / "shop.py").touch()
    with pytest.raises(UnclearError, match=r"^nothing in the project says when this is done: write a haiku") as error:
        infer(tmp_path, "write a haiku about the sea", console)
    assert ("--loop-tests-first" in str(error.value)) == (console is None), "a terminal asks what it is"


def test_nothing_starts_without_a_command_that_judges(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").touch()
    with pytest.raises(KeyboardInterrupt):
        infer(tmp_path, "loop until the logo is blue", TypingConsole(answers=["", "x"]))


def test_command_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnclearError, match="is judged by `no-such-tool --all`, and no-such-tool is not installed "):
        infer(tmp_path, "tidy shop.py until `no-such-tool --all` passes")


# -- what has to grow


@pytest.mark.parametrize(("printed", "op", "value"), [("TOTAL 10 4 60%", ">", 60.0), ("TOTAL 10 0 100%", ">=", 100)])
def test_coverage_has_to_grow_beyond_what_is_measured_before(
    tmp_path: Path, printed: str, op: str, value: float
) -> None:
    (tmp_path / "Makefile").write_text(f"coverage:\n\t@echo '{printed}'; touch x\n")
    (tmp_path / "test_shop.py").touch()
    (tmp_path / "AGENTS.md").write_text("Measure with `make coverage`.\n")
    context = infer(tmp_path, "add missing tests")
    assert context.proposal is not None
    (criterion,) = context.proposal.criteria
    assert isinstance(criterion.check, dict)
    assert (criterion.check["metric"]["op"], criterion.check["metric"]["value"]) == (op, value)
    assert f"the tests cover more of the lines than the {value:g} % before" in criterion.description


def test_failing_suite_has_a_coverage_too(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").touch()
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/coverage"
    program.write_text('#!/bin/sh\n[ "$1" = run ] && exit 1\necho TOTAL 4 1 75%\n')
    program.chmod(0o755)
    (tmp_path / "AGENTS.md").write_text("Measure with `bin/coverage run -m pytest && bin/coverage report`.\n")
    context = infer(tmp_path, "add missing tests")
    assert context.proposal is not None
    (criterion,) = context.proposal.criteria
    assert criterion.command == "bin/coverage run -m pytest && bin/coverage report"
    assert "the tests cover more of the lines than the 75 % before" in criterion.description


def test_coverage_that_cannot_be_measured_is_an_error_of_the_setup(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("coverage:\n\t@echo broken; touch x\n")
    (tmp_path / "test_shop.py").touch()
    (tmp_path / "AGENTS.md").write_text("Measure with `make coverage`.\n")
    with pytest.raises(
        UnclearError, match=r"^the coverage before the run cannot be measured: no match of .*coverage`\)"
    ):
        infer(tmp_path, "add missing tests")


def test_project_without_tests_covers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)  # as the plugin does
    (tmp_path / "pyproject.toml").write_text("[tool.coverage.run]\nbranch = true\n[tool.pytest.ini_options]\n")
    (tmp_path / "shop.py").touch()
    context = infer(tmp_path, "add missing tests")
    assert context.proposal is not None
    assert "than the 0 % before" in context.proposal.criteria[0].description


# -- the task itself


def test_task_is_asked_for_if_the_words_only_say_where_to_run(tmp_path: Path) -> None:
    console = TypingConsole(answers=["fix lint"])
    settings = make_settings(tmp_path, "Run this in the background with crash recovery and let me attach later")
    task = parse_request(settings, console)
    assert console.lines == ["What is to be done until it succeeds? "]
    assert (task.task, task.route) == ("fix lint", Route.BACKGROUND)
    with pytest.raises(KeyboardInterrupt):
        parse_request(settings, TypingConsole(answers=[""]))
    assert parse_request(settings, Console(io.StringIO())).needs_context


def test_command_around_runs_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnclearError, match=r"^`pause the loop` is a command, not a task: type pytest-loop pause$"):
        parse_request(make_settings(tmp_path, "pause the loop"), Console(io.StringIO()))


@pytest.mark.parametrize(
    ("task", "alias"),
    [
        ("ralph this: fix all lint errors", "fix-all-lint-errors"),
        ("fix lint --loop-id ralph-my-fixes-12345678", "ralph-my-fixes-12345678"),
        ("Исправь тесты", "task"),
    ],
)
def test_run_is_named_after_the_task_alone(tmp_path: Path, task: str, alias: str) -> None:
    assert choose_alias(make_settings(tmp_path, task), parse_task(task)) == alias


SRC = UserChoices(allow=("src/*.py",))


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
    readiness = assess_readiness(make_state("fix the failing tests in src/a.py"), SRC)
    assert readiness.render_question("start") == "start?"
    risky = assess_readiness(make_state("drop the production database table users"), SRC)
    assert risky.missing
    assert risky.render_question("start").startswith("this is hard to take back, and lacks ")
    (line,) = risky.render_lines(is_detailed=False)
    assert line == (
        "hard to take back (production: others build on it), and lacks 2 must_not rules, found 0: "
        "-v says what to check before the start"
    )
    assert "lacking: 2 must_not rules, found 0" in list(risky.render_lines(is_detailed=True))


def test_unclear_project_stops_a_clear_task() -> None:
    readiness = assess_readiness(make_state("fix the failing tests in src/a.py"), SRC, ProjectContext(clarity=1))
    with pytest.raises(UnclearError, match=r"SHAPE.md: its spec score is below 5"):
        list(readiness.render_lines(is_detailed=False))
