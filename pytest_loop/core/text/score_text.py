"""Format scores, the same everywhere."""

from __future__ import annotations

from fractions import Fraction


def format_score(score: float) -> str:
    """Format a score, read as the decimal number that it prints: 0.9 is nine tenths, not slightly less."""
    return format_decimal(Fraction(repr(score)))


def format_decimal(number: Fraction) -> str:
    """Format a number with at most three decimals, rounded down so that 0.8999 never reads as 0.9."""
    thousandths = number * 1000
    return f"{(thousandths.numerator // thousandths.denominator) / 1000:g}"
