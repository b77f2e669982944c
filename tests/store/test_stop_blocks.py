"""Counters of how often an agent was kept from stopping."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.store.project_runs import Store
from pytest_loop.store.stop_blocks import BlockCounter


def test_each_session_has_its_own_count(tmp_path: Path) -> None:
    first, second = BlockCounter(tmp_path, "../one"), BlockCounter(tmp_path, "two \ud800")
    first.write_count(3)
    second.write_count(1)
    assert (first.read_count(), second.read_count(), BlockCounter(tmp_path, "").read_count()) == (3, 1, 0)
    first.reset()
    assert (BlockCounter(tmp_path, "../one").read_count(), BlockCounter(tmp_path, "two \ud800").read_count()) == (0, 1)


def test_counters_are_not_runs(tmp_path: Path) -> None:
    store = Store(tmp_path)
    BlockCounter(store.root, "s").write_count(1)
    assert store.list_runs() == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"blocks": -1}', '{"blocks": "5"}'])
def test_damaged_counter_is_an_error_once_and_starts_again(tmp_path: Path, text: str) -> None:
    counter = BlockCounter(tmp_path, "s")
    counter.write_count(4)
    counter.path.write_text(text)
    with pytest.raises(StateError, match="is damaged: counting begins anew"):
        counter.read_count()
    assert counter.read_count() == 0
