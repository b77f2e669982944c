import pytest
from shop.stock import OutOfStockError, Stock


def test_one_is_taken():
    assert Stock(tea=2).take("tea") == 1


def test_several_are_taken():
    assert Stock(tea=5).take("tea", 3) == 2


def test_the_last_ones_are_taken():
    stock = Stock(tea=2, milk=1)
    stock.take("tea", 2)
    assert stock.empty() == ["tea"]


@pytest.mark.parametrize(("item", "quantity"), [("tea", 3), ("milk", 1)])
def test_nobody_gets_what_is_not_there(item, quantity):
    stock = Stock(tea=2)
    with pytest.raises(OutOfStockError):
        stock.take(item, quantity)
    assert stock.shelves == {"tea": 2}
