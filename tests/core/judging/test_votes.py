from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.judging.votes import compute_wilson_interval, count_needed_passes, decide_vote, is_valid_need


@pytest.mark.parametrize(
    ("need", "total", "expected"),
    [
        ("majority", 5, 3),
        ("majority", 4, 3),
        ("all", 5, 5),
        ("any", 5, 1),
        ("4", 5, 4),
        ("7", 5, 5),
        ("0.8", 5, 4),
        ("0.5", 5, 3),
        ("1.0", 5, 5),
    ],
)
def test_number_of_needed_passes(need: str, total: int, expected: int) -> None:
    assert count_needed_passes(need, total) == expected


@pytest.mark.parametrize("text", ["majority", "all", "any", "1", "4", "0.8", "1.0"])
def test_valid_needs(text: str) -> None:
    assert is_valid_need(text)


@pytest.mark.parametrize("text", ["most", "", "0", "-1", "1.5", "nan", "1/0", "0.0"])
def test_invalid_needs(text: str) -> None:
    assert not is_valid_need(text)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_vote_once_decided_stays(votes: list[bool], data: st.DataObject) -> None:
    total = len(votes)
    need = data.draw(st.integers(1, total))
    verdict = None
    for count in range(total + 1):
        passes = sum(votes[:count])
        now = decide_vote(passes, count - passes, total, need)
        assert verdict is None or now == verdict
        verdict = now
    assert verdict is (sum(votes) >= need)


@given(st.integers(0, 50), st.integers(0, 50))
def test_interval_contains_the_observed_rate(passes: int, misses: int) -> None:
    total = passes + misses
    low, high = compute_wilson_interval(passes, total)
    assert 0 <= low <= high <= 1
    assert not total or low - 1e-9 <= passes / total <= high + 1e-9
