"""The collector rests while rules are made, and is afterwards as it was."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.rules import garbage

Write = Callable[..., Path]


@pytest.fixture
def young() -> int:
    """How many lists a test makes: more than the collector is given to look at."""
    return garbage.MANY + 1_000


def test_many_things_are_old_afterwards_and_none_is_frozen(young: int) -> None:
    with garbage.kept():
        made: list[list[int]] = [[] for _ in range(young)]
    assert gc.get_count()[0] < garbage.MANY < len(made)
    assert not gc.get_freeze_count()
    assert gc.isenabled()


def test_what_stays_is_not_looked_through_when_the_process_ends(young: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(atexit, "register", asked.append)
    garbage._let_end.cache_clear()
    for _ in range(2):
        with garbage.kept():
            made: list[list[int]] = [[] for _ in range(young)]
        assert made
    assert asked == [gc.freeze]


def test_a_few_things_are_left_to_the_collector() -> None:
    gc.collect()
    with garbage.kept():
        made: list[list[int]] = [[] for _ in range(500)]
    assert gc.get_count()[0] >= len(made)


def test_what_somebody_froze_stays_frozen(young: int) -> None:
    gc.freeze()
    try:
        with garbage.kept():
            made: list[list[int]] = [[] for _ in range(young)]
        assert gc.get_freeze_count()
        assert made
    finally:
        gc.unfreeze()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with garbage.kept():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_rests_until_the_session_is_over() -> None:
    garbage.rest()
    assert gc.get_freeze_count()
    garbage.wake()
    assert not gc.get_freeze_count()


def test_what_somebody_else_froze_is_not_thawed() -> None:
    gc.freeze()
    try:
        garbage.rest()
        garbage.wake()
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


LEAVES = """
import pytest

class Leaves:
    def __init__(self):
        self.itself = self
    def __del__(self):
        raise RuntimeError("left behind")

def test_leaves_garbage():
    Leaves()
"""


def test_a_session_of_rules_alone_leaves_nothing_frozen(pytester: pytest.Pytester, rule_file: Write) -> None:
    rule_file("artifact: doc.md\nrules: [{id: a.one, description: one, check: {contains: x}}]")
    (pytester.path / "doc.md").write_text("x")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
    assert not gc.get_freeze_count()


def test_what_a_test_leaves_behind_is_found_beside_rules(pytester: pytest.Pytester, rule_file: Write) -> None:
    rule_file("artifact: doc.md\nrules: [{id: a.one, description: one, check: {contains: x}}]")
    (pytester.path / "doc.md").write_text("x")
    pytester.makepyfile(LEAVES)
    result = pytester.runpytest_subprocess("-W", "error")
    assert "left behind" in result.stdout.str() + result.stderr.str()
