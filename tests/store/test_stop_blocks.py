"""How often an agent was kept from stopping."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.store.project_runs import Store
from pytest_loop.store.stop_blocks import Blocks


def test_each_session_has_a_count_of_its_own(tmp_path: Path) -> None:
    first, second = Blocks(tmp_path, "../one"), Blocks(tmp_path, "two \ud800")
    first.note(3)
    second.note(1)
    assert (first.count(), second.count(), Blocks(tmp_path, "").count()) == (3, 1, 0)
    first.forget()
    assert (Blocks(tmp_path, "../one").count(), Blocks(tmp_path, "two \ud800").count()) == (0, 1)


def test_counts_are_no_run(tmp_path: Path) -> None:
    store = Store(tmp_path)
    Blocks(store.root, "s").note(1)
    assert store.runs() == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"blocks": -1}', '{"blocks": "5"}'])
def test_damaged_count_is_told_once_and_begins_anew(tmp_path: Path, text: str) -> None:
    blocks = Blocks(tmp_path, "s")
    blocks.note(4)
    blocks.path.write_text(text)
    with pytest.raises(StateError, match="is damaged: counting begins anew"):
        blocks.count()
    assert blocks.count() == 0
