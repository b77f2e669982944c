"""Total and label of a basket."""

from __future__ import annotations

import os
from collections.abc import Mapping

PRICES = {"apple": 30, "bread": 250}


def total(basket: Mapping[str, int]) -> int:
    """Return the price of the basket in cents; ten of a kind cost as much as nine."""
    return sum(PRICES[name] * (count - count // 10) for name, count in basket.items())


def label(cents: int) -> str:
    """Render an amount in the currency of the shop."""
    return f"{cents / 100:.2f} {os.environ.get('BASKET_CURRENCY', 'USD')}"
