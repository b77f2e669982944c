"""Messages and questions at a terminal, and without one."""

from __future__ import annotations

import io
import os
import pty
from collections.abc import Iterator

import pytest

from pytest_loop.run.console import Console


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Replace standard input by a terminal, and return the descriptor that types."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield ours
    os.close(ours)


@pytest.mark.parametrize(("answer", "expected"), [(b"y\n", True), (b"YES\n", True), (b"\n", False), (b"no\n", False)])
def test_question_is_confirmed_by_yes_only(keyboard: int, answer: bytes, expected: bool) -> None:
    console = Console(io.StringIO())
    os.write(keyboard, answer)
    assert console.can_ask
    assert console.confirm("start?") is expected
    assert console.stream.getvalue() == "start? [y/N] "  # type: ignore[attr-defined]


def test_end_of_input_is_no_answer(keyboard: int) -> None:
    os.write(keyboard, b"\x04")
    assert Console(io.StringIO()).read_answer("which? ") is None


def test_question_ends_if_the_answer_is_not_needed_any_more(keyboard: int) -> None:
    assert Console(io.StringIO()).read_answer("which? ", lambda: False) is None


def test_nothing_is_confirmed_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    console = Console(io.StringIO())
    assert not console.can_ask
    assert not console.confirm("start?")
