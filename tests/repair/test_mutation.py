"""Mutants of a project: which are made, which survive, and what is said of them."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_loop.cli.mutate import main
from pytest_loop.repair.mutation.mutants import make_mutants
from pytest_loop.repair.mutation.mutation_request import (
    MutationError,
    MutationRequest,
    MutationResult,
    measure_mutants,
    merge_shares,
)
from pytest_loop.repair.python_source import PythonSource
from tests.repair.conftest import Write, read_contents

PROJECT = {
    "shop.py": """
        def cap(amount, most=100):
            if amount > most:
                return most
            return amount


        def ship(country):
            return country == "NL"


        def wait(count):
            while count > 0:
                count -= 1
            return count
        """,
    "tests/test_shop.py": """
        from shop import cap, wait


        def test_small_amount_stays():
            assert cap(5) == 5


        def test_large_amount_is_capped():
            assert cap(500) == 100


        def test_wait_ends():
            assert wait(3) == 0
        """,
}


def measure(folder: Path, *paths: str, seconds: float = 60.0) -> MutationResult:
    request = MutationRequest(
        folder=folder, paths=paths, seconds=seconds, pytest_arguments=("-p", "no:randomly"), workers=2
    )
    return measure_mutants(request)


def test_mutants_change_one_thing_of_a_function() -> None:
    text = dedent(
        """
        LIMIT = 3


        def f(a, b=1):
            "Say what it does."
            total = a + 1
            if a < b and a is not None:
                total -= 1
            return max(total, len(b))
        """
    )
    changes = {mutant.change for mutant in make_mutants(PythonSource(Path("/it.py"), text))}
    assert changes == {
        "`total = a + 1` becomes `total = a - 1`",
        "`total = a + 1` becomes `total = a + 2`",
        "without `total = a + 1`",
        "`if a < b and a is not None:` becomes `if a < b or a is not None:`",
        "`if a < b and a is not None:` becomes `if a <= b and a is not None:`",
        "`if a < b and a is not None:` becomes `if a > b and a is not None:`",
        "`if a < b and a is not None:` becomes `if a < b and a is None:`",
        "`if a < b and a is not None:` becomes `if a < b and a is not 0:`",
        "`total -= 1` becomes `total += 1`",
        "`total -= 1` becomes `total -= 2`",
        "`total -= 1` becomes `pass`",
        "`return max(total, len(b))` becomes `return min(total, len(b))`",
        "`return max(total, len(b))` becomes `return not max(total, len(b))`",
    }


@pytest.mark.measured
def test_survivors_are_named_with_line_and_change(write: Write) -> None:
    folder = write(PROJECT)
    before = read_contents(folder)
    result = measure(folder, "shop.py")
    assert read_contents(folder) == before
    assert result.tests == 3
    assert result.tried == result.mutants == result.killed + len(result.survivors)
    lines = {f"{survivor.path}:{survivor.line}: {survivor.describe()}" for survivor in result.survivors}
    assert "shop.py:2: `if amount > most:` becomes `if amount >= most:`: 2 tests executed it and passed" in lines
    assert 'shop.py:8: `return country == "NL"` becomes `return country != "NL"`: no test executes this line' in lines
    assert not any(line.startswith(("shop.py:3:", "shop.py:4:", "shop.py:13:")) for line in lines)


def test_an_endless_mutant_is_killed(write: Write) -> None:
    result = measure(write(PROJECT))
    assert not any("count += 1" in survivor.change for survivor in result.survivors)


def test_what_does_not_fit_into_the_time_is_said(write: Write) -> None:
    functions = "".join(f"def f{number}(a):\n    return a + {number}\n\n\n" for number in range(400))
    tests = "import many\n\n\ndef test_all():\n    assert [getattr(many, f'f{n}')(1) for n in range(400)]\n"
    result = measure(write({"many.py": functions, "tests/test_many.py": tests}), seconds=2.0)
    assert 0 < result.tried < result.mutants
    assert f"{result.mutants - result.tried:,} more did not fit into the time" in result.summarise()


def test_a_project_whose_tests_fail_has_nothing_to_measure(write: Write) -> None:
    failing = {**PROJECT, "tests/test_shop.py": "import shop\n\n\ndef test_it():\n    assert not shop\n"}
    with pytest.raises(MutationError, match=r"^no mutant could be run: no test passes$"):
        measure(write(failing))


def test_a_test_module_that_cannot_be_imported_is_named(write: Write) -> None:
    broken = {**PROJECT, "tests/test_shop.py": "import no_such_module_at_all\n"}
    with pytest.raises(MutationError, match=r"test_shop\.py cannot be imported: ModuleNotFoundError"):
        measure(write(broken))


def test_shares_have_all_mutants_once(write: Write) -> None:
    folder = write(PROJECT)
    request = MutationRequest(folder=folder)
    shares = [measure_mutants(request.model_copy(update={"share": (number, 3)})) for number in (1, 2, 3)]
    whole = measure_mutants(request)
    assert max(share.tried for share in shares) < whole.tried
    assert merge_shares(shares).model_copy(update={"seconds": whole.seconds}) == whole


@pytest.mark.parametrize(
    ("fields", "message"),
    [({"tests": 2}, "2 tests passed before any change, and 3 elsewhere"), ({"problem": "no test passes"}, "no test")],
)
def test_shares_with_other_tests_or_a_problem_are_no_result(fields: dict[str, object], message: str) -> None:
    shares = [
        MutationResult(mutants=4, tried=2, killed=2, tests=3).model_copy(update=change) for change in ({}, fields)
    ]
    with pytest.raises(MutationError, match=message):
        merge_shares(shares)


def test_the_command_prints_survivors_and_compares_the_score(
    write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(write(PROJECT))
    assert main(["shop.py", "--tests", "tests/test_shop.py", "--score", ">= 0.99"]) == 1
    output = capsys.readouterr().out
    assert "shop.py:8: " in output
    assert "\nscore 0." in output
    assert "next: write a test that fails with one of these changes" in output
    assert main(["shop.py", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tests"] == 3


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["missing.py"], 4, "missing.py does not exist: name files or folders of code to mutate"),
        (["--score", "much"], 4, "expected a comparison with a number from 0 to 1, as '>= 0.8', found 'much'"),
        (["tests"], 5, "no function to mutate was found"),
    ],
)
def test_bad_words_are_explained(
    words: list[str],
    code: int,
    message: str,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(write(PROJECT))
    assert main(words) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["0", "soon", "inf"])
def test_a_limit_is_a_positive_number(limit: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ending:
        main(["--limit", limit])
    assert ending.value.code == 4
    assert f"argument --limit: invalid seconds value: '{limit}'" in capsys.readouterr().err
