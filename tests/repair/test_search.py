from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.repair.conftest import Repair, Write, command, contents, environment, result

TWO_BUGS = {
    "shop/__init__.py": "",
    "shop/price.py": """
        def price(amount, each):
            return amount + each  # of one kind


        def cheapest(prices):
            return max(prices)
        """,
    "shop/basket.py": """
        from shop.price import price


        def total(rows):
            return sum(price(amount, each) for amount, each in rows)
        """,
    "tests/test_shop.py": """
        from shop.basket import total
        from shop.price import cheapest


        def test_total():
            assert total([(3, 5), (2, 2)]) == 19


        def test_nothing():
            assert total([]) == 0


        def test_cheapest():
            assert cheapest([3, 1, 2]) == 1


        def test_cheapest_of_one():
            assert cheapest([3]) == 3
        """,
}


def test_bugs_that_have_nothing_to_do_with_each_other_are_mended_step_by_step(write: Write, repair: Repair) -> None:
    found = repair(write(TWO_BUGS), seconds_after_green=0.5)
    assert len(found.failing) == 2
    for one in found.patches:
        assert len(one.fixed) == len(one.remaining) == 1
        assert not one.broken
    first, second = found.steps
    assert first == found.patches[0]
    assert first.remaining == second.fixed
    assert second.before == first.after
    assert "return amount * each  # of one kind" in second.after
    assert "return min(prices)" in second.after
    assert (found.end_reason, found.remaining) == ("green", ())


def test_no_more_steps_are_taken_than_allowed(write: Write, repair: Repair) -> None:
    found = repair(write(TWO_BUGS), steps=1, candidates=100)
    assert found.steps == found.patches[:1]
    assert found.remaining == found.patches[0].remaining
    assert len(found.remaining) == 1


def test_what_cannot_be_mended_is_said_after_what_can(write: Write, repair: Repair) -> None:
    never = "def test_never():\n    from shop.price import price\n    assert price(1, 2) == 'never'\n"
    found = repair(write({**TWO_BUGS, "tests/test_never.py": never}), candidates=600, seconds_after_green=0.5)
    assert {name for step in found.steps for name in step.fixed} == {
        "tests/test_shop.py::test_cheapest",
        "tests/test_shop.py::test_total",
    }
    assert found.remaining == ("tests/test_never.py::test_never",)
    assert found.end_reason in ("candidates", "exhausted")


def test_only_the_tests_that_are_asked_for_count(write: Write, repair: Repair) -> None:
    found = repair(write(TWO_BUGS), failing=["tests/test_shop.py::test_total"], seconds_after_green=0.5)
    best = found.patches[0]
    assert best.fixed == ("tests/test_shop.py::test_total",)
    assert "return amount * each  # of one kind" in best.after
    assert best.diff.startswith("--- a/shop/price.py\n+++ b/shop/price.py\n")
    assert found.localised[0].path == "shop/price.py"
    assert found.localised[0].line == 2
    assert found.end_reason == "green"


@pytest.mark.measured
def test_nothing_outside_of_the_scope_is_edited(write: Write, repair: Repair) -> None:
    found = repair(write(TWO_BUGS), allow=["shop/basket.py"], candidates=200)
    assert {one.path for one in found.localised} == {"shop/basket.py"}
    assert {one.path for one in found.patches} <= {"shop/basket.py"}


def test_tests_and_conftest_files_are_not_edited(write: Write, repair: Repair) -> None:
    files = {
        "conftest.py": "import pytest\n@pytest.fixture\ndef two():\n    return 3\n",
        "test_it.py": "def test_two(two):\n    assert two == 2\n",
    }
    found = repair(write(files), allow=["*"])
    assert (found.end_reason, found.patches, found.localised) == ("nothing to edit", (), ())


def test_the_same_seed_finds_the_same(write: Write, repair: Repair) -> None:
    folder = write(TWO_BUGS)
    wishes = {
        "failing": ["tests/test_shop.py::test_cheapest"],
        "candidates": 25,
        "workers": 1,
        "seconds_after_green": 60.0,
    }
    one, two = (repair(folder, **wishes) for _ in range(2))
    assert [patch.after for patch in one.patches] == [patch.after for patch in two.patches] != []
    assert (one.tried, one.templates) == (two.tried, two.templates)


def test_nothing_fails(write: Write, repair: Repair) -> None:
    assert repair(write({"test_it.py": "def test_it(): pass\n"})).end_reason == "nothing fails"


def test_what_cannot_be_collected_is_said(write: Write, repair: Repair) -> None:
    found = repair(write({"test_it.py": "import nowhere\n"}))
    assert found.end_reason == "no tests"
    assert "test_it.py" in found.problem


@pytest.mark.measured
def test_code_that_ends_the_process_while_it_is_imported_is_said(write: Write, repair: Repair) -> None:
    found = repair(write({"test_it.py": "import os\nos._exit(0)\n"}))
    assert (found.end_reason, found.problem) == ("no tests", "the process ended while the tests were collected")


def test_an_edit_of_a_module_level_value_reaches_those_who_imported_it(write: Write, repair: Repair) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/limits.py": "LIMIT = 5\n",
        "pkg/use.py": "from pkg.limits import LIMIT\n\n\ndef fits(size):\n    return size <= LIMIT\n",
        "test_it.py": "from pkg.use import fits\ndef test_a(): assert fits(6)\ndef test_b(): assert not fits(7)\n",
    }
    found = repair(write(files), allow=["pkg/limits.py", "pkg/use.py"], seconds_after_green=10.0)
    assert "LIMIT = 6\n" in [one.after for one in found.patches]


REMEMBERING = {
    "in a module": """
        KNOWN = {}

        def fib(number):
            if number not in KNOWN:
                KNOWN[number] = number if number < 2 else fib(number - 1) + fib(number - 3)
            return KNOWN[number]
        """,
    "in a cache": """
        from functools import lru_cache

        @lru_cache
        def fib(number):
            return number if number < 2 else fib(number - 1) + fib(number - 3)
        """,
    "in a default": """
        def fib(number, known={}):
            if number not in known:
                known[number] = number if number < 2 else fib(number - 1) + fib(number - 3)
            return known[number]
        """,
    "in a class": """
        class Numbers:
            taken = []

        def fib(number):
            if number in Numbers.taken:
                raise ValueError(number)
            Numbers.taken.append(number)
            return number + 2
        """,
}


@pytest.mark.parametrize("code", REMEMBERING.values(), ids=REMEMBERING)
def test_what_one_candidate_leaves_behind_does_not_fool_another(code: str, write: Write, repair: Repair) -> None:
    tests = "from code_ import fib\ndef test_a(): assert fib(6) == 8\ndef test_b(): assert fib(5) == 5\n"
    if "Numbers" in code:
        tests = "from code_ import fib\ndef test_a(): assert fib(3) == 6\ndef test_b(): assert fib(2) == 4\n"
    found = repair(write({"code_.py": code, "test_it.py": tests}), seconds_after_green=0.0)
    assert found.end_reason == "green"


@pytest.mark.measured
def test_the_result_may_go_to_a_descriptor(write: Write, tmp_path: Path) -> None:
    words, answer = command(write(TWO_BUGS), tmp_path, localise_only=True)
    with answer.open("wb") as file:
        subprocess.run([*words[:-1], str(file.fileno())], env=environment(), pass_fds=[file.fileno()], check=True)
    assert result(answer).end_reason == "localised"


@pytest.mark.measured
def test_how_it_is_used_is_said(tmp_path: Path) -> None:
    words, _ = command(tmp_path, tmp_path)
    done = subprocess.run(words[:-1], env=environment(), capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "usage: python -m pytest_loop.repair ORDER.json RESULT.jsonl|DESCRIPTOR\n"


@pytest.mark.measured
def test_it_ends_when_it_is_asked_to(write: Write, tmp_path: Path) -> None:
    tests = "import time\nfrom code_ import f\ndef test_a():\n    time.sleep(0.2)\n    assert f(1) == 'never'\n"
    folder = write({"code_.py": "def f(a):\n    return [a, a, a]\n", "test_it.py": tests})
    before = contents(folder)
    words, answer = command(folder, tmp_path, seconds=120.0)
    home = tmp_path / "home"
    home.mkdir()
    process = subprocess.Popen(words, env={**environment(), "TMPDIR": str(home)}, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not answer.exists() or not answer.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert result(answer).end_reason == "asked"
    assert contents(folder) == before
    assert list(home.iterdir()) == []
