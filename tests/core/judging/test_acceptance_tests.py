"""The contract of tests that an agent writes for a task."""

from __future__ import annotations

import pytest

from pytest_loop.core.judging.acceptance_tests import check_test_source, explain_wrong_failure

METHOD = "    def test_it(self):\n        self.assertEqual(shop.export(), '')\n"
NO_BEHAVIOUR = "it asserts nothing about behaviour: compare what the code of the project returns or does"


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("from shop import export\n\ndef test_it():\n    assert export([]) == ''\n", ""),
        ("def test_it(client):\n    assert client.get('/')\n", ""),
        ("async def test_it():\n    from shop import export as save\n    assert await save()\n", ""),
        ("import shop, pytest\n\ndef test_it():\n    with pytest.raises(ValueError):\n        shop.export(None)\n", ""),
        (f"import shop, unittest\n\nclass TestIt(unittest.TestCase):\n{METHOD}", ""),
        ("def test_it(:\n", "line 1: it cannot be parsed (invalid syntax)"),
        ("x = '\0'\n", "it cannot be parsed (source code string cannot contain null bytes)"),
        ("import shop\n\ndef check():\n    assert shop.x\n", "it has no test function"),
        ("def test_it():\n    assert False\n", NO_BEHAVIOUR),
        ("def test_it():\n    x = 1\n    assert x == 2\n", NO_BEHAVIOUR),
        ("import pytest\n\ndef test_it():\n    pytest.fail('to do')\n", NO_BEHAVIOUR),
        ("import pytest\n\ndef test_it():\n    assert pytest.approx(1) == 2\n", NO_BEHAVIOUR),
        ("import shop\n\ndef test_it():\n    shop.export()\n    assert False\n", NO_BEHAVIOUR),
    ],
)
def test_source_must_parse_and_assert_behaviour(source: str, problem: str) -> None:
    assert check_test_source(source) in (problem, problem.replace("line 1: ", ""))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("E   assert None == 'name'", ""),
        ("E   AttributeError: module 'shop' has no attribute 'export'", ""),
        ("E   ImportError: cannot import name 'export' from 'shop' (/p/shop.py)", ""),
        ("E   ModuleNotFoundError: No module named 'shop.export'", ""),
        ("E   ModuleNotFoundError: No module named 'csv_export'", ""),
        ("shop.py:3: NameError: name 'rows' is not defined", ""),
        (
            "E   ModuleNotFoundError: No module named 'openpyxl'",
            "it needs openpyxl, which is not installed, and which the task does not name",
        ),
        (
            "E   ImportError: cannot import name 'dumps2' from 'json' (/usr/lib/json.py)",
            "it imports dumps2 from json, which is not a module of this project and has no such name",
        ),
        ("E   NameError: name 'Path' is not defined", "it uses Path without an import"),
        ("E       fixture 'clientt' not found", "there is no fixture 'clientt'"),
    ],
)
def test_failure_must_have_the_right_reason(text: str, problem: str) -> None:
    source = "def test_it():\n    assert Path('x').exists()\n"
    assert explain_wrong_failure(text, source, {"shop", "csv_export"}) == problem
