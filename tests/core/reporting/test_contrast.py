"""Failure messages that compare two values."""

from __future__ import annotations

import pytest

from pytest_loop.core.reporting.escalation import Contrast, find_contrast


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("assert 1 == 2", Contrast("2", "1")),
        ("test_a.py:2: assert 1 == 2\n +  where 1 = f()", Contrast("2", "1")),
        ("test_b.py:6: AssertionError: assert {'id': '1'} == {'id': 1}\n\n  Differing items:", Contrast("{'id': 1}", "{'id': '1'}")),
        ("AssertionError: custom message\nassert 'a' == 'b'", Contrast("'b'", "'a'")),
        ("case.py:866: AssertionError: '123' != 123", Contrast("123", "'123'")),
        ("FAIL src/auth/login.test.ts\nExpected: token to contain userId\nReceived: undefined", Contrast("token to contain userId", "undefined")),
        ("  expected: 3\n  actual: 4", Contrast("3", "4")),
        ("assert 1 < 0", None),
        ("TypeError: can only concatenate str", None),
        ("expected exit code 0 of `x`, found exit code 1", None),
        ("Expected:\nReceived: 1", None),
        ("", None),
    ],
)  # fmt: skip
def test_values_are_found_in_a_message(message: str, expected: Contrast | None) -> None:
    assert find_contrast(message) == expected


def test_first_comparison_counts() -> None:
    assert find_contrast("Expected: 1\nReceived: 2\nassert 3 == 4") == Contrast("1", "2")
