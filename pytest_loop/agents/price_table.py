"""Estimate what tokens cost, from the table of prices of the package genai-prices (the extra `prices`)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple


class TokenCounts(NamedTuple):
    """The tokens of a call; `input` includes `cached`."""

    input: int
    cached: int
    output: int

    def minus(self, other: TokenCounts) -> TokenCounts:
        return TokenCounts(*(max(0, mine - theirs) for mine, theirs in zip(self, other, strict=True)))


class Estimate(NamedTuple):
    """An estimated price, and the table that it comes from."""

    usd: float
    source: str


def estimate_price(model: str, counts: TokenCounts | None) -> Estimate | None:
    """Return the price of tokens; None without the extra, and for a model or counts that are unknown."""
    table = _load_table()
    if table is None or not model or counts is None:
        return None
    from importlib.metadata import version

    provider, _, name = model.rpartition("/")
    usage = table.Usage(
        input_tokens=counts.input, cache_read_tokens=min(counts.cached, counts.input), output_tokens=counts.output
    )
    try:
        price = table.calc_price(usage, name, provider_id=provider or None)
    except (LookupError, ValueError):
        return None
    return Estimate(float(price.total_price), f"genai-prices {version('genai-prices')}")


@cache
def _load_table() -> Any:
    try:
        import genai_prices
    except ImportError:
        return None
    return genai_prices
