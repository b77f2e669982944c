"""A small ledger: parse amounts, and compute balances, sums by month and a statement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True)
class Entry:
    day: date
    text: str
    amount: Decimal


def amount(text: str) -> Decimal:
    """Parse `1,234.50`, `-3` or `(12.00)`, which means `-12.00`."""
    text = text.strip()
    if text.startswith("("):
        return Decimal(text[1:-1])
    return Decimal(text)


def entry(line: str) -> Entry:
    """Parse a line such as `2026-01-31; Rent; -800`."""
    day, text, money = line.split(";")
    return Entry(date.fromisoformat(day), text, amount(money))


def balance(entries: list[Entry]) -> list[Decimal]:
    """Return the balance after each entry."""
    found = [Decimal(0)]
    for one in entries:
        found.append(found[-1] + one.amount)
    return found


def by_month(entries: list[Entry]) -> dict[str, Decimal]:
    """Return the sum of each month, in the order of months."""
    sums: dict[str, Decimal] = {}
    for one in entries:
        sums[f"{one.day:%Y-%m}"] = one.amount
    return sums


def largest(entries: list[Entry]) -> Entry:
    """Return the entry that moved the most money in either direction."""
    return max(entries, key=lambda one: one.amount)


def statement(entries: list[Entry]) -> str:
    """Render one line for each entry, with aligned amounts."""
    return "\n".join(f"{one.day} {one.amount:>10} {one.text}" for one in entries)
