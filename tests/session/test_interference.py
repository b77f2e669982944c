"""Code under test that reaches into its session is found while the session runs."""

from __future__ import annotations

import ast
import math
import os
import sys
import types
import unittest.mock
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.session.interference import EXECUTES_TEXT, InterferenceWatch, list_namespaces

list_namespaces()  # as a session does: while a test runs, pytest replaces some functions itself
Run = Callable[[str], set[tuple[str, str]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that watches a product, and returns what it did.

    It watches in a fork: an audit hook stays until its process ends. With many hooks, the other tests of a process
    become slow, and a thread of theirs that starts under coverage may fail (a fault of Python 3.11).
    """

    def run(text: str) -> set[tuple[str, str]]:
        reader, writer = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                found = _watch_product(tmp_path, text)
            except BaseException as error:
                found = {("", repr(error))}
            os.write(writer, repr(found).encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as stream:
            found = ast.literal_eval(stream.read())
        os.waitpid(pid, 0)
        return found or set()

    return run


def _watch_product(folder: Path, text: str) -> set[tuple[str, str]] | None:
    """Return what a product does, or None (`set()` is no literal) if that is nothing."""
    watch = InterferenceWatch(folder)
    watch.start()
    watch.watch_tests((), ("csv", "statistics", "sys", "missing"))
    module = types.ModuleType("product")
    sys.modules["product"] = module
    exec(compile(text, str(folder / "product.py"), "exec"), vars(module))
    watch.check_outcome_code()
    watch.check(is_end=True)
    return watch.interference or None


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import math\nmath.isclose = lambda *_: True", "math.isclose was replaced"),
        ("import pathlib\npathlib.Path.read_text = lambda self: '5'", "pathlib.Path.read_text was replaced"),
        (
            "from unittest import case\ncase.TestCase.assertEqual = print",
            "unittest.case.TestCase.assertEqual was replaced",
        ),
        ("import sys\nsys._getframe()", "it looks at its callers"),
        ("import inspect\ninspect.stack()", "it looks at its callers"),
        ("try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    e.__traceback__.tb_frame", "it looks at its callers"),
        ("def g(): yield g.it.gi_frame.f_back\ng.it = g()\nnext(g.it)", "it looks at its callers"),
        ("def test_it(): pass\ntest_it.__code__.co_consts", "it looks at the code of tests"),
        ("class All:\n    def __contains__(self, other): return other is other", "All contains everything"),
        ("import gc\ngc.get_objects()", "it searches all objects"),
        ("def f(): 1\ndef g(): 2\nf.__code__ = g.__code__", "it replaces the code of functions"),
        ("exec('x = 1')", EXECUTES_TEXT),
        ("class Any:\n    def __eq__(self, other): return other is not self", "Any is equal to everything"),
        ("class Any(int):\n    def __eq__(self, other): return isinstance(other, int)", "Any is equal to everything"),
        ("class Any:\n    def __eq__(self, other): return bool(self.x) and other > 0", "Any is equal to everything"),
        ("class Any:\n    pass\nsetattr(Any, '__e' + 'q__', lambda *_: 1)", "Any is equal to everything"),
    ],
)
def test_product_that_reaches_into_its_session_is_found(run: Run, text: str, sentence: str) -> None:
    assert sentence in dict(run(text)).values()


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import math, operator\nmath.isclose = operator.ne", "math.isclose"),
        ("import csv, functools\ncsv.reader = functools.partial(map, str)", "csv.reader"),
    ],
)
def test_function_replaced_by_one_of_the_library_is_found(run: Run, text: str, name: str) -> None:
    assert run(text) == {("", f"{name} was replaced")}


def test_product_that_works_in_another_folder_is_found(run: Run) -> None:
    assert run("import os\nos.chdir('/')") == {("product.py", "it changed the working folder")}


def test_test_may_work_in_another_folder(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    code = f"import os; os.chdir({str(folder)!r}); os.rmdir({str(folder)!r})"
    assert run(f"exec(compile({code!r}, {str(tmp_path / 'test_it.py')!r}, 'exec'))") == {("product.py", EXECUTES_TEXT)}


@pytest.mark.parametrize(
    "text",
    [
        "import logging, traceback, collections\nlogging.info('x')\ncollections.namedtuple('N', 'x')",
        "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.format_exc()",
        "class Point:\n    def __eq__(self, other): return self.x == other.x",
        "import logging, sys\nsys.excepthook = print\nlogging.captureWarnings(True)",
        "import os\nos.chdir(os.getcwd())",
        "class Point:\n    def __eq__(self, other): return NotImplemented",
        "class Names:\n    def __contains__(self, other): return self.is_open or other in self.names",
        "class Names(list):\n    def __contains__(self, other): return not isinstance(other, int)",
        "def work(): pass\nwork.__code__.co_argcount",
        "class Price:\n    def __eq__(self, other): return self.x == getattr(other, 'x', other)",
        "class Name(str):\n    def __eq__(self, other): return str.lower(self) == str.lower(other)",
        "class Null:\n    def __eq__(self, other): return other is None or type(other) is Null",
        "class Column:\n    def __eq__(self, other): return Column()",
        "class Strict(type):\n    __hash__ = None\n    def __eq__(cls, other): return cls is other\nclass A(metaclass=Strict): pass",
    ],
)
def test_ordinary_product_is_left_alone(run: Run, text: str) -> None:
    assert run(text) == set()


@pytest.mark.parametrize(
    "text",
    [
        "import statistics\nstatistics.mean = lambda *_: 5",
        "import sys, types\nsys.modules['statistics'] = types.SimpleNamespace(mean=lambda *_: 5)",
    ],
)
def test_library_that_tests_import_and_the_product_replaces_is_found(run: Run, text: str) -> None:
    assert run(text) == {("product.py", "statistics.mean was replaced")}


def test_mock_in_the_library_is_no_interference(run: Run) -> None:
    with unittest.mock.patch("math.isclose"):
        assert run("import math") == set()


def test_library_is_compared_at_the_end_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fixture of a module may replace it between two tests."""
    watch = InterferenceWatch(tmp_path)
    monkeypatch.setattr(math, "isclose", math.isfinite)
    watch.check(is_end=False)
    assert not watch.interference
