"""Match parametrized tests whose ids come from the product, and change with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

Piece = TypeVar("Piece")


def match_parameters(expected: Iterable[str], evidence: Mapping[str, list[Piece]]) -> dict[str, list[Piece]]:
    """Return the evidence, in which all new keys of a test stand in for each of its missing expected keys.

    A key names a rule, and ends with the parameters of a test in brackets.
    A test that now has fewer parameters than expected gets no substitute: a failing one may have been removed.
    """
    actual_by_test = _group_by_test(evidence)
    matched = dict(evidence)
    for test, keys in _group_by_test(expected).items():
        actual = actual_by_test.get(test, [])
        missing = [key for key in keys if key not in evidence]
        new = [piece for key in actual if key not in keys for piece in evidence[key]]
        if missing and len(actual) >= len(keys):
            matched |= dict.fromkeys(missing, new)
    return matched


def _group_by_test(keys: Iterable[str]) -> dict[str, list[str]]:
    """Group keys by test; leave out keys without parameters."""
    groups: dict[str, list[str]] = {}
    for key in keys:
        test, bracket, _ = key.partition("[")
        if bracket:
            groups.setdefault(test, []).append(key)
    return groups
