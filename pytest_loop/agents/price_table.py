"""Estimate the cost of tokens with the package genai-prices (the extra `prices`)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple


class TokenCounts(NamedTuple):
    """The tokens of a call; `input` includes `cached`."""

    input: int
    cached: int
    output: int

    def subtract(self, earlier: TokenCounts) -> TokenCounts:
        return TokenCounts(*(max(0, count - before) for count, before in zip(self, earlier, strict=True)))


class Estimate(NamedTuple):
    """An estimated price, and the package and version whose table it comes from."""

    usd: float
    source: str


def estimate_price(model: str, counts: TokenCounts | None) -> Estimate | None:
    """Return the price of tokens; None without the extra, or if the model or the counts are unknown."""
    genai_prices = _import_genai_prices()
    if genai_prices is None or not model or counts is None:
        return None
    from importlib.metadata import version

    provider, _, name = model.rpartition("/")
    usage = genai_prices.Usage(
        input_tokens=counts.input, cache_read_tokens=min(counts.cached, counts.input), output_tokens=counts.output
    )
    try:
        price = genai_prices.calc_price(usage, name, provider_id=provider or None)
    except (LookupError, ValueError):
        return None
    return Estimate(float(price.total_price), f"genai-prices {version('genai-prices')}")


@cache
def _import_genai_prices() -> Any:
    try:
        import genai_prices
    except ImportError:
        return None
    return genai_prices
