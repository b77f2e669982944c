"""Simulate evaluations on up to 1,000 workers: collection, transfer, slow and lost workers."""

from __future__ import annotations

import argparse
import heapq
from bisect import insort
from dataclasses import dataclass
from itertools import product
from random import Random
from statistics import median

from side_by_side import render_table

from pytest_loop.core.judging.shards import divide_items

_NONE = -1
_SEEDS = 9
FILE_ITEMS = 20  # the items of a file stay together
_START_SECONDS = 1.5  # interpreter, pytest, plugins, and a folder that is there already
_COLLECT_SECONDS = 0.0007  # for each item of the suite, in each shard; measured with 20,000 items
_SENT_BYTES = 20  # for each item, in each shard: its recorded duration, compressed
_LINK_BYTES = 1.25e8  # one link of 1 Gbit/s between the run and all of its workers
_SLOW_SHARE, _SLOW_FACTOR = 0.01, 3.0
_LOST_SHARE = 0.002
_SHARD_FACTOR, _MAX_SHARDS_PER_WORKER = 10, 4  # more shards than workers, if their start takes a tenth of them
_REPEAT_FACTOR = 1.5  # a shard that takes so many times the median is repeated by an idle worker


@dataclass(frozen=True)
class Suite:
    """Files with the recorded and the actual seconds of their items."""

    recorded: dict[str, float]
    actual: dict[str, float]
    items: int

    @property
    def seconds(self) -> float:
        return sum(self.actual.values())

    @property
    def longest(self) -> float:
        return max(self.actual.values())

    @property
    def overhead(self) -> float:
        """The seconds of a shard before its first test."""
        return _START_SECONDS + _COLLECT_SECONDS * self.items


def make_suite(items: int, mean: float, random: Random) -> Suite:
    """Return a suite whose items take `mean` seconds on average, a few of them much longer."""
    recorded = {
        f"{number:06}": sum(random.lognormvariate(-0.72, 1.2) for _ in range(FILE_ITEMS)) * mean
        for number in range(max(1, items // FILE_ITEMS))
    }
    actual = {name: seconds * random.lognormvariate(0, 0.1) for name, seconds in recorded.items()}
    return Suite(recorded, actual, items)


def compute_model(suite: Suite, workers: int) -> float:
    """Return the seconds of an evaluation according to the formula of the page."""
    transfer = workers * suite.items * _SENT_BYTES / _LINK_BYTES
    return suite.overhead + max(suite.seconds / workers, suite.longest) + transfer


class Simulation:
    """One evaluation: an idle worker takes a shard that waits, or repeats one that takes too long elsewhere."""

    def __init__(self, suite: Suite, workers: int, random: Random, *, has_trouble: bool = True) -> None:
        pays = suite.seconds / workers / (_SHARD_FACTOR * suite.overhead)
        total = workers * max(1, min(_MAX_SHARDS_PER_WORKER, int(pays)))
        shards = divide_items({name: [name] for name in suite.recorded}, total, suite.recorded)
        self._random = random
        self._costs = [suite.overhead + sum(suite.actual[name] for name in shard) for shard in shards]
        self._send_seconds = suite.items * _SENT_BYTES / _LINK_BYTES
        self._link_free = 0.0
        self._has_trouble = has_trouble
        self._speeds = [self._draw_speed() for _ in range(workers)]
        self._waiting = list(range(total))[::-1]
        self._idle = list(range(workers))
        self._started: dict[int, float] = {}  # of shards that one worker has
        self._durations: list[float] = []  # sorted
        self._answered: set[int] = set()
        self._events: list[tuple[float, int, int]] = []  # time, shard, worker; no shard: look for a slow one

    def _draw_speed(self) -> float:
        is_slow = self._has_trouble and self._random.random() < _SLOW_SHARE
        return self._random.lognormvariate(0, 0.05) * (_SLOW_FACTOR if is_slow else 1.0)

    def run(self) -> float:
        """Return the seconds until the last shard has an answer."""
        now = 0.0
        self._assign(now)
        while len(self._answered) < len(self._costs):
            now, number, worker = heapq.heappop(self._events)
            if number != _NONE:
                self._idle.append(worker)
                self._end(now, number, worker)
            self._assign(now)
        return now

    def _end(self, now: float, number: int, worker: int) -> None:
        """Keep the first answer of a shard; one that was lost waits again, and its worker is replaced."""
        if self._has_trouble and self._random.random() < _LOST_SHARE:
            self._speeds[worker] = self._draw_speed()
            if number not in self._answered and number in self._started:
                self._waiting.append(number)
        elif number not in self._answered:
            self._answered.add(number)
            if number in self._started:
                insort(self._durations, now - self._started.pop(number))

    def _assign(self, now: float) -> None:
        while self._idle and self._waiting:
            number = self._waiting.pop()
            self._started[number] = now
            self._start(now, number)
        open_shards = sorted(self._started.items(), key=lambda pair: pair[1]) if self._idle and self._durations else []
        for number, started in open_shards:
            limit = started + _REPEAT_FACTOR * self._durations[len(self._durations) // 2]
            if now < limit:
                heapq.heappush(self._events, (limit, _NONE, 0))
                return
            if not self._idle:
                return
            del self._started[number]
            self._start(now, number)

    def _start(self, now: float, number: int) -> None:
        worker = self._idle.pop()
        self._link_free = max(now, self._link_free) + self._send_seconds
        end = self._link_free + self._costs[number] * self._speeds[worker]
        heapq.heappush(self._events, (end, number, worker))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 8, 32, 128, 320, 1_000])
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.01, 0.1, 1.0], help="mean seconds of an item")
    values = parser.parse_args()
    rows = []
    for items, mean in product(values.items, values.seconds):
        suite = make_suite(items, mean, Random(items))
        here = suite.overhead + suite.seconds
        for workers in values.workers:
            quiet = Simulation(suite, workers, Random(workers), has_trouble=False).run()
            seconds = median(Simulation(suite, workers, Random(seed)).run() for seed in range(_SEEDS))
            figures = [f"{number:,.0f}" for number in (compute_model(suite, workers), quiet, seconds)]
            rows.append([f"{items:,}", f"{mean:g} s", f"{workers:,}", *figures, f"{here / seconds:.1f}"])
    print(render_table(["items", "each", "workers", "formula", "simulated", "with trouble", "times faster"], rows))


if __name__ == "__main__":
    main()
