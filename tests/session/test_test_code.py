"""Tests that code under test has replaced are found by comparing them with their source."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_loop.session.test_code import find_replaced_tests
from pytest_loop.session.test_modules import find_test_modules

HONEST = """
    import functools
    import unittest

    import pytest
    from hypothesis import given, strategies

    def twice(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            function(*args, **kwargs)
            return function(*args, **kwargs)
        return call

    def test_plain():
        assert "plain text" * 2 == "plain textplain text"

    @pytest.mark.parametrize("value", [1, 2])
    def test_parametrised(value):
        text = f"{value} of 1000"
        assert text.endswith("1000"), (lambda: "a message")()

    def test_computed_constants():
        assert -5 < min(-3, 4) == 1 - 4
        assert {"a": [60 * 60, -7][-1]}["a"] == -7, -8
        assert "long " + "text" in ["long text"]
        assert 2 ** 3 - 1 == 0x7 and not -1 == +1

    @twice
    def test_decorated():
        assert 1 + 1 == 2

    @given(strategies.integers())
    def test_property(number):
        assert number + 0 == number

    class TestInClass:
        @given(text=strategies.text())
        def test_property(self, text):
            assert text + "end" != text

        def test_method(self):
            assert [x for x in "abc"] == ["a", "b", "c"]

    class TestCase(unittest.TestCase):
        def test_unittest(self):
            self.assertEqual("some text", "some text")
"""
PRODUCT = """
    import functools

    def test_it(): pass

    def wrap(function):
        return functools.wraps(function)(lambda: None)
"""


@pytest.fixture
def find(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def find(text: str) -> list[str]:
        items, _ = pytester.inline_genitems(pytester.makepyfile(test_it=text))
        return sorted(find_replaced_tests(items, (), pytester.path))

    return find


def test_honest_tests_are_what_their_file_says(find: object) -> None:
    assert find(HONEST) == []  # type: ignore[operator]


@pytest.mark.parametrize(
    "replacement",
    [
        pytest.param("from product import test_it", id="another function"),
        pytest.param("exec('def test_it(): pass')", id="no file"),
        pytest.param("import product\ntest_it.__code__ = product.test_it.__code__", id="another code"),
        pytest.param("test_it.__code__ = test_it.__code__.replace(co_consts=(None, 0))", id="other constants"),
        pytest.param("from product import wrap\ntest_it = wrap(test_it)", id="a wrapper"),
    ],
)
def test_replaced_test_is_found(find: object, pytester: pytest.Pytester, replacement: str) -> None:
    pytester.makepyfile(product=PRODUCT)
    text = f"def test_it():\n    assert 'some text' == 'another text'\n\n{replacement}\n"
    assert find(text) == ["test_it.py::test_it"]  # type: ignore[operator]


@pytest.mark.parametrize("constants", [(None, 6, 5), (None, -6)], ids=["another operand", "another result"])
def test_replaced_constant_of_an_assertion_is_found(find: object, constants: tuple[object, ...]) -> None:
    replacement = f"test_it.__code__ = test_it.__code__.replace(co_consts={constants!r})"
    assert find(f"def test_it():\n    assert int() == -7\n\n{replacement}\n") == ["test_it.py::test_it"]  # type: ignore[operator]


CHEATS = {
    "an operand of another test": """
        def test_it():
            want = -10
            assert int() == want

        def test_other():
            assert int() == -10

        test_it.__code__ = test_it.__code__.replace(co_consts=(None, 10))
    """,
    "a wrapper around a test with a decorator": """
        import pytest
        from product import wrap

        @pytest.mark.parametrize("number", [1])
        def test_it(number):
            assert number == 2

        test_it = wrap(test_it)
    """,
    "a wrapper without code": """
        import functools
        import pytest
        import product

        @pytest.mark.parametrize("number", [1])
        def test_it(number):
            assert number == 2

        test_it = functools.update_wrapper(functools.partial(product.wrap, None), test_it)
        test_it.__name__ = "test_it"
    """,
    "code with its name, line and constants": """
        import product

        def test_it():
            assert int() == 7

        code = product.test_it.__code__.replace(co_consts=(None, 7), co_firstlineno=4, co_filename=__file__)
        test_it.__code__ = code
    """,
}


@pytest.mark.parametrize("text", CHEATS.values(), ids=CHEATS)
def test_disguised_replacement_is_found(find: object, pytester: pytest.Pytester, text: str) -> None:
    pytester.makepyfile(product=PRODUCT)
    assert find(dedent(text).lstrip()) == ["test_it.py::test_it"]  # type: ignore[operator]


def test_unreadable_file_has_no_functions(find: object, pytester: pytest.Pytester) -> None:
    items, _ = pytester.inline_genitems(path := pytester.makepyfile(test_it="def test_it(): pass"))
    path.unlink()
    assert find_replaced_tests(items, (), pytester.path) == {"test_it.py::test_it"}


DOCTEST = '''
    def total(prices):
        """Add prices.

        >>> total([1])
        1
        """
        return sum(prices)


    class Shop:
        """A shop.

        >>> Shop() is None
        False
        """
    '''


@pytest.mark.parametrize(
    ("line", "replaced"),
    [
        ("", []),
        ("total.__doc__ = '>>> 1\\n1\\n'", ["test_it.py::test_it.total"]),
        ("total.__doc__ = Shop.__doc__", ["test_it.py::test_it.total"]),
    ],
)
def test_replaced_doctest_is_found(find: object, pytester: pytest.Pytester, line: str, replaced: list[str]) -> None:
    pytester.makeini("[pytest]\naddopts = --doctest-modules\n")
    assert find(f"{dedent(DOCTEST)}\n{line}\n") == replaced  # type: ignore[operator]


# The module of a test, the module that helps it, and what a product does to it before the tests begin.
IMPORT = "import product\nfrom checks.helpers import check\nfrom .helpers import check as again\n\ndef test_it(): check(1, 2)\n"
HELPERS = """
    LIMIT, RATE = 3, 4
    EXPECTED = 6
    NAMES = ("Ada", "Grace")
    COUNT = 0

    def count():
        global COUNT
        COUNT += 1

    def check(value, expected):
        assert value == expected

    class Checker:
        def __new__(cls):
            return super().__new__(cls)

        def check(self, value):
            assert value

        @property
        def name(self):
            return "it"
"""
FAKE = "import sys, types\n\nhelpers = sys.modules['checks.helpers'] = types.ModuleType('helpers')\nhelpers.check = print\n"


@pytest.mark.parametrize(
    ("product", "replaced"),
    [
        pytest.param("", set(), id="as it was"),
        pytest.param(FAKE, {"checks/helpers.py"}, id="another module"),
        pytest.param(
            "from checks import helpers\n\nhelpers.check = print", {"checks/helpers.py::check"}, id="a function"
        ),
    ],
)
def test_module_that_helps_tests_is_what_its_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, product: str, replaced: set[str]
) -> None:
    (tmp_path / "checks").mkdir()
    for name, text in {
        "checks/__init__": "",
        "checks/helpers": dedent(HELPERS),
        "checks/test_it": IMPORT,
        "product": product,
    }.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        import_module("checks.test_it")
        modules = find_test_modules((), tmp_path)
        assert find_replaced_tests((), modules, tmp_path) == replaced
    finally:
        for name in ("product", "checks", "checks.helpers", "checks.test_it"):
            sys.modules.pop(name, None)
