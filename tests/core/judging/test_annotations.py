"""Types that a change takes away from functions that stay are found."""

from __future__ import annotations

import pytest

from pytest_loop.core.judging.annotations import find_lost_annotations

BEFORE = """
import typing


class Shop:
    def rate(self, price: int, *, name: str = "") -> int:
        return price


def greet(name: typing.Any) -> str:
    return name
"""


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("price: int", "price", ["Shop.rate"]),
        ("-> int", "-> typing.Any", ["Shop.rate"]),
        ("-> int", "", ["Shop.rate"]),
        ("name: str", "name: Any", ["Shop.rate"]),
        ("-> int", "-> str", []),
        ("price: int, ", "", []),
        ("-> str", "-> dict[str, typing.Any]", []),
        (": typing.Any", "", []),
        ("def greet", "def welcome", []),
        ("def greet", "def greet(", []),
    ],
)
def test_types_that_are_gone_or_became_any_are_found(old: str, new: str, lost: list[str]) -> None:
    assert find_lost_annotations(BEFORE, BEFORE.replace(old, new)) == lost
