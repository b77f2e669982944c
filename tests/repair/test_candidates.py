from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from pytest_loop.repair.candidates import Candidate, DuplicateFilter, rank_candidates
from pytest_loop.repair.edit_unit import split_units
from pytest_loop.repair.editable_files import EditableFiles, is_product_code
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.suspicion import add_definition_scores
from pytest_loop.repair.text_edits import TextEdit

TEXT = "LIMIT = 3\n\n\ndef f(a, b):\n    if a < b:\n        return a\n    return b[LIMIT]\n"


def source(text: str = TEXT) -> PythonSource:
    return PythonSource(Path("/it.py"), text)


def test_suspicious_lines_come_first() -> None:
    found = rank_candidates([source()], {("/it.py", 5): 0.9, ("/it.py", 7): 0.1})
    lines = [one.line for one in found]
    assert lines[0] == 5
    assert lines.index(7) > 10


def test_lines_that_are_not_suspicious_are_left_alone() -> None:
    assert {one.line for one in rank_candidates([source()], {("/it.py", 5): 1.0})} == {5}


def test_the_exception_says_what_is_tried_first() -> None:
    scores = {("/it.py", 7): 1.0}

    def place(exceptions: tuple[str, ...]) -> int:
        return next(
            at for at, one in enumerate(rank_candidates([source()], scores, exceptions=exceptions)) if is_bound(one)
        )

    def is_bound(one: Candidate) -> bool:
        return one.template == "slice_add"

    assert place(("IndexError",)) < place(("AssertionError",))


def test_the_seed_decides_among_equals_and_nothing_else_does() -> None:
    scores = {("/it.py", line): 1.0 for line in range(1, 8)}
    orders = [[one.edits for one in rank_candidates([source()], scores, seed=seed)] for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(map(repr, orders[0])) == sorted(map(repr, orders[2]))


def test_what_does_not_parse_changes_nothing_or_was_tried_is_dropped() -> None:
    at = TEXT.index("a < b")
    unit = next(split_units(source()))

    def tree(text: str) -> object:
        return sieve.parse_if_new(Candidate(unit, (TextEdit(at, at + 5, text),), "const", 5, 1.0, 1.0, 1))

    sieve = DuplicateFilter()
    assert tree("a <") is None
    assert tree("(a   <   b)") is None
    assert tree("a > b") is not None
    assert tree("(a > b)") is None


def test_what_is_set_at_import_is_as_suspicious_as_who_reads_it() -> None:
    found = add_definition_scores([source()], {("/it.py", 7): 1.0})
    assert 0 < found["/it.py", 1] < 1
    assert ("/it.py", 5) not in found


@pytest.mark.parametrize("name", ["a.py", "pkg/a.py", "pkg/testimony.py", "latest/a.py"])
def test_code_may_be_edited(name: str) -> None:
    assert is_product_code(PurePosixPath(name))


@pytest.mark.parametrize(
    "name",
    ["conftest.py", "pkg/conftest.py", "test_a.py", "a_test.py", "tests/helpers.py", "pkg/tests/a.py", ".venv/a.py"],
)
def test_what_tests_or_is_installed_may_not_be_edited(name: str) -> None:
    assert not is_product_code(PurePosixPath(name))


def test_a_scope_ends_at_its_folder_and_its_patterns(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    for name in ("pkg/a.py", "pkg/b.py", "check.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (tmp_path / "outside.py").touch()
    (folder / "pkg" / "link.py").symlink_to(tmp_path / "outside.py")
    scope = EditableFiles(folder, ["pkg/*.py", "!pkg/b.py"], tests=[folder / "check.py"])
    assert scope.find_file(str(folder / "pkg/a.py")) == (folder / "pkg/a.py").resolve()
    for name in ("pkg/b.py", "check.py", "pkg/link.py", "../outside.py", "pkg/missing.py"):
        assert scope.find_file(str(folder / name)) is None
    assert EditableFiles(folder, (), tests=[folder / "check.py"]).find_file(str(folder / "check.py")) is None
