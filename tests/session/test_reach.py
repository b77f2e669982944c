"""A session reports which files of the project each test executes."""

from __future__ import annotations

import sys
from pathlib import Path
from types import CodeType

import pytest

from pytest_loop.session.reach import ProfileTracer, ReachRecorder
from tests.session.conftest import MakeProject

TESTS = """
    import pytest
    import constants
    import shop
    import stock


    @pytest.fixture(scope="module")
    def shelf():
        return stock.fill()


    def test_price():
        assert shop.price() == 6


    def test_first(shelf):
        assert shelf == 3


    def test_second(shelf):
        assert shelf + constants.ONE == 4


    def test_nothing():
        import json
        assert json.loads("1")
    """


@pytest.mark.parametrize("kind", ["cold", "warm", "workers"])
def test_each_test_has_the_files_that_it_and_its_fixtures_execute(make_project: MakeProject, kind: str) -> None:
    project = make_project("-n2") if kind == "workers" else make_project()
    project.write("pytest.ini", "[pytest]\npythonpath = .\n")
    project.write("test_it.py", TESTS)
    project.write("shop.py", "import rates\n\n\ndef price():\n    return rates.double(3)\n")
    project.write("rates.py", "def double(number):\n    return 2 * number\n")
    project.write("stock.py", "def fill():\n    return 3\n")
    project.write("constants.py", "ONE = 1\n")
    result = project.run_session(is_warm=kind != "cold", records_reach=True)
    assert {nodeid.partition("::")[2]: sorted(paths) for nodeid, paths in result.reach.items()} == {
        "test_price": ["rates.py", "shop.py", "test_it.py"],
        "test_first": ["stock.py", "test_it.py"],
        "test_second": ["stock.py", "test_it.py"],
        "test_nothing": ["test_it.py"],
    }


def test_nothing_is_recorded_unless_the_run_asks_for_it(make_project: MakeProject) -> None:
    project = make_project()
    project.write("test_it.py", "def test_it():\n    assert True\n")
    assert project.run_session().reach == {}


def test_calls_are_traced_before_python_3_12() -> None:
    calls: list[str] = []

    def note(code: CodeType) -> None:
        calls.append(code.co_name)

    tracer = ProfileTracer()
    previous = sys.getprofile()
    sys.setprofile(None)
    try:
        assert tracer.start(note)
        assert not tracer.start(note), "there is one profiler at a time"
        _answer()
        tracer.restart()
        _answer()
    finally:
        sys.setprofile(previous)
    assert calls.count("_answer") == 2


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring is new in Python 3.12")
def test_nothing_is_recorded_if_other_tools_have_all_ids(tmp_path: Path) -> None:
    api = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
    taken = [tool for tool in (3, 4) if api.get_tool(tool) is None]
    for tool in taken:
        api.use_tool_id(tool, "another")
    try:
        assert not ReachRecorder(tmp_path).start()
    finally:
        for tool in taken:
            api.free_tool_id(tool)


def _answer() -> int:
    return 42
