"""The collector rests while rules are made, and is afterwards as it was."""

from __future__ import annotations

import atexit
import gc

import pytest

from pytest_loop.rules import garbage


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
