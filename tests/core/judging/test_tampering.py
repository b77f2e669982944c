from __future__ import annotations

import pytest

from pytest_loop.core.judging.tampering import (
    ChangedSource,
    find_copied_literals,
    find_suspicious_changes,
    find_test_machinery,
    is_void,
)
from pytest_loop.core.model.evaluation import SealFinding


def find_kinds(
    before: str | None, after: str, allowed: frozenset[str] = frozenset(), *, is_linted: bool = False
) -> list[str]:
    return [
        finding.kind
        for finding in find_suspicious_changes([ChangedSource("a.py", before, after)], allowed, is_linted=is_linted)
    ]


@pytest.mark.parametrize(
    "after",
    [
        "import pytest",
        "from _pytest import runner",
        "from unittest.mock import ANY",
        "import os\nx = os.environ.get('PYTEST_CURRENT_TEST')",
        "import sys\nx = 'pytest' in sys.modules",
        "x = pytest",
        "def load_tests(loader, tests, pattern): pass",
        "open('conftest.py', 'w')",
        "import sys\nx = 'py' + 'te' + 'st' in sys.modules",
        """x = f'_py{"test"}'""",
    ],
)
def test_code_that_detects_tests_is_a_finding(after: str) -> None:
    assert find_kinds("", after) == ["machinery"]
    assert find_kinds(after, after) == []
    assert find_kinds(None, after, find_test_machinery(after)) == []


@pytest.mark.parametrize(
    "after",
    [
        '"""Tested with pytest."""',
        "def f():\n    'uses unittest'",
        "# pytest",
        "x = 'my_pytester'",
        "x = 'py' + name + f'{test}'",
        "import pytesting",
        "from . import other",
    ],
)
def test_ordinary_words_are_no_test_machinery(after: str) -> None:
    assert find_kinds("", after) == []


@pytest.mark.parametrize(
    "after",
    [
        "class A:\n    def __eq__(self, other):\n        return True",
        "class A:\n    def __ne__(self, _):\n        return False",
        "class A:\n    def __contains__(self, _):\n        return True",
        "class A:\n    __eq__ = lambda self, other: True",
        "class A:\n    def __eq__(self, other):\n        return 1",
        "A = type('A', (), {'__eq__': lambda self, other: True})",
        "A.__eq__ = lambda *_: True",
        "A.__eq__ = lambda self, other: True",
        "A = type('A', (), dict(__eq__=lambda self, other: True))",
        "setattr(A, '__e' + 'q__', lambda self, other: True)",
    ],
)
def test_comparison_that_ignores_its_argument_is_a_finding(after: str) -> None:
    assert find_kinds("", after) == ["equality"]
    assert find_kinds(after, after) == []


@pytest.mark.parametrize(
    "after",
    [
        "class A:\n    def __eq__(self, other):\n        return self.x == other.x",
        "class A:\n    __eq__ = functools.partial(same)\n    x: int = 1\n    y.z = 1\n    def f(self): pass",
        "class A:\n    def __hash__(self):\n        return hash('A')",
        "class A:\n    def __eq__(self, other):\n        return NotImplemented",
        "class NaN:\n    def __eq__(self, _):\n        return False\n    __ne__ = lambda self, _: True",
        "x = {'__eq__': same, **others}",
        "a.b = lambda other: True",
    ],
)
def test_comparison_that_uses_its_argument_is_no_finding(after: str) -> None:
    assert find_kinds("", after) == []


@pytest.mark.parametrize(
    "line",
    [
        "x = 1  # NOQA",
        "x = 1  #noqa:F401",
        "# ruff:noqa",
        "x = 1  #  type :ignore[x]",
        "x = 1  # Pragma:  No Cover",
        "# PYLINT: disable=all",
        "# pyright: basic",
        "# fmt: off",
        "// eslint-disable-next-line no-undef",
        "/* eslint no-undef: off */",
        "// biome-ignore lint/style: no",
        "# shellcheck disable=SC2034",
        "# rubocop:disable Style/Foo",
        "<!-- markdownlint-disable -->",
        "<!-- prettier-ignore -->",
        "//noinspection JSUnused",
        "/* eslint-disable */",
        "// @ts-expect-error",
        "/* istanbul ignore next */",
        "x := 1 //nolint:errcheck",
        "#![allow(dead_code)]",
    ],
)
def test_silencers_of_all_tools_are_found_in_any_case_and_spacing(line: str) -> None:
    assert find_kinds("", f"{line}\n", is_linted=True) == ["ratchet"]


@pytest.mark.parametrize(
    "line",
    [
        "# a quantum of noquarter",
        "# types: ignored here",
        "// eslint is fine",
        "# ruff",
        "# We ignore taxes: skip them.",
        "# note: ignore it",
        "x = '--cache-off'",
    ],
)
def test_ordinary_comments_silence_nothing(line: str) -> None:
    assert find_kinds("", f"{line}\n", is_linted=True) == []


def test_silenced_linters_count_only_if_linters_judge() -> None:
    before, after = "x = 1  # noqa\n", "x = 1  # noqa\ny = 2  # noqa: E501\nz = 3  #type: ignore\n"
    assert find_kinds(before, after, is_linted=True) == ["ratchet"]
    assert find_kinds(before, after) == []
    assert find_kinds(after, before, is_linted=True) == []


def test_lost_types_count_only_if_linters_judge() -> None:
    before, after = "def rate(price: int) -> int:\n    return price\n", "def rate(price):\n    return price\n"
    assert find_kinds(before, after, is_linted=True) == ["ratchet"]
    assert find_kinds(before, after) == []


def test_silencer_that_moves_to_another_file_is_not_new() -> None:
    moved = [ChangedSource("old.py", "import os  # noqa", ""), ChangedSource("new.py", None, "import os  # noqa")]
    assert list(find_suspicious_changes(moved, frozenset(), is_linted=True)) == []
    copied = [ChangedSource("old.py", "import os  # noqa", "import os  # noqa"), moved[1]]
    (finding,) = find_suspicious_changes(copied, frozenset(), is_linted=True)
    assert (finding.kind, finding.path, finding.detail) == ("ratchet", "new.py", "it newly says noqa")


@pytest.mark.parametrize("line", ["__all__ = ['os']", "__all__ += ['os']", "__all__: list = ['o' + 's']"])
def test_import_that_is_newly_exported_silences_a_linter(line: str) -> None:
    before, after = "import os\n", f"import os\n{line}\n"
    assert find_kinds(before, after, is_linted=True) == ["ratchet"]
    assert find_kinds(before, after) == []
    package = ChangedSource("shop/__init__.py", before, after)
    assert list(find_suspicious_changes([package], frozenset(), is_linted=True)) == []
    assert find_kinds("", "import os\n__all__ = ['total']\n__all__: list\n", is_linted=True) == []


def test_code_that_cannot_be_parsed_has_no_findings() -> None:
    assert find_kinds("", "def (") == []


def test_values_of_tests_in_the_product_are_reported() -> None:
    tests = ["assert f(3) == 4096\nassert g() == 'a long text'\nassert h() == 2 and True"]
    source = ChangedSource("a.py", "x = 'a long text'", "x = 'a long text'\ny = 4096\nz = 2\nw = True")
    assert [finding.detail for finding in find_copied_literals([source], tests)] == ["values of the tests: 4096"]
    assert list(find_copied_literals([ChangedSource("a.py", None, "z = 2")], tests)) == []


def test_only_signs_of_tampering_make_an_evaluation_void() -> None:
    assert not is_void([SealFinding(kind="literal"), SealFinding(kind="allow")])
    assert is_void([SealFinding(kind="literal"), SealFinding(kind="canary")])
