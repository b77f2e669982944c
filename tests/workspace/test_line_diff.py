"""Hunks lead from the old lines to the new ones, and are computed in bounded time."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.workspace import line_diff
from pytest_loop.workspace.line_diff import compute_hunks

LINES = st.lists(st.sampled_from("abcdefgh") | st.text(max_size=2), max_size=40)


def _apply_hunks(old: list[str], new: list[str]) -> list[str]:
    """Apply all operations to the old lines."""
    result: list[str] = []
    position = 0
    for hunk in compute_hunks(old, new):
        for tag, low, high, new_low, new_high in hunk:
            result += old[position:low]
            result += old[low:high] if tag == "equal" else new[new_low:new_high]
            assert tag != "equal" or old[low:high] == new[new_low:new_high]
            position = high
    return result + old[position:]


@given(LINES, LINES)
def test_hunks_lead_from_old_to_new(old: list[str], new: list[str]) -> None:
    assert _apply_hunks(old, new) == new


@given(LINES, LINES)
def test_hunks_of_long_texts_lead_from_old_to_new(old: list[str], new: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_diff, "_MAX_COMPARED_PAIRS", 4)
        assert _apply_hunks(old, new) == new


def test_two_edits_far_apart_are_two_hunks_in_a_long_text() -> None:
    old = [f"line {number}" for number in range(20_000)]
    new = ["first", *old[1:15_000], "inserted", *old[15_000:]]
    new[18_000] = "third"
    hunks = list(compute_hunks(old, new))
    assert len(hunks) == 3
    assert sum(high - low for hunk in hunks for tag, low, high, _, _ in hunk if tag != "equal") == 2


@pytest.mark.parametrize("kinds", [2, 150, 3000, 10**9])
def test_time_is_bounded_for_any_lines(kinds: int) -> None:
    dice = random.Random(kinds)
    old, new = ([str(dice.randrange(kinds)) for _ in range(20_000)] for _ in range(2))
    began = time.process_time()
    assert _apply_hunks(old, new) == new
    assert time.process_time() - began < 20
