from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

from pytest_loop.repair.failure import Failure, describe_failure
from pytest_loop.repair.template_hints import collect_hints, list_exceptions

totals = [1]
RAISING = {
    "print(totalz)": ("NameError", "totalz", "totals"),
    "print(lenn)": ("NameError", "lenn", "len"),
    "math.sqr(4)": ("AttributeError", "sqr", "sqrt"),
    "[].apend(1)": ("AttributeError", "apend", "append"),
    "import colections": ("ModuleNotFoundError", "colections", "collections"),
    "import json.decodr": ("ModuleNotFoundError", "decodr", "decoder"),
    "from math import sqr": ("ImportError", "sqr", "sqrt"),
    "{}['a']": ("KeyError", "", None),
}


class SilentError(Exception):
    """Says nothing, and not even that."""

    def __str__(self) -> str:
        raise ValueError


class Closed:
    def __dir__(self) -> list[str]:
        raise OSError


def raised(code: str) -> Failure:
    try:
        exec(code, {"math": math, "totals": totals, "SilentError": SilentError, "Closed": Closed})
    except Exception as error:
        return describe_failure(error)
    raise AssertionError(code)


@pytest.mark.parametrize("code", RAISING)
def test_a_name_that_was_not_there_is_told_with_those_that_come_close(code: str) -> None:
    error, missing, close = RAISING[code]
    found = raised(code)
    assert (found.error, found.missing) == (error, missing)
    assert (found.similar[0] if found.similar else None) == close


def test_a_failure_has_the_way_to_where_it_was_raised() -> None:
    found = raised("def f():\n    return 1 / 0\n\n\nf()\n")
    assert [line for _, line in found.frames[-2:]] == [5, 2]
    assert found.message == "division by zero"


@pytest.mark.parametrize(("code", "error"), [("raise SilentError", "SilentError"), ("Closed().name", "AttributeError")])
def test_objects_that_raise_when_they_are_asked_are_not_asked_again(code: str, error: str) -> None:
    found = raised(code)
    assert (found.error, found.similar) == (error, ())


def test_hints_are_what_tests_and_failures_say(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(
        "def test_a():\n    with pytest.raises(ValueError):\n        f('a;b', 'Jupiter')\n", encoding="utf-8"
    )
    failures = [
        Failure(error="KeyError", message="could not convert string to float: '1,5'"),
        Failure(error="NameError", missing="totl", similar=("total",)),
    ]
    found = collect_hints(failures, ["test_it.py::test_a[1_000]"], [path, path, tmp_path / "missing.py"])
    assert found.strings == ("a;b", "Jupiter")
    assert found.signs == (",", "_", ";")
    assert found.errors == ("KeyError", "NameError", "ValueError")
    assert found.missing == {"totl": ("total",)}
    assert list_exceptions(failures) == ("KeyError", "NameError")
    assert ast.parse(path.read_text(encoding="utf-8"))
