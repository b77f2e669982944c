"""The tests in the output of a command are counted, and compared with those before the first edit."""

from __future__ import annotations

import pytest

from pytest_loop.core.judging.test_counts import count_tests, needs_new_tests, require_counts
from pytest_loop.core.model.rules import Evidence, Outcome


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("=== 1 failed, 2 passed, 3 skipped in 0.12s ===", (3, 2)),
        ("\x1b[32m2 passed\x1b[0m\x1b[32m in 0.12s\x1b[0m", (2, 2)),
        ("1 passed, 1 error in 2.00s (0:00:02)", (2, 1)),
        ("Ran 3 tests in 0.001s\n\nOK\n", (3, 3)),
        ("Ran 3 tests in 0.001s\r\n\r\nFAILED (failures=1, skipped=1)\r\n", (2, 1)),
        ("Ran 2 tests in 0.000s\n\nOK (skipped=2)\n", (0, 0)),
        ("1..2\nok 1 - total\n# tests 3\n# suites 0\n# pass 1\n# fail 1\n# cancelled 0\n# skipped 1\n", (2, 1)),
        ("\N{INFORMATION SOURCE} tests 2\n\N{INFORMATION SOURCE} pass 2\n", (2, 2)),
        ("Tests:       1 failed, 2 passed, 3 total\n", (3, 2)),
        (" Test Files  1 passed (1)\n      Tests  1 failed | 2 passed (3)\n", (3, 2)),
        ("test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured\ntest result: FAILED. 1 passed; 1 failed; 0 x", (6, 5)),
        ("ok  \tshop\t0.002s\nFAIL\tshop/rates\t0.1s\n?   \tshop/cmd\t[no test files]\n", (2, 1)),
        ("--- PASS: TestTotal (0.00s)\n--- FAIL: TestRate (0.00s)\nFAIL\nFAIL\tshop\t0.1s\n", (3, 1)),
        ("Ran 1 test in 0.1s\n\nOK\nRan 2 tests in 0.1s\n\nOK\n", (3, 3)),
    ],
)  # fmt: skip
def test_summaries_of_test_runners_are_counted(output: str, count: tuple[int, int]) -> None:
    assert count_tests(output) == count


@pytest.mark.parametrize("output", ["", "All checks passed!", "ok 1 - total", "# pass 1", "PASS", "Tests are fun"])
def test_other_output_has_no_count(output: str) -> None:
    assert count_tests(output) is None


def require(tests: tuple[int, int] | None, count: int, outcome: Outcome = Outcome.PASSED) -> Evidence:
    (piece,) = require_counts({"rule": [Evidence(outcome=outcome, tests=tests)]}, {"rule": count} if count else {})[
        "rule"
    ]
    return piece


def test_pass_with_fewer_tests_than_before_is_a_failure() -> None:
    evidence = require((1, 1), 2)
    assert evidence.outcome is Outcome.FAILED
    assert str(evidence) == (
        "expected at least 2 passing tests, as many as ran before the first edit, found 1 passing tests"
    )


def test_pass_without_a_count_is_a_failure_where_there_was_one() -> None:
    assert str(require(None, 2)).endswith("found no count of tests in its output")


def test_enough_tests_and_commands_without_tests_pass() -> None:
    assert require((3, 3), 2).outcome is Outcome.PASSED
    assert require(None, 0).outcome is Outcome.PASSED
    assert require((0, 0), 2, Outcome.FAILED).findings == ()


PASSED, FAILED = Outcome.PASSED, Outcome.FAILED


@pytest.mark.parametrize(
    ("before", "after", "count", "expected"),
    [
        (PASSED, (PASSED, (2, 2)), 2, False),
        (PASSED, (FAILED, (2, 2)), 2, False),  # such as a goal of coverage
        (PASSED, (FAILED, (2, 1)), 2, True),
        (PASSED, (PASSED, None), 2, True),
        (PASSED, (PASSED, None), 0, False),
        (PASSED, (FAILED, None), 0, True),
        (FAILED, (FAILED, None), 0, False),
    ],
)
def test_command_that_passes_only_with_new_tests_needs_them(
    before: Outcome, after: tuple[Outcome, tuple[int, int] | None], count: int, expected: bool
) -> None:
    outcome, tests = after
    pieces = [Evidence(outcome=outcome, tests=tests)]
    assert needs_new_tests([Evidence(outcome=before)], pieces, count) is expected
