from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import TypeAlias

import pytest

from pytest_loop.repair.code_swap import LoadedCode
from pytest_loop.repair.edit_unit import split_units
from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.source_overlay import install_overlay
from pytest_loop.repair.text_edits import TextEdit, apply_edits

ImportText: TypeAlias = Callable[[str, str], ModuleType]


@pytest.fixture
def import_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ImportText]:
    """Write modules and import them for one test."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)

    def write_and_import(name: str, text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield write_and_import
    for name in set(sys.modules) - before:
        del sys.modules[name]


def read_source(module: ModuleType) -> PythonSource:
    source = PythonSource.read(Path(str(module.__file__)).resolve(), {})
    assert source is not None
    return source


def swap(module: ModuleType, before: str, after: str) -> Callable[[], None] | None:
    """Edit a module; return the function that undoes it, if it can be undone."""
    source = read_source(module)
    start = source.text.index(before)
    edits = (TextEdit(start, start + len(before), after),)
    unit = next(unit for unit in split_units(source) if source.get_line_number(start) in unit.lines)
    tree = unit.parse_edited(edits)
    assert tree is not None
    loaded = LoadedCode([source])
    undo = loaded.swap_reversibly(unit, tree)
    if undo is None:
        loaded.swap_code(unit, tree, apply_edits(source.text, edits))
    return undo


CODE = """
    from __future__ import annotations

    from functools import lru_cache, wraps

    STEP = 1
    ALL = []


    def loud(function):
        @wraps(function)
        def inner(*args):
            return f"{function(*args)}!"

        return inner


    @loud
    def greeting(name):
        return "hello " + name


    @lru_cache
    def cached(number):
        return number + 1


    def outer(number):
        def inner():
            return number + 2

        return inner


    adder = outer(1)


    def stepped(number, by=3):
        return number + by * STEP


    class Base:
        size = 5

        def area(self):
            return self.size * 4

        @property
        def half(self):
            return self.size / 2

        @staticmethod
        def name():
            return "base"


    class Small:
        __slots__ = ("x",)

        def five(self):
            return 5
    """
SWAPPED_IN_PLACE = [
    ('"hello "', '"bye "', "greeting('ann')", "hello ann!", "bye ann!"),
    ("number + 1", "number + 10", "cached(1)", 2, 11),
    ("number + 2", "number - 2", "outer(5)()", 7, 3),
    ("number + 2", "number - 2", "adder()", 3, -1),
    ("self.size * 4", "self.size * self.size", "Base().area()", 20, 25),
    ("self.size / 2", "self.size // 2", "Base().half", 2.5, 2),
    ('return "base"', 'return "small"', "Base.name()", "base", "small"),
    ("return 5", "return 6", "Small().five()", 5, 6),
]


@pytest.mark.parametrize(("before", "after", "expression", "old", "new"), SWAPPED_IN_PLACE)
def test_function_is_swapped_in_place_and_undone(
    before: str, after: str, expression: str, old: object, new: object, import_text: ImportText
) -> None:
    module = import_text("it", CODE)
    namespace = dict(vars(module))
    assert eval(expression, namespace) == old
    undo = swap(module, before, after)
    assert undo is not None
    if "cached" not in expression:  # the cache answers
        assert eval(expression, namespace) == new
    undo()
    assert eval(expression, namespace) == old


EVALUATED_AGAIN = [
    ("STEP = 1", "STEP = 2", "stepped(1)", 7),
    ("by=3", "by=4", "stepped(1)", 5),
    ("size = 5", "size = 6", "Base().area()", 24),
    ('return f"{function(*args)}!"', 'return f"{function(*args)}?"', "greeting('ann')", "hello ann?"),
    ("@property\n    def half", "def half", "Base().half()", 2.5),
    ('__slots__ = ("x",)', '__slots__ = ("x", "y")', "Small.__slots__", ("x", "y")),
    ("def outer(number):", "def outer(number, more=1):", "outer(1)()", 3),
]


@pytest.mark.parametrize(("before", "after", "expression", "new"), EVALUATED_AGAIN)
def test_module_level_code_is_evaluated_again(
    before: str, after: str, expression: str, new: object, import_text: ImportText
) -> None:
    module = import_text("it", CODE)
    user = import_text("user", "from it import Base, Small, adder, greeting, outer, stepped\n")
    is_alone = "function" in before or before == "STEP = 1"
    assert (swap(module, before, after) is not None) == is_alone
    assert eval(expression, vars(module)) == new
    assert eval(expression, vars(user)) == new


def test_names_imported_by_other_modules_are_updated(import_text: ImportText) -> None:
    module = import_text("it", CODE)
    user = import_text("user", "from it import STEP, ALL\n")
    swap(module, "STEP = 1", "STEP = 2")
    swap(module, "ALL = []", "ALL = [1]")
    assert (vars(user)["STEP"], vars(user)["ALL"]) == (2, [1])


def test_existing_objects_get_the_new_class_attributes(import_text: ImportText) -> None:
    module = import_text("it", CODE)
    instance = vars(module)["Base"]()
    swap(module, "size = 5", "size = 6")
    assert instance.area() == 24


def test_module_imported_later_has_the_edited_text(import_text: ImportText, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("VALUE = 1\n", encoding="utf-8")
    source = PythonSource(tmp_path.resolve() / "late.py", "VALUE = 1\n")
    unit = next(iter(split_units(source)))
    tree = unit.parse_edited((TextEdit(8, 9, "2"),))
    assert tree is not None
    LoadedCode([source]).swap_code(unit, tree, "VALUE = 2\n")
    assert vars(importlib.import_module("late"))["VALUE"] == 2
    assert vars(import_text("other", "VALUE = 3\n"))["VALUE"] == 3


def test_empty_overlay_installs_no_import_hook(import_text: ImportText) -> None:
    before = list(sys.meta_path)
    install_overlay({})
    assert sys.meta_path == before
    assert vars(import_text("plain", "VALUE = 1\n"))["VALUE"] == 1


def test_containers_of_modules_and_classes_are_measured(import_text: ImportText) -> None:
    module = import_text("it", CODE + "\n    class Kept:\n        all = {}\n")
    loaded = LoadedCode([read_source(module)])
    before = loaded.measure_containers()
    assert before["it", "ALL"] == before["it.Kept", "all"] == 0
    vars(module)["ALL"].append(1)
    vars(module)["Kept"].all["a"] = 1
    assert loaded.measure_containers() == {**before, ("it", "ALL"): 1, ("it.Kept", "all"): 1}


def test_assignment_of_a_module_is_swapped_and_undone(import_text: ImportText) -> None:
    module = import_text("it", "import re\nWORD = re.compile('a')\nSIZE = 1\nTWICE = SIZE * 2\n")
    user = import_text("user", "from it import WORD\n")
    undo = swap(module, "'a'", "'b'")
    assert undo is not None
    assert vars(module)["WORD"].pattern == vars(user)["WORD"].pattern == "b"
    undo()
    assert vars(module)["WORD"].pattern == vars(user)["WORD"].pattern == "a"
    assert swap(module, "SIZE = 1", "SIZE = 2") is None
    assert vars(module)["TWICE"] == 4
    assert swap(module, "WORD =", "OTHER =") is None
