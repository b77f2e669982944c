"""Parameters of tests whose ids come from the product, and change with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Piece = TypeVar("Piece")


def match_parameters(expected: Iterable[str], evidence: Mapping[str, list[Piece]]) -> dict[str, list[Piece]]:
    """Give the evidence of a test's new parameters also to its expected parameters that are missing.

    Keys are those of rules. A test that has fewer parameters than expected gets nothing: one that fails may be gone.
    """
    expected_by_test, actual_by_test = _group_by_test(expected), _group_by_test(evidence)
    matched = dict(evidence)
    for test, keys in expected_by_test.items():
        actual = actual_by_test.get(test, [])
        missing = [key for key in keys if key not in evidence]
        new = [piece for key in actual if key not in keys for piece in evidence[key]]
        if missing and len(actual) >= len(keys):
            matched |= dict.fromkeys(missing, new)
    return matched


def _group_by_test(keys: Iterable[str]) -> dict[str, list[str]]:
    """Return the keys with parameters by the test that they belong to."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        test, bracket, _ = key.partition("[")
        if bracket:
            groups.setdefault(test, []).append(key)
    return groups
