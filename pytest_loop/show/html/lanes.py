"""Lay out the shards of an evaluation: a lane for each worker, from the start of the evaluation to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pytest_loop.core.model.evaluation import ClusterWork
from pytest_loop.core.text.wording import format_count
from pytest_loop.show.html.texts import format_seconds

MAX_LANES = 40
_WIDTH = 500.0
_MIN_WIDTH = 2.0


class Bar(NamedTuple):
    """One shard: its place in the lane, and its description."""

    x: float
    width: float
    description: str


class Lane(NamedTuple):
    """The shards of one worker."""

    worker: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Lanes:
    """The lanes of one evaluation; `left_out` counts the workers that are not drawn."""

    summary: str
    lanes: tuple[Lane, ...]
    left_out: int = 0


def build_lanes(work: ClusterWork) -> Lanes:
    """Return the lanes of the workers, in the order in which they began."""
    total = max((shard.started + shard.seconds for shard in work.shards), default=0.0)
    scale = _WIDTH / total if total else 0.0
    lanes: dict[str, list[Bar]] = {}
    for shard in sorted(work.shards, key=lambda shard: (shard.started, shard.worker)):
        text = f"{format_count(shard.items, 'item')} in {format_seconds(shard.seconds)}"
        bar = Bar(round(shard.started * scale, 1), round(max(_MIN_WIDTH, shard.seconds * scale), 1), text)
        lanes.setdefault(shard.worker, []).append(bar)
    drawn = tuple(Lane(worker, tuple(bars)) for worker, bars in lanes.items())
    return Lanes(str(work), drawn[:MAX_LANES], len(drawn[MAX_LANES:]))
