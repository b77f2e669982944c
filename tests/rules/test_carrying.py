"""Among workers quiet rules that pass are told together; whoever counts them counts the same."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pytest_loop.rules.carrying import LONGEST, Delivery, carrier
from pytest_loop.rules.passing import packed, unpacked

from tests.conftest import ALONE

Write = Callable[..., Path]

MESSAGES = """
def pytest_report_from_serializable(data):
    with open("messages", "a") as file:
        file.write(f"{data['nodeid']} {'carries' if 'loop_carried' in data else 'alone'}\\n")
"""
WAYS = ["load", "loadscope", "loadfile", "loadgroup", "worksteal"]
SCORE = "it  FAIL  0.991 (238 of 240) *119 passed, 1 failed"


@pytest.fixture
def many(pytester: pytest.Pytester, rule_file: Write) -> pytest.Pytester:
    """120 rules, of which the 60th does not pass."""
    wanted = ["Title" if number != 60 else "nothing of it" for number in range(120)]
    rules = [f"- {{id: a.{at:03}, description: one, check: {{contains: {text}}}}}" for at, text in enumerate(wanted)]
    rule_file("artifact: doc.md\nrules:\n" + "\n".join(f"  {rule}" for rule in rules))
    (pytester.path / "doc.md").write_text("# Title\n")
    return pytester


@pytest.mark.parametrize("way", WAYS)
def test_rules_are_counted_alike_however_they_are_shared(many: pytest.Pytester, way: str) -> None:
    many.makeconftest(MESSAGES)
    result = many.runpytest_subprocess("-n2", f"--dist={way}", *ALONE, timeout=60)
    result.assert_outcomes(passed=119, failed=1)
    result.stdout.fnmatch_lines([SCORE])
    heard = (many.path / "messages").read_text().splitlines()
    assert len(heard) < 60 or way == "loadgroup", "which hands out one rule at a time"
    assert any(line.startswith("it.rules.yaml::a.060 ") for line in heard)


def test_two_workers_that_judge_the_same_rules_are_both_heard(many: pytest.Pytester) -> None:
    result = many.runpytest_subprocess("-n2", "--dist=each", *ALONE, timeout=60)
    result.assert_outcomes(passed=238, failed=2)


@pytest.mark.parametrize("more", ["-vv", "--durations=1", "--junitxml=it.xml"])
def test_who_wants_to_hear_of_each_hears_of_each(many: pytest.Pytester, more: str) -> None:
    many.makeconftest(MESSAGES)
    many.runpytest_subprocess("-n2", *ALONE, more, timeout=60).assert_outcomes(passed=119, failed=1)
    assert len((many.path / "messages").read_text().splitlines()) >= 120


def test_the_first_failure_ends_a_session(many: pytest.Pytester) -> None:
    result = many.runpytest_subprocess("-n1", "-x", *ALONE, timeout=60)
    assert result.parseoutcomes() == {"passed": 60, "failed": 1}


IMPORTED = """
import sys

def pytest_sessionfinish(session):
    if not hasattr(session.config, "workerinput"):
        print("imported", sorted(name for name in sys.modules if name.startswith(("pydantic", "yaml", "pytest_loop.core"))))
"""


def test_workers_of_a_project_without_rules_cost_no_import(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(IMPORTED)
    pytester.makepyfile("def test_it():\n    pass\n")
    words = [word for word in ALONE if word != "-q"]
    result = pytester.run(sys.executable, "-m", "pytest", "-n2", "-s", *words, "-p", "no:hypothesispytest", timeout=60)
    result.stdout.fnmatch_lines(["*imported []*"])


def test_who_ends_a_worker_is_named_and_those_before_it_have_passed(
    pytester: pytest.Pytester, rule_file: Write
) -> None:
    quiet = [f"  - {{id: a.{at:03}, description: one, check: {{contains: Title}}}}" for at in range(30)]
    quiet.insert(20, "  - {id: a.ends, description: ends, check: {python: 'judges:judge'}}")
    rule_file("artifact: doc.md\nrules:\n" + "\n".join(quiet))
    (pytester.path / "doc.md").write_text("# Title\n")
    (pytester.path / "judges.py").write_text("import os\n\ndef judge(path, root):\n    os._exit(3)\n")
    result = pytester.runpytest_subprocess("-n2", "--max-worker-restart=0", "--maxschedchunk=40", *ALONE, timeout=60)
    result.stdout.fnmatch_lines(["*crashed while running 'it.rules.yaml::a.ends'*"])
    assert result.parseoutcomes()["failed"] == 1


class Queue:
    """The items that are left to a worker, as xdist keeps them."""

    def __init__(self) -> None:
        self.items: deque[int] = deque()

    @contextmanager
    def lock(self) -> Iterator[deque[int]]:
        yield self.items

    def get(self) -> int:
        return -1


class Worker:
    """As much of the part of xdist that runs in a worker as is used."""

    workerid, testrunuid = "gw0", "uid"

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []
        self.torun = Queue()

    def sendevent(self, name: str, **fields: Any) -> None:
        self.told.append((name, fields))


class Controller:
    """As much of the controller as is used: what it would have heard one by one."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def worker_testreport(self, _node: object, rep: pytest.TestReport) -> None:
        self.heard.append(rep.nodeid)

    def worker_runtest_protocol_complete(self, _node: object, item_index: int, duration: float) -> None:
        self.heard.append((item_index, duration))


def report(name: str) -> pytest.TestReport:
    return pytest.TestReport(name, ("it", 0, name), {name: 1}, "passed", None, "call", start=1.0, stop=3.0)


@pytest.fixture
def worker(pytester: pytest.Pytester) -> tuple[pytest.Config, Worker]:
    config, worker = pytester.parseconfig(), Worker()
    config.workerinput = {"loop_heard": False}  # type: ignore[attr-defined]
    config.pluginmanager.register(worker)
    return config, worker


def test_there_is_one_for_a_worker_and_none_elsewhere(
    worker: tuple[pytest.Config, Worker], pytester: pytest.Pytester
) -> None:
    assert carrier(worker[0]) is not None
    assert carrier(worker[0]) is carrier(worker[0])
    assert carrier(pytester.parseconfig()) is None


def test_nothing_waits_long_while_other_items_are_done(worker: tuple[pytest.Config, Worker]) -> None:
    config, xdist = worker
    made = carrier(config)
    assert made is not None
    made._left = time.monotonic() - LONGEST
    made.send(report("one"))
    xdist.sendevent("runtest_protocol_complete", item_index=0, duration=2.0)
    assert [name for name, _ in xdist.told] == ["testreport", "runtest_protocol_complete"]


def test_what_was_interrupted_is_reported_and_not_done(worker: tuple[pytest.Config, Worker]) -> None:
    config, xdist = worker
    made = carrier(config)
    assert made is not None
    made._left = time.monotonic()
    made.send(report("one"))
    xdist.sendevent("runtest_protocol_complete", item_index=0, duration=2.0)
    made.send(report("two"))
    assert xdist.told == []
    made.pytest_sessionfinish()
    [(name, fields)] = xdist.told
    assert (name, fields["data"]["nodeid"], fields["data"]["worker_id"]) == ("testreport", "two", "gw0")


def test_everything_arrives_as_if_it_came_by_itself(
    worker: tuple[pytest.Config, Worker], pytester: pytest.Pytester
) -> None:
    config, xdist = worker
    made = carrier(config)
    assert made is not None
    made._left = time.monotonic()
    for index, name in enumerate(("one", "two")):
        made.send(report(name))
        xdist.sendevent("runtest_protocol_complete", item_index=index, duration=2.0)
    made.send(report("interrupted"))
    assert xdist.torun.get() == -1
    last = report("interrupted")
    last.node = None  # type: ignore[attr-defined]
    vars(last).update(xdist.told[0][1]["data"])
    elsewhere, controller = pytester.parseconfig(), Controller()
    elsewhere.pluginmanager.register(controller, "dsession")
    Delivery(elsewhere).pytest_runtest_logreport(last)
    assert controller.heard == ["one", (0, 2.0), "two", (1, 2.0)]
    vars(last)["loop_carried"] = json.dumps([(packed(report("lost")), {})])
    Delivery(elsewhere).pytest_runtest_logreport(last)
    assert controller.heard[4:] == ["lost"]


@pytest.mark.parametrize("noted", [None, {"rule": "one", "score": 1.0}], ids=["plain", "noted"])
def test_a_report_is_unpacked_as_it_was(noted: dict[str, Any] | None) -> None:
    one = report("one")
    if noted:
        one.loop = noted  # type: ignore[attr-defined]
    other = unpacked(json.loads(json.dumps(packed(one), default=str)))
    assert vars(other) | {"duration": one.duration} == vars(one)


def test_nothing_waits_while_an_item_of_another_kind_is_run(worker: tuple[pytest.Config, Worker]) -> None:
    config, xdist = worker
    made = carrier(config)
    assert made is not None
    made._left = time.monotonic()
    xdist.torun.items.extend([7, 8, 9, 10])
    made.send(report("one"))
    xdist.sendevent("runtest_protocol_complete", item_index=0, duration=2.0)
    assert (xdist.torun.get(), xdist.told) == (7, [])
    made.pytest_runtest_logstart()
    assert [name for name, _ in xdist.told] == ["testreport", "runtest_protocol_complete"]
