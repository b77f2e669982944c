from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from pytest_loop.session.durations import SLOW_SECONDS
from pytest_loop.session.ordering import PastResults, order_items, order_rule_items

RULES = """
    criteria: mixed
    artifact: artifact.md
    rules:
      - {id: a.cheap.one, description: one, check: {contains: x}}
      - {id: a.cheap.two, description: two, check: {contains: x}}
      - {id: a.slow.one, description: slow, check: {command: "true"}}
      - {id: a.slow.two, description: slow, check: {all: [{command: "true"}]}}
      - {id: b.late, description: late, check: {contains: x}}
      - {id: a.soft, description: soft, severity: warn, check: {contains: x}}
"""
TESTS = """
    import pytest

    def test_one(): pass

    @pytest.mark.loop_rule("b.tested", severity="warn", phase="B")
    def test_two(): pass
"""


@pytest.fixture
def items(pytester: pytest.Pytester, rule_file: Callable[..., Path]) -> Sequence[pytest.Item]:
    rule_file(RULES)
    pytester.makepyfile(test_first=TESTS, test_last="def test_three(): pass")
    (pytester.path / "artifact.md").write_text("x")
    found, _ = pytester.inline_genitems()
    return found


def names(items: Sequence[pytest.Item]) -> list[str]:
    return [item.name for item in items]


def node(items: Sequence[pytest.Item], name: str) -> str:
    return next(item.nodeid for item in items if item.name == name)


def test_what_blocks_from_the_first_phase_on_comes_first(items: Sequence[pytest.Item]) -> None:
    found = order_items(items, PastResults(), is_distributed=False)
    assert names(found) == [
        "a.cheap.one", "a.cheap.two", "a.slow.one", "a.slow.two", "test_one", "test_two", "test_three", "b.late", "a.soft",
    ]  # fmt: skip


def test_what_failed_comes_first_and_tests_of_a_module_stay_together(items: Sequence[pytest.Item]) -> None:
    failed = [node(items, "test_two"), node(items, "a.soft")]
    found = order_items(items, PastResults(failed=failed), is_distributed=False)
    assert names(found)[:3] == ["test_one", "test_two", "a.soft"]


def test_among_workers_a_cheap_rule_stands_beside_every_slow_one(items: Sequence[pytest.Item]) -> None:
    found = order_items(items, PastResults(), is_distributed=True)
    assert names(found)[:5] == ["a.slow.one", "a.cheap.one", "a.slow.two", "a.cheap.two", "test_one"]


def test_what_took_longest_comes_first_and_what_was_quick_is_cheap(items: Sequence[pytest.Item]) -> None:
    took = {"a.cheap.two": 3.0, "a.slow.one": 0.0, "a.slow.two": SLOW_SECONDS, "test_three": 9.0}
    past = PastResults({node(items, name): seconds for name, seconds in took.items()})
    found = order_items(items, past, is_distributed=True)
    assert names(found)[:6] == ["test_three", "a.cheap.one", "a.cheap.two", "a.slow.one", "a.slow.two", "test_one"]


def test_where_there_are_only_slow_rules_their_order_is_by_time(items: Sequence[pytest.Item]) -> None:
    slow = [item for item in items if "slow" in item.name]
    found = order_items(slow, PastResults({node(items, "a.slow.two"): 5.0}), is_distributed=True)
    assert names(found) == ["a.slow.two", "a.slow.one"]


def test_a_plain_session_keeps_the_places_of_tests(items: Sequence[pytest.Item]) -> None:
    found = order_rule_items(items, PastResults())
    before = [item for item in items if item.path.suffix == ".py"]
    assert [items.index(item) for item in before] == [found.index(item) for item in before]
    assert [name for name in names(found) if not name.startswith("test")][:2] == ["a.slow.one", "a.cheap.one"]


@pytest.mark.parametrize("slow", [1, pytest.param(2, marks=pytest.mark.thorough)])
def test_slow_rules_run_side_by_side(pytester: pytest.Pytester, rule_file: Callable[..., Path], slow: int) -> None:
    """Each waits for the other; without another order both would be in the first batch that a worker gets."""
    rows = [f'{{id: a.slow.{n}, description: slow, check: {{command: "python slow.py {n}"}}}}' for n in range(slow)]
    rows += [f"{{id: a.cheap.{n:02}, description: cheap, check: {{contains: x}}}}" for n in range(40)]
    rule_file("criteria: mixed\nartifact: artifact.md\nrules:\n" + "\n".join(f"  - {row}" for row in rows))
    (pytester.path / "artifact.md").write_text("x")
    (pytester.path / "slow.py").write_text(
        "import sys, time\nfrom pathlib import Path\n"
        "Path(f'begun-{sys.argv[1]}').touch()\n"
        "until = time.monotonic() + 20\n"
        f"while len(list(Path.cwd().glob('begun-*'))) < {slow} and time.monotonic() < until: time.sleep(0.01)\n"
        "sys.exit(time.monotonic() > until)\n"
    )
    for _ in range(2):  # guessed, and from what the first session remembers
        pytester.runpytest_subprocess("-n2").assert_outcomes(passed=40 + slow)
        for path in pytester.path.glob("begun-*"):
            path.unlink()


@pytest.mark.measured
def test_the_batches_that_a_person_asked_for_stay(pytester: pytest.Pytester, rule_file: Callable[..., Path]) -> None:
    rule_file(RULES)
    (pytester.path / "artifact.md").write_text("x")
    pytester.runpytest_subprocess("-n2", "--maxschedchunk=7").assert_outcomes(passed=6)
