from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pytest_loop.core.text.signature import compute_fingerprint, compute_signature

CSI = "\x1b["


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("<Cart object at 0x7f3a2c>", "<Cart object at 0x55d0aa11>"),
        ("pointer 0x7f3a2c00ab12 is bad", "pointer 0x7f3a2c00ab99 is bad"),
        ("at 2026-11-16T04:31:07.123Z", "at 2026-11-17 05:00:00+02:00"),
        ("[04:31:07,123] failed", "[23:59:59] failed"),
        ("at Mon Nov 16 17:00:12 failed", "at Sat Dec 5 04:31:07 failed"),
        ("Mon Nov 16 17:00:12 UTC 2026: failed", "Tuesday December 1 4:31:07 PM CET 2027: failed"),
        ("Date: Mon, 16 Nov 2026 17:00:12 GMT", "Date: Tue, 01 Dec 2026 04:31:07 GMT"),
        ("[16/Nov/2026:17:00:12 +0000] failed", "[01/Dec/2026:04:31:07 +0100] failed"),
        ("Nov 16, 2026 5:00:12 PM failed", "Dec 1, 2026 04:31:07.5 AM failed"),
        ("took 0.31s", "took 12.5 s"),
        ("1 failed in 3.21 seconds", "1 failed in 1e-05 seconds"),
        ("real 0m3.21s", "real 1m4s"),
        ("/tmp/pytest-of-me/pytest-12/x is missing", "/tmp/pytest-of-me/pytest-13/x is missing"),
        ("/private/var/folders/zz/T/tmpabc/a.md:3: bad", "/var/folders/q1/T/tmpxyz/a.md:17: bad"),
        (r"C:\Users\me\AppData\Local\Temp\a1\b.txt", r"C:\Users\me\AppData\Local\Temp\zz\b.txt"),
        ("/tmp/tmpab12.json is missing", "/tmp/tmpzz99.json is missing"),
        ("shop/cart.py:12: KeyError: 'x'", "shop/cart.py:99: KeyError: 'x'"),
        ("cart.py:12:5: E501", "cart.py:13:80: E501"),
        ("Makefile:3: missing separator", "Makefile:30: missing separator"),
        ("line 3 column 5 (char 40)", "line 7 column 9 (char 99)"),
        ("on lines 3-5", "on lines 10-12"),
        ("random seed: 12345", "random seed: 999"),
        ("--randomly-seed=1 and pid 77", "--randomly-seed=2 and pid 78"),
        ("[gw0] linux", "[gw11] linux"),
        ("id 123e4567-e89b-12d3-a456-426614174000", "id 00000000-e89b-12d3-a456-426614174999"),
        ("two  words", "two\nwords"),
        (f"{CSI}31mred{CSI}0m", "red"),
    ],
)  # fmt: skip
def test_noise_does_not_change_a_signature(first: str, second: str) -> None:
    assert compute_signature(first) == compute_signature(second)
    assert compute_fingerprint(first) == compute_fingerprint(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("assert 3 == 4", "assert 3 == 5"),
        ("expected 80, found 79", "expected 80, found 78"),
        ('{"count":5}', '{"count":6}'),
        ("{'a': 1}", "{'a': 2}"),
        ("exit code 1", "exit code 2"),
        ("0xFF", "0xFE"),
        ("version 1.2.3", "version 1.2.4"),
        ("/tmp/p/guide.md is missing", "/tmp/p/readme.md is missing"),
        ("KeyError: 'currency'", "KeyError: 'price'"),
        ("port 8080", "port 9090"),
        ("localhost:8080 refused", "localhost:9090 refused"),
        ("/home/me/a is missing", "/home/you/a is missing"),
        ("due on Mon Nov 16", "due on Tue Nov 17"),
        ("Nov 16 17:00:12 FAIL", "Nov 16 17:00:12 PASS"),
        ("May 3 cats sleep", "May 4 cats sleep"),
        ("2026-01-01", "2026-01-02"),
        ("cart.py:12: a", "basket.py:12: a"),
        ("12 lines", "13 lines"),
    ],
)
def test_values_change_a_signature(first: str, second: str) -> None:
    assert compute_signature(first) != compute_signature(second)
    assert compute_fingerprint(first) != compute_fingerprint(second)


NOISY = st.lists(
    st.sampled_from(
        ["0x", "deadbeef", "12", ":", "3", "s", " ", ".py", "line ", "seed", "=", "/tmp/", "T", "-", "04:31:07", "Mon ", "Nov 16 ", "2026", "gw", "<", "ms", "at "]
    )
    | st.text(max_size=3),
    max_size=30,
).map("".join)  # fmt: skip


@given(NOISY)
@example("seed 1seed 2seed 3")
@example("line 1line 2")
@example("seed 120x12345678")
def test_signature_of_a_signature_is_the_same(text: str) -> None:
    assert compute_signature(compute_signature(text)) == compute_signature(text)


def test_fingerprint_is_short() -> None:
    assert len(compute_fingerprint("x" * 10_000)) == 16
