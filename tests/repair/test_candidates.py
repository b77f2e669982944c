from __future__ import annotations

import time
from itertools import islice
from pathlib import Path, PurePosixPath

import pytest

from pytest_loop.repair.candidates import DuplicateFilter, EditCandidate, rank_candidates
from pytest_loop.repair.edit_unit import split_units
from pytest_loop.repair.editable_files import EditableFiles, is_product_code
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.suspicion import add_definition_scores
from pytest_loop.repair.text_edits import TextEdit

TEXT = "LIMIT = 3\n\n\ndef f(a, b):\n    if a < b:\n        return a\n    return b[LIMIT]\n"


def make_source(text: str = TEXT) -> PythonSource:
    return PythonSource(Path("/it.py"), text)


def test_suspicious_lines_come_first() -> None:
    candidates = rank_candidates([make_source()], {("/it.py", 5): 0.9, ("/it.py", 7): 0.1})
    lines = [candidate.line for candidate in candidates]
    assert lines[0] == 5
    assert lines.index(7) > 10


def test_lines_without_suspicion_get_no_candidates() -> None:
    assert {candidate.line for candidate in rank_candidates([make_source()], {("/it.py", 5): 1.0})} == {5}


def test_exception_of_the_failure_decides_which_template_comes_first() -> None:
    scores = {("/it.py", 7): 1.0}

    def find_slice_rank(exceptions: tuple[str, ...]) -> int:
        candidates = rank_candidates([make_source()], scores, exceptions=exceptions)
        return [candidate.template for candidate in candidates].index("slice_add")

    assert find_slice_rank(("IndexError",)) < find_slice_rank(("AssertionError",))


def test_order_of_candidates_is_always_the_same() -> None:
    scores = {("/it.py", line): 1.0 for line in range(1, 8)}
    orders = [[candidate.edits for candidate in rank_candidates([make_source()], scores)] for _ in range(2)]
    assert orders[0] == orders[1]


def test_invalid_unchanged_and_duplicate_candidates_are_dropped() -> None:
    at = TEXT.index("a < b")
    unit = next(split_units(make_source()))

    def parse(text: str) -> object:
        return duplicates.parse_if_new(EditCandidate(unit, (TextEdit(at, at + 5, text),), "const", 5, 1.0, 1))

    duplicates = DuplicateFilter()
    assert parse("a <") is None
    assert parse("(a   <   b)") is None
    assert parse("a > b") is not None
    assert parse("(a > b)") is None


def test_module_level_value_inherits_suspicion_of_its_readers() -> None:
    scores = add_definition_scores([make_source()], {("/it.py", 7): 1.0})
    assert 0 < scores["/it.py", 1] < 1
    assert ("/it.py", 5) not in scores


@pytest.mark.parametrize("name", ["a.py", "pkg/a.py", "pkg/testimony.py", "latest/a.py"])
def test_product_code_may_be_edited(name: str) -> None:
    assert is_product_code(PurePosixPath(name))


@pytest.mark.parametrize(
    "name",
    ["conftest.py", "pkg/conftest.py", "test_a.py", "a_test.py", "tests/helpers.py", "pkg/tests/a.py", ".venv/a.py"],
)
def test_test_files_and_installed_files_may_not_be_edited(name: str) -> None:
    assert not is_product_code(PurePosixPath(name))


def test_editable_files_are_limited_to_the_folder_and_its_patterns(tmp_path: Path) -> None:
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


def test_candidates_come_best_first_and_are_made_when_needed() -> None:
    function = "def f{0}(a, b):\n    if a < b:\n        b = a.c[{0}]\n    return g(a, b)\n"
    source = make_source("".join(function.format(number) for number in range(500)))
    scores = {("/it.py", line): 0.5 if line > 10 else 1.0 for line in range(1, 2001)}
    candidates = rank_candidates([source], scores)
    started = time.perf_counter()
    first = list(islice(candidates, 200))
    assert time.perf_counter() - started < 5  # all candidates take minutes
    values = [candidate.score for candidate in first]
    assert values == sorted(values, reverse=True)
