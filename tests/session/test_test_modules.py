"""Names of a test module that code under test replaces are found; those that the module itself sets are not."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_loop.session.test_modules import TestModule, is_test_support

TEXT = """
    EXPECTED = 6
    COUNT = 0
    CALLS = []
    NAMES = ["Ada"]


    def check(value):
        assert value == EXPECTED


    def count():
        global COUNT
        COUNT += 1
        CALLS.append(COUNT)


    def test_names():
        assert ["Ada"] == NAMES


    class TestShop:
        expected = 6
        client = None

        @classmethod
        def setup_class(cls):
            cls.client = "client"
    """


@pytest.fixture
def module(pytester: pytest.Pytester) -> ModuleType:
    path = pytester.makepyfile(test_shop=TEXT)
    spec = spec_from_file_location("test_shop", path)
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_names_that_others_replace_are_found(module: Any) -> None:
    watch = TestModule(module)
    module.EXPECTED, module.check, module.TestShop.expected = 5, print, 5
    assert sorted(watch.find_changes()) == ["TestShop.expected", "test_shop.EXPECTED", "test_shop.check"]


def test_built_in_function_that_a_new_name_hides_is_found(module: Any) -> None:
    watch = TestModule(module)
    module.len, module.new = max, max
    assert list(watch.find_changes()) == ["test_shop.len"]


def test_list_that_tests_only_compare_must_not_change(module: Any) -> None:
    watch = TestModule(module)
    module.NAMES.append(object())
    module.CALLS.append(1)
    assert list(watch.find_changes()) == ["test_shop.NAMES"]


def test_modules_that_help_tests_are_found_by_place_and_name(tmp_path: Path) -> None:
    paths = ("tests/data.py", "conftest.py", "shop_test.py", "helpers.py", "shop.py", "tests/data.so", "/helpers.py")
    found = [path for path in paths if is_test_support(tmp_path / path, tmp_path)]
    assert found == ["tests/data.py", "conftest.py", "shop_test.py", "helpers.py"]


def test_name_that_is_gone_is_found_in_a_file_that_is_gone(module: Any) -> None:
    watch = TestModule(module)
    Path(module.__file__).unlink()
    del module.check
    assert list(watch.find_changes()) == ["test_shop.check"]


def test_names_that_the_module_sets_itself_are_left_alone(module: Any) -> None:
    watch = TestModule(module)
    module.count()
    module.TestShop.setup_class()
    assert list(watch.find_changes()) == []
