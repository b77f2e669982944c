"""Count the tests in the output of a command: an exit code of 0 is no proof that any test ran."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from pytest_loop.core.model.rules import Evidence, Finding, Outcome

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NUMBER_AND_WORD = re.compile(r"(\d+) ([a-z]+)")
_NAME_AND_NUMBER = re.compile(r"(failures|errors|skipped|expected failures)=(\d+)")
_PYTEST = re.compile(r"^[= ]*(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s\b", re.MULTILINE)
_UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n\s*(?:OK|FAILED|NO TESTS RAN)(?: \((.*)\))?", re.MULTILINE)
_NODE = re.compile(r"^(?:#|\N{INFORMATION SOURCE}) (tests|pass|fail|cancelled) (\d+)", re.MULTILINE)
_JEST = re.compile(r"^Tests: +(.*), \d+ total", re.MULTILINE)
_VITEST = re.compile(r"^ *Tests +(.*\d+ .*) \(\d+\)", re.MULTILINE)
_CARGO = re.compile(r"^test result: \w+\. (\d+ passed; \d+ failed); ", re.MULTILINE)
_GO = re.compile(r"^(?:(ok|FAIL) *\t|--- (PASS|FAIL): )\S+", re.MULTILINE)
_FAILED_WORDS = ("failed", "error", "errors")


class CountedTests(NamedTuple):
    """The number of tests that a command ran, without skipped ones, and the number of those that passed."""

    run: int
    passed: int


def count_tests(output: str) -> CountedTests | None:
    """Add up the summaries of all test runners in an output; None if there is no summary."""
    text = _COLOURS.sub("", output).replace("\r\n", "\n")
    counts = [count for find in _COUNTERS for count in find(text)]
    return CountedTests(sum(count.run for count in counts), sum(count.passed for count in counts)) if counts else None


def require_counts(evidence: Mapping[str, Sequence[Evidence]], counts: Mapping[str, int]) -> dict[str, list[Evidence]]:
    """Return the evidence; turn a pass into a failure if fewer tests passed than `counts` requires for its key."""
    return {key: [_require_count(piece, counts.get(key, 0)) for piece in pieces] for key, pieces in evidence.items()}


def needs_new_tests(before: Sequence[Evidence], after: Sequence[Evidence], count: int) -> bool:
    """Return whether a command passes only with new tests: `before` is its evidence with them, `after` without them.

    With a `count` of old tests, return whether fewer tests pass in `after`, whatever its outcome: a coverage goal may
    need the new tests.
    """
    if any(evidence.outcome is not Outcome.PASSED for evidence in before):
        return False
    if count:
        return min((evidence.tests or (0, 0))[1] for evidence in after) < count
    return any(evidence.outcome is not Outcome.PASSED for evidence in after)


def _require_count(evidence: Evidence, count: int) -> Evidence:
    passed = evidence.tests[1] if evidence.tests else 0
    if evidence.outcome is not Outcome.PASSED or passed >= count:
        return evidence
    found = f"{passed} passing tests" if evidence.tests else "no count of tests in its output"
    finding = Finding(expected=f"at least {count} passing tests, as many as ran before the first edit", found=found)
    return evidence.model_copy(update={"outcome": Outcome.FAILED, "findings": (finding,)})


def _count_unittest(text: str) -> Iterator[CountedTests]:
    for match in _UNITTEST.finditer(text):
        numbers = {name: int(number) for name, number in _NAME_AND_NUMBER.findall(match[2] or "")}
        run = int(match[1]) - numbers.pop("skipped", 0)
        yield CountedTests(run, run - sum(numbers.values()))


def _count_node(text: str) -> Iterator[CountedTests]:
    numbers = {name: int(number) for name, number in _NODE.findall(text)}
    if "tests" in numbers:
        passed = numbers.get("pass", 0)
        yield CountedTests(passed + numbers.get("fail", 0) + numbers.get("cancelled", 0), passed)


def _count_go(text: str) -> Iterator[CountedTests]:
    """Count packages, or tests where `-v` names them."""
    words = [package or test for package, test in _GO.findall(text)]
    if words:
        yield CountedTests(len(words), len(words) - words.count("FAIL"))


def _count_phrases(text: str) -> Iterator[CountedTests]:
    """Count in summaries such as `1 failed, 2 passed`, of pytest, jest, vitest and cargo."""
    for pattern in (_PYTEST, _JEST, _VITEST, _CARGO):
        for match in pattern.finditer(text):
            numbers = {word: int(number) for number, word in _NUMBER_AND_WORD.findall(match[1])}
            passed = numbers.get("passed", 0)
            yield CountedTests(passed + sum(numbers.get(word, 0) for word in _FAILED_WORDS), passed)


_COUNTERS = (_count_phrases, _count_unittest, _count_node, _count_go)
