"""Trends of scores."""

from __future__ import annotations

import math

import pytest

from pytest_loop.core.machine.score_trend import (
    Trajectory,
    classify_trajectory,
    compute_last_changes,
    find_direction,
    is_flat,
)


@pytest.mark.parametrize(
    ("qualities", "trajectory"),
    [
        ((), None),
        ((60, 85), None),
        ((60, 85, 83), Trajectory.FLUCTUATING),
        ((10, 20, 30), Trajectory.IMPROVING),
        ((30, 20, 10), Trajectory.DECLINING),
        ((80, 81, 81.5), Trajectory.STABLE),
        ((10, 20, 30, 30), Trajectory.FLUCTUATING),
        ((10, 20, 30, 40, 40), Trajectory.IMPROVING),
        ((0.1 + 0.2, 2.3, 4.3), Trajectory.STABLE),
    ],
)
def test_trajectory_follows_the_majority_of_changes(
    qualities: tuple[float, ...], trajectory: Trajectory | None
) -> None:
    assert classify_trajectory(qualities) is trajectory


@pytest.mark.parametrize(
    ("qualities", "is_plateau", "is_diminishing"),
    [
        ((80, 81, 81.5), True, True),
        ((0, 90, 90), False, False),
        ((60, 85, 83), False, False),
        ((80, 83, 86), False, True),
        ((50, 51, 52.02), False, True),
        ((81.5, 81, 80), True, True),
        ((0, 0, 0), True, True),
        ((80, 80), False, False),
        ((10, 80, 80, 80), True, True),
    ],
)
def test_two_small_changes_in_a_row_are_flat(
    qualities: tuple[float, ...], is_plateau: bool, is_diminishing: bool
) -> None:
    assert is_flat(qualities, 0.02) is is_plateau
    assert is_flat(qualities, 0.05) is is_diminishing
    assert not is_flat(qualities, 0)


def test_changes_are_relative_to_the_previous_score() -> None:
    assert compute_last_changes((80, 81, 81.5)) == pytest.approx((0.0125, 0.00617), abs=1e-5)
    assert compute_last_changes((0, 90, 90)) == (math.inf, 0.0)


@pytest.mark.parametrize(
    ("qualities", "direction"),
    [((80, 81, 81.5), "up"), ((81.5, 81, 80), "down"), ((1, 2, 1), "level"), ((1, 2), "level")],
)
def test_direction_of_the_last_changes(qualities: tuple[float, ...], direction: str) -> None:
    assert find_direction(qualities) == direction
