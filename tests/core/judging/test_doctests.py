"""A module with doctests may be edited; its examples stay."""

from __future__ import annotations

import pytest

from pytest_loop.core.judging.doctests import find_changed_doctests

SHOP = '''
def total(prices):
    """Add prices.

    >>> total([1, 2])
    3
    """
    return sum(prices) - 1


class Cart:
    def count(self):
        """
        >>> Cart().count()
        0
        """
'''


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("sum(prices) - 1", "sum(prices)", []),
        ("Add prices.", "Add the prices of a cart.", []),
        ("    3\n", "    3\n    >>> total([])\n    0\n", []),
        ("    3\n", "    2\n", ["total"]),
        (">>> total", "total", ["total"]),
        ("        0\n", "        1\n", ["Cart.count"]),
        ("class Cart:", "class Basket:", ["Cart.count"]),
        ("def total", "def (", ["total", "Cart.count"]),
    ],
)
def test_examples_that_are_changed_or_gone_are_named(old: str, new: str, changed: list[str]) -> None:
    assert find_changed_doctests(SHOP, SHOP.replace(old, new)) == changed


def test_module_that_never_parsed_has_no_examples() -> None:
    assert find_changed_doctests("def (", "") == []
    assert find_changed_doctests('""">>> 1\n1\n"""', "") == ["the module"]
