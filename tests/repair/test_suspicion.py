from __future__ import annotations

import pytest

from pytest_loop.repair.suspicion import Spectrum, compute_ochiai, rank_lines


def spectrum(*lines: int, passed: bool = False, frames: tuple[int, ...] = ()) -> Spectrum:
    return Spectrum(passed, frozenset(("a.py", line) for line in lines), tuple(("a.py", line) for line in frames))


@pytest.mark.parametrize(
    ("failed", "passed", "failures", "score"), [(2, 0, 2, 1.0), (1, 0, 4, 0.5), (0, 3, 1, 0.0), (1, 3, 1, 0.5)]
)
def test_ochiai(failed: int, passed: int, failures: int, score: float) -> None:
    assert compute_ochiai(failed, passed, failures) == score


def test_the_line_that_only_failing_tests_execute_comes_first() -> None:
    found = rank_lines([spectrum(1, 2, 3), spectrum(1, 2, passed=True), spectrum(1, passed=True)])
    assert [one.line for one in found] == [3, 2, 1]


def test_lines_that_no_failing_test_executes_are_not_suspicious() -> None:
    assert [one.line for one in rank_lines([spectrum(1), spectrum(1, 2, passed=True)])] == [1]


def test_among_equals_the_deepest_frame_comes_first() -> None:
    found = rank_lines([spectrum(1, 2, 3, frames=(2, 3))])
    assert [one.line for one in found] == [3, 2, 1]


def test_among_equals_the_changed_line_comes_first() -> None:
    assert [one.line for one in rank_lines([spectrum(1, 2, 3)], changed=[("a.py", 3)])] == [3, 1, 2]


def test_among_equals_the_file_changed_last_comes_first() -> None:
    one = Spectrum(False, frozenset([("a.py", 1), ("b.py", 1)]))
    assert [suspect.path for suspect in rank_lines([one], ages={"a.py": 1.0, "b.py": 2.0})] == ["b.py", "a.py"]


def test_ties_never_overtake_another_score() -> None:
    found = rank_lines([spectrum(1, 2, frames=(2,)), spectrum(2, passed=True)], changed=[("a.py", 2)])
    assert [one.line for one in found] == [1, 2]
