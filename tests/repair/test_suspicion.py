from __future__ import annotations

import pytest

from pytest_loop.repair.suspicion import Spectrum, compute_ochiai, rank_lines


def make_spectrum(*lines: int, passed: bool = False, frames: tuple[int, ...] = ()) -> Spectrum:
    return Spectrum(passed, frozenset(("a.py", line) for line in lines), tuple(("a.py", line) for line in frames))


@pytest.mark.parametrize(
    ("failed", "passed", "failures", "score"), [(2, 0, 2, 1.0), (1, 0, 4, 0.5), (0, 3, 1, 0.0), (1, 3, 1, 0.5)]
)
def test_ochiai_score_of_a_line(failed: int, passed: int, failures: int, score: float) -> None:
    assert compute_ochiai(failed, passed, failures) == score


def test_line_executed_only_by_failing_tests_comes_first() -> None:
    suspects = rank_lines([make_spectrum(1, 2, 3), make_spectrum(1, 2, passed=True), make_spectrum(1, passed=True)])
    assert [suspect.line for suspect in suspects] == [3, 2, 1]


def test_lines_without_a_failing_test_are_not_suspicious() -> None:
    assert [suspect.line for suspect in rank_lines([make_spectrum(1), make_spectrum(1, 2, passed=True)])] == [1]


def test_deepest_frame_comes_first_among_equal_scores() -> None:
    suspects = rank_lines([make_spectrum(1, 2, 3, frames=(2, 3))])
    assert [suspect.line for suspect in suspects] == [3, 2, 1]


def test_latest_file_comes_first_among_equal_scores() -> None:
    spectrum = Spectrum(False, frozenset([("a.py", 1), ("b.py", 1)]))
    assert [suspect.path for suspect in rank_lines([spectrum], mtimes={"a.py": 1.0, "b.py": 2.0})] == ["b.py", "a.py"]


def test_tie_breakers_never_change_the_order_of_scores() -> None:
    suspects = rank_lines([make_spectrum(1, 2, frames=(2,)), make_spectrum(2, passed=True)])
    assert [suspect.line for suspect in suspects] == [1, 2]
