"""A basket: what is in it, and what that costs."""

from __future__ import annotations

import os
from collections.abc import Mapping

PRICES = {"apple": 30, "bread": 250}


def total(basket: Mapping[str, int]) -> int:
    """What the basket costs, in cents; ten of a kind are sold for the price of nine."""
    return sum(PRICES[name] * (count - count // 10) for name, count in basket.items())


def label(cents: int) -> str:
    """An amount as it is shown, in the currency of the shop."""
    return f"{cents / 100:.2f} {os.environ.get('BASKET_CURRENCY', 'USD')}"
