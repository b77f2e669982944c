"""Excerpts of failing tests are trimmed, and their calls are found."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.text.excerpt import find_calls, trim_excerpt

DEEP = """
>           net, currency = shop.price(name)
                            ^^^^^^^^^^^^^^^^

tests/test_prices.py:17:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

name = 'tea'

    def price(name):
        entry = PRICES[name]
>       return entry["net"], entry["currency"]
E       KeyError: 'currency'

shop.py:9: KeyError""".strip("\n")

ASSERTION = """
self = <tests.TestTax object at 0x7ff1c88f1510>

    def test_tax(self):
        net = 100
>       assert shop.tax(net) == 19
E       assert 20 == 19
E        +  where 20 = <function tax at 0x7ff1c9435080>(100)

tests/test_tax.py:8: AssertionError""".strip("\n")


def build_excerpt(*source: str) -> str:
    """Build the excerpt that pytest prints for a test whose last line failed."""
    *before, last = source
    return "\n".join(["    def test_it(stock):", *(f"        {line}" for line in before), f">       {last}", "E   no"])


def test_noise_lines_are_dropped_from_an_excerpt() -> None:
    assert trim_excerpt(DEEP, "KeyError: 'currency'").splitlines() == [
        ">           net, currency = shop.price(name)",
        "tests/test_prices.py:17:",
        "name = 'tea'",
        "    def price(name):",
        "        entry = PRICES[name]",
        '>       return entry["net"], entry["currency"]',
    ]


def test_message_is_repeated_only_if_it_was_truncated() -> None:
    message = "assert 20 == 19 + where 20 = <function tax at 0x7ff1c9435080>(100)"
    assert "E  " not in trim_excerpt(ASSERTION, message)
    assert trim_excerpt(ASSERTION, message[:20] + "...").splitlines()[-2:] == [
        "E       assert 20 == 19",
        "E        +  where 20 = <function tax at 0x7ff1c9435080>(100)",
    ]


def test_last_line_stays_if_it_is_not_a_location() -> None:
    assert trim_excerpt(">   x\nE   no", "other") == ">   x\nE   no"


@pytest.mark.parametrize("text", ["", "\n\n", "> quoted\n\n_ _ _", "E   no\n\n", "self = <x>\n\nshop.py:9: KeyError"])
def test_text_that_is_no_excerpt_stays_unchanged(text: str) -> None:
    assert trim_excerpt(text, "") == text
    assert find_calls(text) == frozenset()


def test_calls_of_a_test_are_found() -> None:
    assert find_calls(ASSERTION) == {"shop.tax("}
    assert find_calls(DEEP) == {"shop.price("}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (("assert x == 1",), set()),
        (("assert len(sorted(x)) == 1",), set()),
        (("assert (x and not (y))",), set()),
        (("x = label('tea', 3)", "assert x == 1"), {"label(tea"}),
        (('assert client.get("/users/17").ok',), {"client.get(/users/#"}),
        (("assert client.get(f'/users/{x}').ok",), {"client.get(/users/{x}"}),
        (("assert one(two(x)) == three(",), {"one(", "two(", "three("}),
    ],
)
def test_calls_differ_by_their_first_text_argument(source: tuple[str, ...], expected: set[str]) -> None:
    assert find_calls(build_excerpt(*source)) == expected


@given(
    st.lists(st.sampled_from(["E   ", ">   ", "    ", "a(", "'", '"', ".", ":1: ", "_ ", "^", "x", "\n"])).map("".join)
)
def test_trimmed_excerpt_is_never_longer(text: str) -> None:
    assert len(trim_excerpt(text, "x")) <= len(text)
    find_calls(text)


@pytest.mark.parametrize("piece", ["a('", "a.", "_ ", "^", ":1: ", "x:1", "E   ", ">", "(", " "])
def test_long_excerpts_are_fast(piece: str) -> None:
    text = f">   x\nE   no\n    {piece * 5_000}\n{piece * 5_000}"
    started = time.process_time()
    trim_excerpt(text, "no")
    find_calls(text)
    assert time.process_time() - started < 1
