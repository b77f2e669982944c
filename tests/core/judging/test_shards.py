"""Dividing items into shards, and the checks before their evidence is merged."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from pytest_loop.core.judging.shards import (
    ShardEvidence,
    divide_items,
    find_exit_code,
    hash_plan,
    list_failures,
    list_problems,
    merge_evidence,
)
from pytest_loop.core.model.rules import Criteria, Evidence, Outcome, Rule, SessionPlan, Verdict

GROUPS = {"a.py": ["a::1", "a::2", "a::3"], "b.py": ["b::1", "b::2"], "c.py": ["c::1"], "d.py": ["d::1"]}
PLAN = SessionPlan(
    criteria=(Criteria(name="it", source="it", rules=(Rule(id="a.one", description="one"),)),),
    items={"a::1": ("it::a.one",)},
    checks={"it::a.one": {"contains": "Title"}},
    shards=divide_items(GROUPS, 2),
)
PASSED, FAILED = Evidence(outcome=Outcome.PASSED), Evidence(outcome=Outcome.FAILED, text="no\nmore")


def make_shard(number: int, plan: SessionPlan = PLAN, exit_status: int = 0, **fields: object) -> ShardEvidence:
    values = {
        "shard": number,
        "origin": {"phase": "B", "revision": "1f", "Python": "3.13.1"},
        "plan": plan,
        "evidence": {item: PASSED for shard in plan.shards[number - 1 : number] for item in shard},
        "exit_status": exit_status,
    }
    return ShardEvidence.model_validate(values | fields)


def merge_two(**fields: object) -> dict[str, ShardEvidence]:
    return {"a.json": make_shard(1), "b.json": make_shard(2, **fields)}  # type: ignore[arg-type]


def test_shards_are_equal_and_keep_groups_together() -> None:
    assert divide_items(GROUPS, 2) == (("a::1", "a::2", "a::3", "d::1"), ("b::1", "b::2", "c::1"))


@pytest.mark.parametrize("total", [1, 2, 3, 4, 9])
def test_every_item_is_in_one_shard_whatever_the_order(total: int) -> None:
    mixed = [(name, Random(total).sample(items, len(items))) for name, items in GROUPS.items()]
    Random(total).shuffle(mixed)
    shards = divide_items(dict(mixed), total)
    assert shards == divide_items(GROUPS, total)
    assert sorted(item for shard in shards for item in shard) == sorted(
        item for items in GROUPS.values() for item in items
    )
    assert len(shards) == total


def test_a_hash_ignores_the_order_of_items_and_rules_and_nothing_else() -> None:
    rules = (*PLAN.criteria[0].rules, Rule(id="a.two", description="two"))
    plan = PLAN.model_copy(
        update={"criteria": (PLAN.criteria[0].model_copy(update={"rules": rules}),), "items": {"a::1": (), "b::1": ()}}
    )
    criteria = plan.criteria[0].model_copy(update={"rules": rules[::-1]})
    mixed = plan.model_copy(update={"criteria": (criteria,), "items": dict(reversed(plan.items.items()))})
    assert hash_plan(mixed) == hash_plan(plan)
    changes: tuple[dict[str, object], ...] = ({"criteria": ()}, {"items": {}}, {"checks": {}}, {"shards": ()})
    assert len({hash_plan(plan.model_copy(update=change)) for change in (*changes, {})}) == 5


def test_shards_of_one_session_have_no_problem() -> None:
    assert list(list_problems({"b.json": make_shard(2), "a.json": make_shard(1)})) == []


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"plan": PLAN.model_copy(update={"shards": ((), (), ())})}, "it is one of 3 shards, expected 2"),
        ({"origin": {"phase": "B", "revision": "2e", "Python": "3.13.1"}}, "its revision is 2e, expected 1f"),
        ({"origin": {"phase": "A", "revision": "1f", "Python": "3.13.1"}}, "its phase is A, expected B"),
        ({"origin": {"phase": "B", "Python": "3.13.1"}}, "its revision is unknown, expected 1f"),
        ({"plan": PLAN.model_copy(update={"checks": {}})}, "it was judged by other rules, it::a.one differs"),
        ({"plan": PLAN.model_copy(update={"criteria": ()})}, "it was judged by other rules, it differs"),
        (
            {"plan": PLAN.model_copy(update={"shards": (PLAN.shards[0], ("b::1", "b::2"))})},
            "it collected other items, such as c::1",
        ),
        (
            {"plan": PLAN.model_copy(update={"shards": (PLAN.shards[1], PLAN.shards[0])})},
            "it collected other items, such as in other shards",
        ),
        ({"plan": PLAN.model_copy(update={"items": {}})}, "it bound other rules to a::1"),
        ({"baseline": {"it::a.one": Verdict.FAIL}}, "it has another baseline or another hook pytest_loop_score"),
        ({"has_own_score": True}, "it has another baseline or another hook pytest_loop_score"),
    ],
)
def test_a_foreign_shard_is_refused(fields: dict[str, object], message: str) -> None:
    assert list(list_problems(merge_two(**fields))) == [f"b.json does not belong to a.json: {message}"]


@pytest.mark.parametrize(
    ("numbers", "messages"),
    [
        ((1,), ["shard 2 of 2 is missing: name its file, or run pytest --loop-shard 2/2 again"]),
        ((1, 2, 2), ["shard 2 of 2 is there 2 times: 1.json, 2.json; name it once"]),
        ((1, 2, 3), ["2.json is shard 3 of 2, which does not exist"]),
        ((1, 2, 0), ["2.json is shard 0 of 2, which does not exist"]),
    ],
)
def test_a_missing_or_doubled_shard_is_refused(numbers: tuple[int, ...], messages: list[str]) -> None:
    shards = {f"{index}.json": make_shard(number) for index, number in enumerate(numbers)}
    assert list(list_problems(shards)) == messages


def test_evidence_counts_only_from_the_shard_of_its_item() -> None:
    forged = merge_two(evidence={"a::1": FAILED, "b::1": PASSED})
    assert merge_evidence(forged)["a::1"] == PASSED
    assert "b::2" not in merge_evidence(forged)


@pytest.mark.parametrize(
    ("shards", "is_acceptable", "exit_code", "lines"),
    [
        (lambda: merge_two(), True, 0, []),
        (lambda: merge_two(), False, 1, []),
        (
            lambda: merge_two(evidence={"b::1": FAILED, "b::2": PASSED, "c::1": PASSED}, exit_status=1),
            True,
            1,
            ["failed in shard 2 of 2: b::1: no"],
        ),
        (
            lambda: merge_two(evidence={"b::1": PASSED}),
            True,
            1,
            ["no report in shard 2 of 2: b::2 and 1 more item"],
        ),
        (lambda: merge_two(exit_status=1), True, 1, ["shard 2 of 2 ended with exit code 1: read its output"]),
        (lambda: merge_two(exit_status=3), True, 3, ["shard 2 of 2 ended with exit code 3: read its output"]),
    ],
)
def test_the_exit_code_is_that_of_the_whole_session(
    shards: Callable[[], dict[str, ShardEvidence]], is_acceptable: bool, exit_code: int, lines: list[str]
) -> None:
    assert find_exit_code(shards(), is_acceptable=is_acceptable) == exit_code
    assert list(list_failures(shards())) == lines
