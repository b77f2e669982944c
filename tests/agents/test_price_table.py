"""Estimated prices of tokens."""

from __future__ import annotations

import sys

import pytest

from pytest_loop.agents import price_table
from pytest_loop.agents.price_table import TokenCounts, estimate_price

COUNTS = TokenCounts(1_000_000, 0, 1_000_000)


def test_known_model_has_a_price_that_names_its_table() -> None:
    estimate = estimate_price("gpt-5", COUNTS)
    assert estimate is not None
    assert estimate.usd > 1
    assert estimate.source.startswith("genai-prices ")
    assert estimate_price("openai/gpt-5", COUNTS) == estimate


def test_cached_tokens_are_cheaper() -> None:
    cached = estimate_price("gpt-5", TokenCounts(1_000_000, 900_000, 1_000_000))
    full = estimate_price("gpt-5", COUNTS)
    assert cached is not None
    assert full is not None
    assert cached.usd < full.usd


@pytest.mark.parametrize(
    ("model", "counts"), [("", COUNTS), ("no-such-model", COUNTS), ("gpt-5", None), ("no-such-provider/gpt-5", COUNTS)]
)
def test_what_is_unknown_stays_unknown(model: str, counts: TokenCounts | None) -> None:
    assert estimate_price(model, counts) is None


def test_without_the_extra_nothing_is_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    price_table._import_genai_prices.cache_clear()
    assert estimate_price("gpt-5", COUNTS) is None
    price_table._import_genai_prices.cache_clear()
