"""Shards of a session: divide its items, and check that the evidence of all shards belongs together."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from pytest_loop.core.model.rules import Evidence, Outcome, SessionPlan, Value, Verdict
from pytest_loop.core.text.wording import format_count

# The assumed duration of an item that no session has measured.
QUICK_SECONDS = 0.01


class ShardEvidence(Value):
    """The evidence of one shard, and the plan of the undivided session.

    `origin` are facts that must be the same for all shards, such as the commit. `baseline` holds the verdicts of
    `--loop-baseline`. `has_own_score` means that a hook computes the score.
    """

    schema_version: int = 1
    shard: int
    origin: dict[str, str]
    plan: SessionPlan
    evidence: dict[str, Evidence]
    exit_status: int
    has_own_score: bool = False
    baseline: dict[str, Verdict] | None = None

    @property
    def total(self) -> int:
        return len(self.plan.shards)

    @property
    def items(self) -> tuple[str, ...]:
        return self.plan.shards[self.shard - 1] if 0 < self.shard <= self.total else ()


def divide_items(
    groups: Mapping[str, Sequence[str]], total: int, seconds: Mapping[str, float] = MappingProxyType({})
) -> tuple[tuple[str, ...], ...]:
    """Divide items into shards of nearly equal duration; the items of a group stay together.

    The order of groups and items does not change the result.
    """
    costs = {name: sum(seconds.get(item, QUICK_SECONDS) for item in sorted(items)) for name, items in groups.items()}
    shards: list[list[str]] = [[] for _ in range(total)]
    loads = [(0.0, index) for index in range(total)]
    for name in sorted(groups, key=lambda name: (-costs[name], name)):
        load, index = loads[0]
        heapq.heapreplace(loads, (load + costs[name], index))
        shards[index] += groups[name]
    return tuple(tuple(sorted(shard)) for shard in shards)


def list_problems(shards: Mapping[str, ShardEvidence]) -> Iterator[str]:
    """Yield the reasons why these shards are not one complete session; keys are the names of their files."""
    (first_name, first), *others = shards.items()
    foreign = [(name, text) for name, shard in others if (text := _find_difference(shard, first))]
    if foreign:
        yield from (f"{name} does not belong to {first_name}: {text}" for name, text in foreign)
        return
    files: dict[int, list[str]] = {}
    for name, shard in shards.items():
        files.setdefault(shard.shard, []).append(name)
    for number, names in sorted(files.items()):
        if len(names) > 1:
            yield f"shard {number} of {first.total} is there {len(names)} times: {', '.join(names)}; name it once"
        if not 0 < number <= first.total:
            yield f"{names[0]} is shard {number} of {first.total}, which does not exist"
    for number in range(1, first.total + 1):
        if number not in files:
            yield (
                f"shard {number} of {first.total} is missing: name its file, or run pytest "
                f"--loop-shard {number}/{first.total} again"
            )


def _find_difference(shard: ShardEvidence, first: ShardEvidence) -> str:
    """Describe how a shard differs from the first one; empty if both are of one session."""
    if shard.total != first.total:
        return f"it is one of {shard.total} shards, expected {first.total}"
    for name, value in first.origin.items():
        if shard.origin.get(name) != value:
            return f"its {name} is {shard.origin.get(name) or 'unknown'}, expected {value or 'none'}"
    if difference := find_plan_difference(shard.plan, first.plan):
        return difference
    if (shard.baseline, shard.has_own_score) != (first.baseline, first.has_own_score):
        return "it has another baseline or another hook pytest_loop_score"
    return ""


def find_plan_difference(plan: SessionPlan, expected: SessionPlan) -> str:
    """Describe how a plan differs from the expected one; empty if only the order of items differs."""
    if rule := _find_changed(_collect_rules(plan), _collect_rules(expected)):
        return f"it was judged by other rules, {rule} differs"
    if plan.shards != expected.shards:
        items = {item for items in plan.shards for item in items}
        expected_items = {item for items in expected.shards for item in items}
        return f"it collected other items, such as {min(items ^ expected_items, default='in other shards')}"
    if plan.items != expected.items:
        return f"it bound other rules to {_find_changed(plan.items, expected.items)}"
    return ""


def hash_plan(plan: SessionPlan) -> str:
    """Return a hash that plans without a difference share."""
    rules = [
        criteria.model_copy(update={"rules": tuple(sorted(criteria.rules, key=lambda rule: rule.id))})
        for criteria in sorted(plan.criteria, key=lambda criteria: criteria.source)
    ]
    items, checks = dict(sorted(plan.items.items())), dict(sorted(plan.checks.items()))
    text = SessionPlan(criteria=tuple(rules), items=items, checks=checks, shards=plan.shards).model_dump_json()
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _collect_rules(plan: SessionPlan) -> dict[str, Any]:
    rules: dict[str, Any] = {criteria.source: (criteria.name, criteria.thresholds) for criteria in plan.criteria}
    for criteria in plan.criteria:
        for rule in criteria.rules:
            key = f"{criteria.source}::{rule.id}"
            rules[key] = (rule, plan.checks.get(key))
    return rules


def _find_changed(values: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    """Return the first key whose values differ; empty if none do."""
    keys = sorted(values.keys() | expected.keys())
    return next((key for key in keys if key not in values or key not in expected or values[key] != expected[key]), "")


def merge_evidence(shards: Mapping[str, ShardEvidence]) -> dict[str, Evidence]:
    """Return the evidence of every item from the shard that it belongs to."""
    return {item: shard.evidence[item] for shard in shards.values() for item in shard.items if item in shard.evidence}


def list_failures(shards: Mapping[str, ShardEvidence]) -> Iterator[str]:
    """Yield a line per failed item without rules, per shard with missing reports, and per unexplained exit code."""
    for shard in shards.values():
        place = f"shard {shard.shard} of {shard.total}"
        tests = {item: shard.evidence.get(item) for item in shard.items if item not in shard.plan.items}
        for item, evidence in tests.items():
            if evidence is not None and evidence.outcome in (Outcome.FAILED, Outcome.ERROR):
                yield f"failed in {place}: {item}: {(evidence.text.splitlines() or ['no message'])[0]}"
        if missing := [item for item in shard.items if item not in shard.evidence]:
            yield f"no report in {place}: {missing[0]}" + (
                f" and {format_count(len(missing) - 1, 'more item')}" if missing[1:] else ""
            )
        has_failures = any(piece.outcome.rank >= Outcome.UNCHECKED.rank for piece in shard.evidence.values())
        if shard.exit_status > int(has_failures):
            yield f"{place} ended with exit code {shard.exit_status}: read its output"


def find_exit_code(shards: Mapping[str, ShardEvidence], *, is_acceptable: bool) -> int:
    """Return the highest exit code of all shards; at least 1 if an item has no report, or `is_acceptable` is false."""
    has_gaps = any(item not in shard.evidence for shard in shards.values() for item in shard.items)
    return max(int(has_gaps or not is_acceptable), *(shard.exit_status for shard in shards.values()))
