"""The trend of scores: how they change, and whether they stay flat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

# Smaller changes, in points of 100, are noise; a tendency needs at least this share of all changes.
MIN_CHANGE = 2.0
MIN_SHARE = 0.67
# A trend needs this many scores.
MIN_SCORES = 3
_TOLERANCE = 1e-9


class Trajectory(str, Enum):
    """The tendency of the scores of a run."""

    IMPROVING = "improving"
    DECLINING = "declining"
    STABLE = "stable"
    FLUCTUATING = "fluctuating"


def classify_trajectory(scores: Sequence[float]) -> Trajectory | None:
    """Return the tendency of scores from 0 to 100; None if there are too few."""
    if len(scores) < MIN_SCORES:
        return None
    moves = [after - before for before, after in pairwise(scores)]
    rises = sum(move > MIN_CHANGE + _TOLERANCE for move in moves)
    falls = sum(move < -MIN_CHANGE - _TOLERANCE for move in moves)
    counts = {
        Trajectory.IMPROVING: rises,
        Trajectory.DECLINING: falls,
        Trajectory.STABLE: len(moves) - rises - falls,
    }
    tendencies = (name for name, number in counts.items() if number / len(moves) >= MIN_SHARE)
    return next(tendencies, Trajectory.FLUCTUATING)


def compute_last_changes(scores: Sequence[float]) -> tuple[float, ...]:
    """Return the last two changes, each relative to the score before it; empty if there are too few scores.

    The changes have no sign: a small loss is as flat as a small gain. A rise from zero is infinite.
    """
    last = scores[-MIN_SCORES:]
    return tuple(_compute_share(*pair) for pair in pairwise(last)) if len(last) == MIN_SCORES else ()


def _compute_share(before: float, after: float) -> float:
    if not before:
        return math.inf if after else 0.0
    return abs(after - before) / before


def is_flat(scores: Sequence[float], limit: float) -> bool:
    """Return whether the last two relative changes were both smaller than `limit`; never with a limit of 0."""
    changes = compute_last_changes(scores)
    return bool(changes) and all(change < limit - _TOLERANCE for change in changes)


def find_direction(scores: Sequence[float]) -> str:
    """Return the direction of the last three scores: up, down or level."""
    last = scores[-MIN_SCORES:]
    if len(last) < MIN_SCORES or last[0] == last[-1]:
        return "level"
    return "up" if last[-1] > last[0] else "down"
