"""Names of a test module that code under test replaces are found; those that the module itself sets are not."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_loop.session.test_modules import TestModule

TEXT = """
    EXPECTED = 6
    COUNT = 0
    CALLS = []


    def check(value):
        assert value == EXPECTED


    def count():
        global COUNT
        COUNT += 1
        CALLS.append(COUNT)


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
