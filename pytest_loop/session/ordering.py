"""In which order items are judged: what decides comes first, and beside every slow rule stands a cheap one.

A worker of xdist begins a test only when it has a second one, and gets tests in the order in which they stand: two slow
rules in a row would wait for each other at the same worker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, zip_longest
from typing import Any

import pytest

from pytest_loop.core.model.rules import Phase
from pytest_loop.rules.items import RuleItem

SLOW = 0.3
_UNKNOWN = 1.0


@dataclass(frozen=True)
class Past:
    """What is known of items from sessions before, by node id."""

    seconds: Mapping[str, float] = field(default_factory=dict)
    failed: Collection[str] = ()


@dataclass(frozen=True)
class _Block:
    """Items that stay together: a rule, or the tests of a module."""

    items: Sequence[pytest.Item]
    seconds: float
    rank: tuple[bool, bool]


def arranged(items: Sequence[pytest.Item], past: Past, *, is_spread: bool) -> tuple[list[pytest.Item], bool]:
    """The items in another order, and whether slow ones are among cheap ones."""
    blocks = sorted(_blocks(items, past, is_spread), key=lambda block: block.rank)
    if not is_spread:
        return [item for block in blocks for item in block.items], False
    groups = [list(group) for _, group in groupby(blocks, key=lambda block: block.rank)]
    mixed = [block for group in groups for block in _mixed(group)]
    is_uneven = len({block.seconds >= SLOW for block in mixed}) == 2
    return [item for block in mixed for item in block.items], is_uneven


def rules_arranged(items: Sequence[pytest.Item], past: Past) -> tuple[list[pytest.Item], bool]:
    """Only rules in another order, in the places that they have: nobody asked for one of the tests."""
    rules, is_uneven = arranged([item for item in items if isinstance(item, RuleItem)], past, is_spread=True)
    others = iter(rules)
    return [next(others) if isinstance(item, RuleItem) else item for item in items], is_uneven


def _mixed(blocks: Sequence[_Block]) -> Iterator[_Block]:
    """The slowest first, each followed by a cheap one."""
    slow = sorted((block for block in blocks if block.seconds >= SLOW), key=lambda block: -block.seconds)
    cheap = [block for block in blocks if block.seconds < SLOW]
    for pair in zip_longest(slow, cheap[: len(slow)]):
        yield from filter(None, pair)
    yield from cheap[len(slow) :]


def _blocks(items: Sequence[pytest.Item], past: Past, is_timed: bool) -> Iterator[_Block]:
    for _, group in groupby(items, key=lambda item: item if isinstance(item, RuleItem) else item.path):
        together = list(group)
        failed = any(item.nodeid in past.failed for item in together)
        decides = any(_decides(item) for item in together)
        seconds = sum(_seconds(item, past) for item in together) if is_timed else 0.0
        yield _Block(together, seconds, (not failed, not decides))


def _decides(item: pytest.Item) -> bool:
    """Whether nothing can pass without it, from the first phase on."""
    if isinstance(item, RuleItem):
        return item.judged.rule.is_blocking and item.judged.rule.phase is Phase.A
    mark = item.get_closest_marker("loop_rule")
    asked: Mapping[str, Any] = mark.kwargs if mark else {}
    return bool(asked.get("severity", "fail") == "fail" and asked.get("phase", "A") == "A")


def _seconds(item: pytest.Item, past: Past) -> float:
    """As long as it took before; a rule that was never judged is slow if it runs something."""
    known = past.seconds.get(item.nodeid)
    if known is not None or not isinstance(item, RuleItem):
        return known or 0.0
    return _UNKNOWN if item.judged.is_slow else 0.0
