"""Shipping costs of a parcel."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

FREE_FROM = Decimal(50)
RATES = {"home": Decimal("4.90"), "abroad": Decimal("12.50")}


class UnknownZoneError(ValueError):
    """There is no rate for this zone."""


def shipping_cost(total: Decimal, zone: str) -> Decimal:
    """Return the shipping cost of an order; orders at home are free from `FREE_FROM` on."""
    if zone not in RATES:
        raise UnknownZoneError(f"expected one of {', '.join(sorted(RATES))}, found {zone!r}")
    if total < 0:
        raise ValueError(f"expected a total of at least 0, found {total}")
    return Decimal(0) if zone == "home" and total >= FREE_FROM else RATES[zone]


def parse_total(text: str) -> Decimal:
    """Parse the total that a user typed."""
    try:
        total = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"expected an amount such as 12.50, found {text!r}") from None
    if not total.is_finite():
        raise ValueError(f"expected a finite amount, found {text!r}")
    return total
