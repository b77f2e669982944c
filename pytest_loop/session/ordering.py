"""The order of items: blocking items first; under xdist, a quick item after every slow one.

A worker of xdist begins an item only when it has another one, and gets items in their order: of two slow rules in
a row, the second would wait for the first at the same worker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest

import pytest

from pytest_loop.core.model.rules import Phase
from pytest_loop.rules.binding import find_phase
from pytest_loop.rules.items import RuleItem
from pytest_loop.session.durations import SLOW_SECONDS

_ASSUMED_SECONDS = 1.0


@dataclass(frozen=True)
class PastResults:
    """The durations and failures of items in earlier sessions, by node id."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    failed: Collection[str] = ()


@dataclass(frozen=True)
class _Block:
    """Items that stay together: a rule, or the tests of a module; blocks with the lowest `rank` run first."""

    items: Sequence[pytest.Item]
    seconds: float
    rank: tuple[bool, bool]


def order_items(items: Sequence[pytest.Item], past: PastResults, *, is_distributed: bool) -> list[pytest.Item]:
    """Return all items in order: those that failed in earlier sessions, then blocking ones, then the others."""
    blocks = sorted(_group_items(items, past), key=lambda block: block.rank)
    if is_distributed:
        groups = [list(group) for _, group in groupby(blocks, key=lambda block: block.rank)]
        blocks = [block for group in groups for block in _alternate_slow_and_cheap(group)]
    return [item for block in blocks for item in block.items]


def order_rule_items(items: Sequence[pytest.Item], past: PastResults) -> list[pytest.Item]:
    """Order the rule items for xdist; tests keep their positions."""
    rules = iter(order_items([item for item in items if isinstance(item, RuleItem)], past, is_distributed=True))
    return [next(rules) if isinstance(item, RuleItem) else item for item in items]


def _alternate_slow_and_cheap(blocks: Sequence[_Block]) -> Iterator[_Block]:
    """Yield the slowest block first, and a cheap one after each slow one."""
    slow = sorted((block for block in blocks if block.seconds >= SLOW_SECONDS), key=lambda block: -block.seconds)
    cheap = [block for block in blocks if block.seconds < SLOW_SECONDS]
    for pair in zip_longest(slow, cheap[: len(slow)]):
        yield from filter(None, pair)
    yield from cheap[len(slow) :]


def _group_items(items: Sequence[pytest.Item], past: PastResults) -> Iterator[_Block]:
    for _, group in groupby(items, key=lambda item: item if isinstance(item, RuleItem) else item.path):
        block = list(group)
        has_failed = any(item.nodeid in past.failed for item in block)
        is_blocking = any(_is_blocking(item) for item in block)
        seconds = sum(_estimate_seconds(item, past) for item in block)
        yield _Block(block, seconds, (not has_failed, not is_blocking))


def _is_blocking(item: pytest.Item) -> bool:
    """Return whether the run cannot pass phase A without this item."""
    if isinstance(item, RuleItem):
        return item.loaded.rule.is_blocking and item.loaded.rule.phase is Phase.A
    mark = item.get_closest_marker("loop_rule")
    severity = mark.kwargs.get("severity", "fail") if mark else "fail"
    return bool(severity == "fail" and find_phase(item) != Phase.B.value)


def _estimate_seconds(item: pytest.Item, past: PastResults) -> float:
    """Return the item's last duration; a rule that runs a command is assumed to be slow."""
    seconds = past.seconds.get(item.nodeid)
    if seconds is not None or not isinstance(item, RuleItem):
        return seconds or 0.0
    return _ASSUMED_SECONDS if item.loaded.is_slow else 0.0
