"""The parts that an edit has changed."""

from __future__ import annotations

import pytest

from pytest_loop.core.model.changed_parts import MAX_NAME_LENGTH, MAX_PARTS, ChangedParts, compare_parts


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (ChangedParts(is_first=True), "initial generation"),
        (ChangedParts(), "nothing"),
        (ChangedParts(added=("Usage", "Install"), removed=("Old",)), "added Usage, Install; removed Old"),
        (ChangedParts(modified=tuple("abcdefg")), "modified a, b, c, d, e and 2 more"),
    ],
)
def test_parts_are_described_in_one_line(parts: ChangedParts, text: str) -> None:
    assert str(parts) == text


def test_parts_are_compared_by_name_and_content() -> None:
    parts = compare_parts({"a": "1", "b": "2", "c": "3"}, {"b": "2", "c": "4", "d": "5"})
    assert parts == ChangedParts(added=("d",), modified=("c",), removed=("a",))


def test_names_of_parts_are_limited() -> None:
    parts = ChangedParts.create(added=["x" * 1000] * 100)
    assert (len(parts.added), len(parts.added[0])) == (MAX_PARTS, MAX_NAME_LENGTH)
