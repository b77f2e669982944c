"""Votes of repeated rules: how many repeats must pass, and how certain the observed pass rate is."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, sqrt

NEED_WORDS = ("majority", "all", "any")


def is_valid_need(text: str) -> bool:
    """Return whether a text is a word of NEED_WORDS, a count of at least 1, or a share above 0 and at most 1."""
    if text in NEED_WORDS:
        return True
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        return False
    return number > 0 and (number.denominator == 1 or number < 1)


def count_needed_passes(need: str, total: int) -> int:
    """Return how many of `total` repeats must pass; a larger count means all of them."""
    if need in NEED_WORDS:
        return {"majority": total // 2 + 1, "all": total, "any": 1}[need]
    number = Fraction(need)
    # "1" is a count of one repeat, "1.0" the share of all repeats.
    return min(total, int(number)) if "." not in need and number.denominator == 1 else ceil(number * total)


def decide_vote(passes: int, failures: int, total: int, need: int) -> bool | None:
    """Return whether the rule passes; None while further repeats can still change that."""
    if passes >= need:
        return True
    return False if total - failures < need else None


def compute_wilson_interval(passes: int, total: int) -> tuple[float, float]:
    """Return the 95 % Wilson score interval of the observed pass rate."""
    if not total:
        return 0.0, 1.0
    z = 1.959963984540054
    rate = passes / total
    centre = rate + z * z / (2 * total)
    spread = z * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total))
    scale = 1 + z * z / total
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
