from __future__ import annotations

import pytest
from basket import label, total


@pytest.mark.basket_total
def test_prices_are_added() -> None:
    assert total({"apple": 2, "bread": 1}) == 310


@pytest.mark.basket_total
def test_nothing_costs_nothing() -> None:
    assert total({}) == 0


@pytest.mark.loop_rule("a.correctness.discount", description="The tenth of a kind is free")
def test_the_tenth_is_free() -> None:
    assert total({"apple": 10}) == 270


@pytest.mark.loop_rule("b.style.labels", severity="warn", description="Amounts are shown with two digits")
@pytest.mark.parametrize(("cents", "shown"), [(5, "0.05 USD"), (250, "2.50 USD")])
def test_amounts_have_two_digits(cents: int, shown: str) -> None:
    assert label(cents) == shown
