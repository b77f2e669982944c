"""Which tests a change of files affects."""

from __future__ import annotations

import pytest

from pytest_loop.run.affected_tests import AffectedTests
from pytest_loop.workspace.file_tree import FileEntry, FileKind, FileTree

REACH = {"test_a.py::one": frozenset({"a.py"}), "test_a.py::two": frozenset({"a.py", "b.py"}), "x": frozenset[str]()}


def make_tree(**digests: str) -> FileTree:
    return FileTree({f"{name}.py": FileEntry(FileKind.FILE, digest) for name, digest in digests.items()})


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ({"a": "1", "b": "1", "data": "1"}, set()),
        ({"a": "2", "b": "1", "data": "1"}, {"test_a.py::one", "test_a.py::two"}),
        ({"a": "1", "b": "2", "data": "1"}, {"test_a.py::two"}),
        ({"a": "1", "data": "1"}, {"test_a.py::two"}),
        ({"a": "1", "b": "2", "data": "2"}, None),
        ({"a": "1", "b": "1", "data": "1", "new": "1"}, None),
    ],
    ids=["nothing", "a module", "another one", "removed", "data", "new"],
)
def test_a_change_affects_the_tests_that_execute_it(after: dict[str, str], expected: set[str] | None) -> None:
    tests = AffectedTests(make_tree(a="1", b="1", data="1"), dict(REACH))
    assert tests.find(make_tree(**after)) == expected


def test_without_reach_no_test_is_known_to_be_affected() -> None:
    assert AffectedTests(make_tree(a="1")).find(make_tree(a="2")) == set()


def test_changes_count_from_the_last_evaluation_on() -> None:
    tests = AffectedTests(make_tree(a="1", b="1"), dict(REACH))
    tests.record(make_tree(a="2", b="1", new="1"), {"x": frozenset({"new.py"})})
    assert tests.find(make_tree(a="2", b="1", new="2")) == {"x"}
