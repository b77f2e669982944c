from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.text.lengths import clip_text, estimate_tokens, fit_tokens, shorten

# Any text, with control sequences among it.
WILD = st.lists(st.text(max_size=8) | st.sampled_from(["\r", "\n", "\t", "\x1b[2K", "\x1b[1A", "\u200b"])).map("".join)


@given(st.text(), st.integers(0, 80))
def test_clipped_text_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    short = clip_text(text, limit)
    assert len(short) <= limit or short == text
    assert short == text or len(text) > limit


def test_clipped_text_keeps_head_and_tail_and_counts_the_gap() -> None:
    short = clip_text("a" * 1_000 + "b" * 1_000, 200)
    assert short.startswith("aaa")
    assert short.endswith("bbb")
    assert "[... 1,800 characters left out ...]" in short
    assert len(short) == 200


@given(WILD, st.integers(0, 80))
def test_shortened_text_is_one_line_within_its_limit(text: str, limit: int) -> None:
    line = shorten(text, limit)
    assert "\n" not in line
    assert line.isprintable()
    assert len(line) <= limit


@given(st.text(), st.integers(0, 40))
def test_fitted_text_stays_within_its_tokens(text: str, limit: int) -> None:
    assert estimate_tokens(fit_tokens(text, limit)) <= limit
    assert estimate_tokens(text) > limit or fit_tokens(text, limit) == text


@pytest.mark.parametrize(("text", "cost"), [("", 0), ("a", 1), ("abc", 1), ("abcd", 2), ("漢字", 2), ("\ud800", 1)])
def test_tokens_are_estimated_from_bytes(text: str, cost: int) -> None:
    assert estimate_tokens(text) == cost
