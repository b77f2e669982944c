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

Imported: TypeAlias = Callable[[str, str], ModuleType]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Imported]:
    """Writes modules and imports them, for one test only."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = set(sys.modules)

    def found(name: str, text: str) -> ModuleType:
        (tmp_path / f"{name}.py").write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield found
    for name in set(sys.modules) - before:
        del sys.modules[name]


def source(module: ModuleType) -> PythonSource:
    found = PythonSource.read(Path(str(module.__file__)).resolve(), {})
    assert found is not None
    return found


def swap(module: ModuleType, before: str, after: str) -> Callable[[], None] | None:
    """Edit a module; gives what undoes it, where that can be undone."""
    text = source(module)
    start = text.text.index(before)
    pieces = (TextEdit(start, start + len(before), after),)
    unit = next(one for one in split_units(text) if text.get_line(start) in one.lines)
    tree = unit.parse_edited(pieces)
    assert tree is not None
    loaded = LoadedCode([text])
    put_back = loaded.swap_function(unit, tree)
    if put_back is None:
        loaded.swap_code(unit, tree, apply_edits(text.text, pieces))
    return put_back


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
IN_PLACE = [
    ('"hello "', '"bye "', "greeting('ann')", "hello ann!", "bye ann!"),
    ("number + 1", "number + 10", "cached(1)", 2, 11),
    ("number + 2", "number - 2", "outer(5)()", 7, 3),
    ("number + 2", "number - 2", "adder()", 3, -1),
    ("self.size * 4", "self.size * self.size", "Base().area()", 20, 25),
    ("self.size / 2", "self.size // 2", "Base().half", 2.5, 2),
    ('return "base"', 'return "small"', "Base.name()", "base", "small"),
    ("return 5", "return 6", "Small().five()", 5, 6),
]


@pytest.mark.parametrize(("before", "after", "asked", "old", "new"), IN_PLACE)
def test_a_function_is_exchanged_where_it_is_and_put_back(
    before: str, after: str, asked: str, old: object, new: object, imported: Imported
) -> None:
    module = imported("it", CODE)
    held = dict(vars(module))
    assert eval(asked, held) == old
    put_back = swap(module, before, after)
    assert put_back is not None
    if "cached" not in asked:  # who remembers need not ask
        assert eval(asked, held) == new
    put_back()
    assert eval(asked, held) == old


AGAIN = [
    ("STEP = 1", "STEP = 2", "stepped(1)", 7),
    ("by=3", "by=4", "stepped(1)", 5),
    ("size = 5", "size = 6", "Base().area()", 24),
    ('return f"{function(*args)}!"', 'return f"{function(*args)}?"', "greeting('ann')", "hello ann?"),
    ("@property\n    def half", "def half", "Base().half()", 2.5),
    ('__slots__ = ("x",)', '__slots__ = ("x", "y")', "Small.__slots__", ("x", "y")),
    ("def outer(number):", "def outer(number, more=1):", "outer(1)()", 3),
]


@pytest.mark.parametrize(("before", "after", "asked", "new"), AGAIN)
def test_what_is_evaluated_when_a_module_is_imported_is_evaluated_again(
    before: str, after: str, asked: str, new: object, imported: Imported
) -> None:
    module = imported("it", CODE)
    user = imported("user", "from it import Base, Small, adder, greeting, outer, stepped\n")
    assert swap(module, before, after) is None or "function" in before
    assert eval(asked, vars(module)) == new
    assert eval(asked, vars(user)) == new


def test_names_that_others_have_taken_are_theirs_again(imported: Imported) -> None:
    module = imported("it", CODE)
    user = imported("user", "from it import STEP, ALL\n")
    swap(module, "STEP = 1\nALL = []", "STEP = 2\nALL = [1]")
    assert (vars(user)["STEP"], vars(user)["ALL"]) == (2, [1])


def test_objects_that_live_have_the_new_methods_of_their_class(imported: Imported) -> None:
    module = imported("it", CODE)
    one = vars(module)["Base"]()
    swap(module, "size = 5", "size = 6")
    assert one.area() == 24


def test_a_module_that_is_imported_later_has_the_edited_text(imported: Imported, tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("VALUE = 1\n", encoding="utf-8")
    text = PythonSource(tmp_path.resolve() / "late.py", "VALUE = 1\n")
    unit = next(iter(split_units(text)))
    tree = unit.parse_edited((TextEdit(8, 9, "2"),))
    assert tree is not None
    LoadedCode([text]).swap_code(unit, tree, "VALUE = 2\n")
    assert vars(importlib.import_module("late"))["VALUE"] == 2
    assert vars(imported("other", "VALUE = 3\n"))["VALUE"] == 3


def test_files_without_another_text_are_left_alone(imported: Imported) -> None:
    before = list(sys.meta_path)
    install_overlay({})
    assert sys.meta_path == before
    assert vars(imported("plain", "VALUE = 1\n"))["VALUE"] == 1


def test_what_modules_and_classes_keep_is_counted(imported: Imported) -> None:
    module = imported("it", CODE + "\n    class Kept:\n        all = {}\n")
    loaded = LoadedCode([source(module)])
    before = loaded.measure_containers()
    assert before["it", "ALL"] == before["it.Kept", "all"] == 0
    vars(module)["ALL"].append(1)
    vars(module)["Kept"].all["a"] = 1
    assert loaded.measure_containers() == {**before, ("it", "ALL"): 1, ("it.Kept", "all"): 1}
