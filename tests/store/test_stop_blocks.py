"""How often an agent was kept from stopping."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.store.project_runs import Store
from pytest_loop.store.stop_blocks import BlockCounter


def test_each_session_has_a_count_of_its_own(tmp_path: Path) -> None:
    first, second = BlockCounter(tmp_path, "../one"), BlockCounter(tmp_path, "two \ud800")
    first.write_count(3)
    second.write_count(1)
    assert (first.read_count(), second.read_count(), BlockCounter(tmp_path, "").read_count()) == (3, 1, 0)
    first.reset()
    assert (BlockCounter(tmp_path, "../one").read_count(), BlockCounter(tmp_path, "two \ud800").read_count()) == (0, 1)


def test_counts_are_no_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    BlockCounter(store.root, "s").write_count(1)
    assert store.list_runs() == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"blocks": -1}', '{"blocks": "5"}'])
def test_damaged_count_is_told_once_and_begins_anew(tmp_path: Path, text: str) -> None:
    blocks = BlockCounter(tmp_path, "s")
    blocks.write_count(4)
    blocks.path.write_text(text)
    with pytest.raises(StateError, match="is damaged: counting begins anew"):
        blocks.read_count()
    assert blocks.read_count() == 0
