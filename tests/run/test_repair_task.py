"""The search for suspicious lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.protocol import RepairTask, StopRequestedError, Watch
from pytest_loop.run.repair_task import find_suspicious_lines

TESTS = "from shop import first, last\ndef test_first(): assert first('abc') == 'a'\ndef test_last(): assert last('abc') == 'c'\n"


def make_task(*failing: str) -> RepairTask:
    return RepairTask(("-p", "no:cacheprovider"), failing, (), "", (), lambda _: False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "shop.py").write_text("def first(text):\n    return text[0]\n\n\ndef last(text):\n    return text[0]\n")
    (tmp_path / "test_shop.py").write_text(TESTS)
    return tmp_path


def test_line_of_a_failing_test_is_suspicious(project: Path) -> None:
    lines = find_suspicious_lines(make_task("test_shop.py::test_last"), project, Watch())
    assert lines == ("shop.py:6 (1.00) return text[0]",)


def test_nothing_is_suspicious_without_a_failing_test(project: Path) -> None:
    assert find_suspicious_lines(make_task(), project, Watch()) == ()


def test_failed_search_finds_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_loop.agents.builtin_agent.ENGINE", "this")
    assert find_suspicious_lines(make_task("test_shop.py::test_last"), project, Watch()) == ()


def test_stop_request_ends_the_search(project: Path) -> None:
    with pytest.raises(StopRequestedError):
        find_suspicious_lines(make_task("test_shop.py::test_last"), project, Watch(should_continue=lambda: False))
