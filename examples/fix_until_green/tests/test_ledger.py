from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from ledger import Entry, amount, balance, by_month, entry, largest, statement

LINES = ["2026-02-01; Salary; 2,500", "2026-01-31; Rent; (800.00)", "2026-02-14; Flowers; -20.5"]


@pytest.fixture
def entries() -> list[Entry]:
    return [entry(line) for line in LINES]


@pytest.mark.parametrize(
    ("text", "value"), [("3", "3"), (" -3.50 ", "-3.50"), ("1,234.50", "1234.50"), ("(12.00)", "-12.00")]
)
def test_amounts_are_read(text: str, value: str) -> None:
    assert amount(text) == Decimal(value)


def test_an_entry_is_read_without_the_spaces_around_its_text() -> None:
    assert entry("2026-01-31; Rent ; -800") == Entry(date(2026, 1, 31), "Rent", Decimal(-800))


def test_the_balance_has_one_value_for_each_entry(entries: list[Entry]) -> None:
    assert balance(entries) == [Decimal(2500), Decimal(1700), Decimal("1679.5")]


def test_months_are_summed_and_in_order(entries: list[Entry]) -> None:
    assert list(by_month(entries).items()) == [("2026-01", Decimal(-800)), ("2026-02", Decimal("2479.5"))]


def test_the_largest_entry_is_the_one_that_moved_most(entries: list[Entry]) -> None:
    assert largest(entries[1:]).text == "Rent"


def test_a_statement_is_a_table(entries: list[Entry]) -> None:
    assert statement(entries).splitlines()[-1] == "2026-02-14     -20.50 Flowers"
