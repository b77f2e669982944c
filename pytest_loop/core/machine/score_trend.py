"""Where scores tend to: how they change, whether they have stopped to, and which is the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

# A change of this many points of 100 is noticed; and so many of all changes make a tendency.
NOTICED = 2.0
TENDENCY = 0.67
# What a trend needs.
FEWEST = 3
_TOLERANCE = 1e-9


class Trajectory(str, Enum):
    """Where the qualities of a run tend to."""

    IMPROVING = "improving"
    DECLINING = "declining"
    STABLE = "stable"
    FLUCTUATING = "fluctuating"


class Trigger(str, Enum):
    """Why one could stop early, although nothing says that one must."""

    HIGH_CONFIDENCE = "high_confidence"
    QUALITY_PLATEAU = "quality_plateau"
    DIMINISHING_RETURNS = "diminishing_returns"


# The figures that each has where nobody says otherwise.
USUAL = {Trigger.HIGH_CONFIDENCE: 0.95, Trigger.QUALITY_PLATEAU: 0.02, Trigger.DIMINISHING_RETURNS: 0.05}


def trajectory(qualities: Sequence[float]) -> Trajectory | None:
    """The tendency of qualities from 0 to 100; None where there are too few to say."""
    if len(qualities) < FEWEST:
        return None
    moves = [after - before for before, after in pairwise(qualities)]
    rises = sum(move > NOTICED + _TOLERANCE for move in moves)
    falls = sum(move < -NOTICED - _TOLERANCE for move in moves)
    counted = {
        Trajectory.IMPROVING: rises,
        Trajectory.DECLINING: falls,
        Trajectory.STABLE: len(moves) - rises - falls,
    }
    tending = (name for name, number in counted.items() if number / len(moves) >= TENDENCY)
    return next(tending, Trajectory.FLUCTUATING)


def last_changes(qualities: Sequence[float]) -> tuple[float, ...]:
    """How much the last two changed, as shares of what was there before; nothing where there are too few.

    They have no sign: a small loss is as flat as a small gain. What becomes of nothing is infinitely more.
    """
    last = qualities[-FEWEST:]
    return tuple(_share(*pair) for pair in pairwise(last)) if len(last) == FEWEST else ()


def _share(before: float, after: float) -> float:
    if not before:
        return math.inf if after else 0.0
    return abs(after - before) / before


def is_flat(qualities: Sequence[float], limit: float) -> bool:
    """Whether both of the last changes were smaller than a limit; a limit of 0 is none."""
    changes = last_changes(qualities)
    return bool(changes) and all(change < limit - _TOLERANCE for change in changes)


def direction(qualities: Sequence[float]) -> str:
    """Where the last three went, which the size of a change does not say."""
    last = qualities[-FEWEST:]
    if len(last) < FEWEST or last[0] == last[-1]:
        return "level"
    return "up" if last[-1] > last[0] else "down"


def best(qualities: Sequence[float]) -> int | None:
    """Where the highest stands; of equal ones the first."""
    return max(range(len(qualities)), key=lambda at: (qualities[at], -at), default=None)
