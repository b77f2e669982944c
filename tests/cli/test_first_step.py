"""What a task means if every rule passes before the first edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_loop.cli.first_step import UnmeasuredError, begin_with_failures, begin_without_failures, choose_first_step
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.sealing import SealedState
from pytest_loop.core.model.rules import Evidence, Outcome
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.inference.task_phrases import parse_task
from pytest_loop.session.result import BaselineResult, SessionResult
from pytest_loop.settings.options import StartSettings
from pytest_loop.settings.settings import make_default_settings
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.cli.typing_console import Answer, TypingConsole

STATE = RunState(run_id="x-1", task_alias="x", task=Task(prompt="x"))


@pytest.mark.parametrize(
    "task",
    [
        "fix until green",
        "keep fixing until lint is clean",
        "loop until coverage > 80%",
        "fix the failing tests",
        "iterate until no errors",
        "fix it until `pytest test_shop.py` passes",
        "fix lint until `ruff check .` passes",
    ],
)
def test_condition_that_holds_needs_no_edit(task: str) -> None:
    assert begin_without_failures(STATE, parse_task(task)) == STATE


@pytest.mark.parametrize(
    "task",
    [
        "refactor the parser",
        "rename Ledger to Book",
        "simplify shop.py until `pytest` passes",
        "tidy shop.py until `make check` passes",
    ],
)
def test_refactoring_edits_first(task: str) -> None:
    assert begin_without_failures(STATE, parse_task(task)).setup.edits_first


@pytest.mark.parametrize(
    "task", ["implement a CSV export", "add a --json flag to the CLI", "fix the crash in parse_date for leap years"]
)
@pytest.mark.parametrize("condition", ["", " until `pytest` passes", " until all tests pass", " and keep tests green"])
def test_new_behaviour_that_no_rule_measures_is_refused_with_what_to_do(task: str, condition: str) -> None:
    with pytest.raises(UnclearError) as error:
        begin_without_failures(STATE, parse_task(f"{task}{condition}"))
    assert f"nothing measures '{task}" in str(error.value)
    assert "--loop-tests-first" in str(error.value)
    assert "--loop-rules" in str(error.value)
    assert "--loop-judge" in str(error.value)


# -- new code beside tests that fail already


@pytest.mark.parametrize(
    ("task", "unmeasured"),
    [
        ("implement a receipt() in shop.py", ("receipt",)),
        ("implement total() and `receipt`, and write net_total", ("receipt", "net_total")),
        ("implement total()", ()),
        ("implement a CSV export", ()),
        ("fix until green, also in receipt()", ()),
    ],
)
def test_new_code_that_no_failing_test_names_is_noted(tmp_path: Path, task: str, unmeasured: tuple[str, ...]) -> None:
    (tmp_path / "test_shop.py").write_text("def test_total():\n    assert total() == 3\n")
    files = SealedFiles(tmp_path, tmp_path / ".loop/x", ["/test_shop.py"])
    result = SessionResult(evidence={"test_shop.py::test_total": Evidence(outcome=Outcome.FAILED)})
    files.record_start()
    state = begin_with_failures(SealedState(STATE, 1, BaselineResult("", result)), parse_task(task), files)
    assert state.setup.draft.unmeasured == unmeasured
    files.close()


# -- tests first

FEATURE = parse_task("implement a CSV export")


@pytest.fixture
def files(tmp_path: Path) -> Iterator[SealedFiles]:
    (tmp_path / "test_shop.py").write_text("")
    files = SealedFiles(tmp_path, tmp_path / ".loop/x", ["/test_shop.py"], ["/src/"])
    files.record_start()
    yield files
    files.close()


def begin(files: SealedFiles, answers: list[Answer], *, failing: int = 0, **start: bool) -> RunState:
    settings = make_default_settings(files.root, start=StartSettings(**start))
    state = STATE.replace(seal=files.record_seal())
    return choose_first_step(
        SealedState(state, failing, BaselineResult("", SessionResult())),
        FEATURE,
        files,
        settings,
        TypingConsole(answers=answers),
    )


@pytest.mark.parametrize("failing", [0, 1])
def test_flag_lets_the_run_begin_with_tests(files: SealedFiles, failing: int) -> None:
    state = begin(files, [], failing=failing, tests_first=True)
    assert state.setup.work_seal is not None
    assert (state.setup.work_seal.patterns, state.setup.work_seal.allow) == (("/test_shop.py",), ("/src/",))
    for name in ("test_shop.py", "test_new.py", "new.rules.yaml", "shop.py"):
        (files.root / name).write_text("x = 1\n")
    assert sorted(finding.path for finding in files.enforce_seal()) == ["shop.py", "test_shop.py"]


def test_tests_are_offered_at_a_terminal(files: SealedFiles) -> None:
    assert begin(files, ["y"]).setup.work_seal is not None
    with pytest.raises(UnmeasuredError):
        begin(files, ["n"])


def test_tests_are_not_offered_where_nothing_is_asked_or_something_fails(files: SealedFiles) -> None:
    with pytest.raises(UnmeasuredError):
        begin(files, [], yes=True)
    assert begin(files, [], failing=1).setup.work_seal is None
