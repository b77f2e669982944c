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
def items(pytester: pytest.Pytester, write_rule_file: Callable[..., Path]) -> Sequence[pytest.Item]:
    write_rule_file(RULES)
    pytester.makepyfile(test_first=TESTS, test_last="def test_three(): pass")
    (pytester.path / "artifact.md").write_text("x")
    items, _ = pytester.inline_genitems()
    return items


def get_names(items: Sequence[pytest.Item]) -> list[str]:
    return [item.name for item in items]


def find_nodeid(items: Sequence[pytest.Item], name: str) -> str:
    return next(item.nodeid for item in items if item.name == name)


def test_rules_that_block_in_phase_a_come_first(items: Sequence[pytest.Item]) -> None:
    ordered = order_items(items, PastResults(), is_distributed=False)
    assert get_names(ordered) == [
        "a.cheap.one", "a.cheap.two", "a.slow.one", "a.slow.two", "test_one", "test_two", "test_three", "b.late", "a.soft",
    ]  # fmt: skip


def test_items_that_failed_come_first_and_tests_of_a_module_stay_together(items: Sequence[pytest.Item]) -> None:
    failed = [find_nodeid(items, "test_two"), find_nodeid(items, "a.soft")]
    ordered = order_items(items, PastResults(failed=failed), is_distributed=False)
    assert get_names(ordered)[:3] == ["test_one", "test_two", "a.soft"]


def test_with_workers_a_cheap_rule_follows_every_slow_one(items: Sequence[pytest.Item]) -> None:
    ordered = order_items(items, PastResults(), is_distributed=True)
    assert get_names(ordered)[:5] == ["a.slow.one", "a.cheap.one", "a.slow.two", "a.cheap.two", "test_one"]


def test_durations_of_earlier_sessions_decide_which_rules_are_slow(items: Sequence[pytest.Item]) -> None:
    seconds = {"a.cheap.two": 3.0, "a.slow.one": 0.0, "a.slow.two": SLOW_SECONDS, "test_three": 9.0}
    past = PastResults({find_nodeid(items, name): duration for name, duration in seconds.items()})
    ordered = order_items(items, past, is_distributed=True)
    assert get_names(ordered)[:6] == [
        "test_three",
        "a.cheap.one",
        "a.cheap.two",
        "a.slow.one",
        "a.slow.two",
        "test_one",
    ]


def test_slow_rules_alone_are_ordered_by_duration(items: Sequence[pytest.Item]) -> None:
    slow = [item for item in items if "slow" in item.name]
    ordered = order_items(slow, PastResults({find_nodeid(items, "a.slow.two"): 5.0}), is_distributed=True)
    assert get_names(ordered) == ["a.slow.two", "a.slow.one"]


def test_a_session_outside_a_run_keeps_the_places_of_tests(items: Sequence[pytest.Item]) -> None:
    ordered = order_rule_items(items, PastResults())
    before = [item for item in items if item.path.suffix == ".py"]
    assert [items.index(item) for item in before] == [ordered.index(item) for item in before]
    assert [name for name in get_names(ordered) if not name.startswith("test")][:2] == ["a.slow.one", "a.cheap.one"]


def test_rules_that_were_slow_run_side_by_side_in_the_next_session(
    pytester: pytest.Pytester, write_rule_file: Callable[..., Path]
) -> None:
    """Each slow rule waits for the other, which would be in the same batch of a worker without small batches."""
    rows = [f'{{id: a.slow.{n}, description: slow, check: {{command: "python slow.py {n}"}}}}' for n in range(2)]
    rows += [f"{{id: a.cheap.{n:02}, description: cheap, check: {{contains: x}}}}" for n in range(40)]
    write_rule_file("criteria: mixed\nartifact: artifact.md\nrules:\n" + "\n".join(f"  - {row}" for row in rows))
    (pytester.path / "artifact.md").write_text("x")
    script = pytester.path / "slow.py"
    script.write_text(f"import time\ntime.sleep({SLOW_SECONDS + 0.1})\n")
    pytester.runpytest_subprocess("-n2").assert_outcomes(passed=42)
    script.write_text(
        "import sys, time\nfrom pathlib import Path\n"
        "Path(f'begun-{sys.argv[1]}').touch()\n"
        "until = time.monotonic() + 20\n"
        "while len(list(Path.cwd().glob('begun-*'))) < 2 and time.monotonic() < until: time.sleep(0.01)\n"
        "sys.exit(time.monotonic() > until)\n"
    )
    pytester.runpytest_subprocess("-n2").assert_outcomes(passed=42)


@pytest.mark.measured
def test_maxschedchunk_of_the_command_line_wins(
    pytester: pytest.Pytester, write_rule_file: Callable[..., Path]
) -> None:
    write_rule_file(RULES)
    (pytester.path / "artifact.md").write_text("x")
    pytester.runpytest_subprocess("-n2", "--maxschedchunk=7").assert_outcomes(passed=6)
