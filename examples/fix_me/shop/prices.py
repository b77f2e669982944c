"""Prices of a basket."""

from dataclasses import dataclass

FREE_SHIPPING_FROM = 50
SHIPPING = 5


@dataclass
class Line:
    price: float
    quantity: int = 1


def subtotal(lines):
    return sum(line.price * line.quantity for line in lines)


def discounted(amount, percent):
    """Subtract a discount of at most 100 per cent."""
    percent = max(percent, 100)
    return amount - amount * percent / 100


def shipping(amount):
    return 0 if amount > FREE_SHIPPING_FROM else SHIPPING


def total(lines, percent=0):
    amount = discounted(subtotal(lines), percent)
    return round(amount + shipping(amount), 2)
