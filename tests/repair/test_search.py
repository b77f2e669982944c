from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pytest_loop.repair.repair_request import merge_shares
from tests.repair.conftest import Repair, Write, make_command, make_environment, read_contents, read_result

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


def test_independent_bugs_are_fixed_step_by_step(write: Write, repair: Repair) -> None:
    result = repair(write(TWO_BUGS), seconds_after_green=0.5)
    assert len(result.failing) == 2
    for patch in result.patches:
        assert len(patch.fixed) == len(patch.remaining) == 1
    first, second = result.steps
    assert first == result.patches[0]
    assert first.remaining == second.fixed
    assert second.before == first.after
    assert "return amount * each  # of one kind" in second.after
    assert "return min(prices)" in second.after
    assert (result.end_reason, result.remaining) == ("green", ())


def test_test_that_cannot_be_fixed_remains_after_the_others(write: Write, repair: Repair) -> None:
    never = "def test_never():\n    from shop.price import price\n    assert price(1, 2) == 'never'\n"
    result = repair(write({**TWO_BUGS, "tests/test_never.py": never}), candidates=600, seconds_after_green=0.5)
    assert {name for step in result.steps for name in step.fixed} == {
        "tests/test_shop.py::test_cheapest",
        "tests/test_shop.py::test_total",
    }
    assert result.remaining == ("tests/test_never.py::test_never",)
    assert result.end_reason in ("candidates", "exhausted")


def test_only_requested_tests_are_fixed(write: Write, repair: Repair) -> None:
    result = repair(write(TWO_BUGS), failing=["tests/test_shop.py::test_total"], seconds_after_green=0.5)
    best = result.patches[0]
    assert best.fixed == ("tests/test_shop.py::test_total",)
    assert "return amount * each  # of one kind" in best.after
    assert best.diff.startswith("--- a/shop/price.py\n+++ b/shop/price.py\n")
    assert result.localised[0].path == "shop/price.py"
    assert result.localised[0].line == 2
    assert result.end_reason == "green"


@pytest.mark.measured
def test_only_allowed_files_are_edited(write: Write, repair: Repair) -> None:
    result = repair(write(TWO_BUGS), allow=["shop/basket.py"], candidates=200)
    assert {location.path for location in result.localised} == {"shop/basket.py"}
    assert {patch.path for patch in result.patches} <= {"shop/basket.py"}


def test_tests_and_conftest_files_are_not_edited(write: Write, repair: Repair) -> None:
    files = {
        "conftest.py": "import pytest\n@pytest.fixture\ndef two():\n    return 3\n",
        "test_it.py": "def test_two(two):\n    assert two == 2\n",
    }
    result = repair(write(files), allow=["*"])
    assert (result.end_reason, result.patches, result.localised) == ("nothing to edit", (), ())


def test_same_request_finds_the_same_patches(write: Write, repair: Repair) -> None:
    folder = write(TWO_BUGS)
    request = {
        "failing": ["tests/test_shop.py::test_cheapest"],
        "candidates": 25,
        "workers": 1,
        "seconds_after_green": 60.0,
    }
    first, second = (repair(folder, **request) for _ in range(2))
    assert [patch.after for patch in first.patches] == [patch.after for patch in second.patches] != []
    assert first.tried == second.tried


def test_shares_try_each_edit_once_in_every_copy_of_a_project(write: Write, repair: Repair, tmp_path: Path) -> None:
    code = "def total(a, b):\n    if a > 3:\n        return a + b\n    return a * b\n"
    tests = "from shop import total\n\ndef test_it():\n    assert total(1, 2) == 'never'\n"
    folder = write({"shop.py": code, "test_it.py": tests})
    whole = repair(folder)
    copies = [Path(shutil.copytree(folder, tmp_path / f"copy{number}")) for number in (1, 2)]
    shares = [repair(copy, share=[number, 2]) for number, copy in enumerate(copies, 1)]
    assert {share.end_reason for share in (whole, *shares)} == {"exhausted"}
    assert sum(share.tried for share in shares) == merge_shares(shares).tried == whole.tried
    assert 0 < shares[0].tried < whole.tried


def test_the_best_share_has_the_steps(write: Write, repair: Repair) -> None:
    code = {"shop.py": "def total(a, b):\n    return a - b\n"}
    tests = "from shop import total\n\ndef test_it():\n    assert (total(1, 2), total(5, 3)) == (3, 8)\n"
    folder = write({**code, "test_it.py": tests})
    whole = repair(folder, seconds_after_green=10.0)
    shares = [repair(folder, share=[number, 3], seconds_after_green=10.0) for number in (1, 2, 3)]
    assert any(not share.steps for share in shares)
    for merged in (merge_shares(shares), merge_shares(shares[::-1])):
        assert (merged.steps[0].after, merged.remaining) == (whole.steps[0].after, ())
        assert merged.end_reason == "green"


def test_search_ends_at_once_if_no_test_fails(write: Write, repair: Repair) -> None:
    assert repair(write({"test_it.py": "def test_it(): pass\n"})).end_reason == "nothing fails"


def test_tests_that_cannot_be_collected_are_reported(write: Write, repair: Repair) -> None:
    result = repair(write({"test_it.py": "import nowhere\n"}))
    assert result.end_reason == "no tests"
    assert "test_it.py" in result.problem


@pytest.mark.measured
def test_exit_during_import_is_reported(write: Write, repair: Repair) -> None:
    result = repair(write({"test_it.py": "import os\nos._exit(0)\n"}))
    assert (result.end_reason, result.problem) == ("no tests", "the process ended while the tests were collected")


def test_edit_of_a_module_level_value_reaches_its_importers(write: Write, repair: Repair) -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/limits.py": "LIMIT = 5\n",
        "pkg/use.py": "from pkg.limits import LIMIT\n\n\ndef fits(size):\n    return size <= LIMIT\n",
        "test_it.py": "from pkg.use import fits\ndef test_a(): assert fits(6)\ndef test_b(): assert not fits(7)\n",
    }
    result = repair(write(files), allow=["pkg/limits.py", "pkg/use.py"], seconds_after_green=10.0)
    assert "LIMIT = 6\n" in [patch.after for patch in result.patches]


STATEFUL_CODE = {
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


@pytest.mark.parametrize("code", STATEFUL_CODE.values(), ids=STATEFUL_CODE)
def test_state_of_one_candidate_does_not_affect_the_next(code: str, write: Write, repair: Repair) -> None:
    tests = "from code_ import fib\ndef test_a(): assert fib(6) == 8\ndef test_b(): assert fib(5) == 5\n"
    if "Numbers" in code:
        tests = "from code_ import fib\ndef test_a(): assert fib(3) == 6\ndef test_b(): assert fib(2) == 4\n"
    result = repair(write({"code_.py": code, "test_it.py": tests}), seconds_after_green=0.0)
    assert result.end_reason == "green"


@pytest.mark.measured
@pytest.mark.measured
def test_missing_argument_prints_the_usage(tmp_path: Path) -> None:
    command, _ = make_command(tmp_path, tmp_path)
    process = subprocess.run(command[:-1], env=make_environment(), capture_output=True, text=True)
    assert process.returncode == 2
    assert process.stderr == "usage: python -m pytest_loop.repair REQUEST.json RESULT.jsonl\n"


@pytest.mark.measured
def test_sigterm_ends_the_search_cleanly(write: Write, tmp_path: Path) -> None:
    tests = "import time\nfrom code_ import f\ndef test_a():\n    time.sleep(0.2)\n    assert f(1) == 'never'\n"
    folder = write({"code_.py": "def f(a):\n    return [a, a, a]\n", "test_it.py": tests})
    before = read_contents(folder)
    command, answer = make_command(folder, tmp_path, seconds=120.0)
    home = tmp_path / "home"
    home.mkdir()
    process = subprocess.Popen(command, env={**make_environment(), "TMPDIR": str(home)}, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while not answer.exists() or not answer.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 0
    assert read_result(answer).end_reason == "asked"
    assert read_contents(folder) == before
    assert list(home.iterdir()) == []


def test_slow_collection_leaves_time_for_edits(write: Write, repair: Repair) -> None:
    slow = "import time\n\n\ntime.sleep(2.5)\n"
    result = repair(write({**TWO_BUGS, "conftest.py": slow}), seconds=2.0)
    assert result.tried > 0


def test_plan_says_at_the_start_what_fits_into_the_time(write: Write, tmp_path: Path) -> None:
    command, answer = make_command(write(TWO_BUGS), tmp_path, seconds=20.0)
    subprocess.run(command, env=make_environment(), capture_output=True, timeout=60, check=True)
    first = json.loads(answer.read_text(encoding="utf-8").splitlines()[0])
    assert first["plan"].startswith("2 failing and 2 passing tests, ")
    assert re.search(r" s are left, enough for about [\d,]+ edits$", first["plan"])
