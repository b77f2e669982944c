"""Repairs of a project: attempts that must help, and the search for suspicious lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.protocol import RepairTask, StopRequestedError, Watch
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.repair_task import RepairAttempts, find_suspicious_lines
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import make_run

TESTS = "from shop import first, last\ndef test_first(): assert first('abc') == 'a'\ndef test_last(): assert last('abc') == 'c'\n"


def make_task(*failing: str) -> RepairTask:
    return RepairTask(("-p", "no:cacheprovider"), failing, (), "", (), lambda _: False)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "shop.py").write_text("def first(text):\n    return text[0]\n\n\ndef last(text):\n    return text[0]\n")
    (tmp_path / "test_shop.py").write_text(TESTS)
    return tmp_path


def test_line_of_a_failing_test_is_suspicious(shop: Path) -> None:
    lines = find_suspicious_lines(make_task("test_shop.py::test_last"), shop, Watch())
    assert lines == ("shop.py:6 (1.00) return text[0]",)


def test_nothing_is_suspicious_without_a_failing_test(shop: Path) -> None:
    assert find_suspicious_lines(make_task(), shop, Watch()) == ()


def test_failed_search_finds_nothing(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_loop.agents.builtin_agent.ENGINE", "this")
    assert find_suspicious_lines(make_task("test_shop.py::test_last"), shop, Watch()) == ()


def test_stop_request_ends_the_search(shop: Path) -> None:
    with pytest.raises(StopRequestedError):
        find_suspicious_lines(make_task("test_shop.py::test_last"), shop, Watch(should_continue=lambda: False))


@pytest.mark.parametrize(
    ("path", "text", "is_kept"),
    [
        ("shop.py", "blue", True),
        ("shop.py", "green", False),
        ("shop.py", "colour = 'red'\n", False),
        ("test_shop.py", "blue", False),
    ],
    ids=["better", "no better", "unchanged", "sealed"],
)
def test_attempt_is_kept_only_if_the_score_rises(project: SealedFiles, path: str, text: str, is_kept: bool) -> None:
    run = make_run(project.root, project=project, state={"target": Target.WORKSPACE})
    evaluator = run.make_step().make_evaluator()
    attempts = RepairAttempts(
        project, run.make_step(evaluation=evaluator.evaluate_rules()).state, evaluator.evaluate_rules
    )
    before = (project.root / path).read_text()

    def write() -> None:
        (project.root / path).write_text(text)

    assert attempts.build_task().attempt(write) is is_kept
    assert (project.root / path).read_text() == (text if is_kept else before)
