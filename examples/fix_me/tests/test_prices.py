import pytest
from shop.prices import Line, discounted, shipping, subtotal, total


def test_a_basket_costs_what_its_lines_cost():
    assert subtotal([Line(2.5, 4), Line(3)]) == 13
    assert subtotal([]) == 0


@pytest.mark.parametrize(("percent", "left"), [(0, 80), (25, 60), (100, 0), (150, 0)])
def test_a_discount_is_taken_off(percent, left):
    assert discounted(80, percent) == left


@pytest.mark.parametrize(("amount", "costs"), [(0, 5), (49.99, 5), (50, 0), (80, 0)])
def test_large_orders_are_sent_for_free(amount, costs):
    assert shipping(amount) == costs


def test_the_discount_counts_before_shipping_does():
    assert total([Line(30, 2)], percent=25) == 50
