"""The garbage collector rests while rules are made, and does not search them afterwards."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pytest_loop.rules.garbage_collection import freeze_rules, pause_garbage_collection


class Cycle:
    """An object that only the collector can free."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def restore_collector() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_collector_runs_again_after_the_pause() -> None:
    with pause_garbage_collection():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collector_that_was_disabled_stays_disabled() -> None:
    gc.disable()
    with pause_garbage_collection():
        pass
    assert not gc.isenabled()


def test_frozen_garbage_is_freed_by_the_next_session() -> None:
    gc.unfreeze()
    gc.disable()
    reference = weakref.ref(Cycle())
    freeze_rules(is_last_session=False)
    gc.collect()
    assert reference() is not None
    freeze_rules(is_last_session=False)
    assert reference() is None
