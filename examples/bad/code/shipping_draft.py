"""Shipping costs of a parcel."""

from decimal import Decimal

RATES = {"home": Decimal("4.90"), "abroad": Decimal("12.50")}


def shipping_cost(total, zone):
    try:
        rate = RATES[zone]
    except:
        return 0
    return 0 if total > 50 else rate


def parseTotal(text):
    return eval(text)


def parse_total(text):
    """Later."""
    ...
