from __future__ import annotations

import ast
import math
from pathlib import Path

import pytest

from pytest_loop.repair.failure import Failure, describe_failure
from pytest_loop.repair.template_hints import collect_hints, list_exceptions

totals = [1]
RAISING_CODE = {
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
    """An error whose text cannot be read."""

    def __str__(self) -> str:
        raise ValueError


class UnlistableObject:
    def __dir__(self) -> list[str]:
        raise OSError


def raise_failure(code: str) -> Failure:
    try:
        exec(code, {"math": math, "totals": totals, "SilentError": SilentError, "UnlistableObject": UnlistableObject})
    except Exception as error:
        return describe_failure(error)
    raise AssertionError(code)


@pytest.mark.parametrize("code", RAISING_CODE)
def test_missing_name_is_described_with_similar_names(code: str) -> None:
    error, missing, close = RAISING_CODE[code]
    failure = raise_failure(code)
    assert (failure.error, failure.missing) == (error, missing)
    assert (failure.similar[0] if failure.similar else None) == close


def test_failure_has_the_frames_down_to_the_raise() -> None:
    failure = raise_failure("def f():\n    return 1 / 0\n\n\nf()\n")
    assert [line for _, line in failure.frames[-2:]] == [5, 2]
    assert failure.message == "division by zero"


@pytest.mark.parametrize(
    ("code", "error"), [("raise SilentError", "SilentError"), ("UnlistableObject().name", "AttributeError")]
)
def test_objects_that_raise_when_inspected_have_no_similar_names(code: str, error: str) -> None:
    failure = raise_failure(code)
    assert (failure.error, failure.similar) == (error, ())


def test_hints_are_collected_from_tests_and_failures(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(
        "def test_a():\n    with pytest.raises(ValueError):\n        f('a;b', 'Jupiter')\n", encoding="utf-8"
    )
    failures = [
        Failure(error="KeyError", message="could not convert string to float: '1,5'"),
        Failure(error="NameError", missing="totl", similar=("total",)),
    ]
    hints = collect_hints(failures, ["test_it.py::test_a[1_000]"], [path, path, tmp_path / "missing.py"])
    assert hints.strings == ("a;b", "Jupiter")
    assert hints.signs == (",", "_", ";")
    assert hints.errors == ("KeyError", "NameError", "ValueError")
    assert hints.missing == {"totl": ("total",)}
    assert list_exceptions(failures) == ("KeyError", "NameError")
    assert ast.parse(path.read_text(encoding="utf-8"))
