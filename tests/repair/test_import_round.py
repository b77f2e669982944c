from __future__ import annotations

import pytest

from tests.repair.conftest import Repair, Write

PACKAGE = {
    "shop/__init__.py": "",
    "shop/limits.py": """
        import re
        from collections import Counter

        LIMIT = 5
        TWICE = LIMIT * 2
        NAME = re.compile("[a-z]+")


        def counted(words):
            return Counter(words)
        """,
    "shop/use.py": """
        import shop.limits
        from shop.limits import LIMIT


        def fits(size):
            return size <= LIMIT
        """,
    "tests/test_use.py": """
        from shop import limits
        from shop.use import fits


        def test_fits():
            assert fits(5)
            assert not fits(6)


        def test_limits():
            assert limits.TWICE == 10
            assert limits.NAME.match("a")
            assert limits.counted(["a", "a"])["a"] == 2
        """,
    "tests/test_other.py": "def test_other(): pass\n",
}
BREAKS = [
    ("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2"),
    ("shop/limits.py", "import re\n        from", "from"),
    ("shop/limits.py", "from collections import Counter", "from collections import Countr"),
    ("shop/limits.py", "from collections import Counter", "from colections import Counter"),
    ("shop/limits.py", "re.compile(", "re.compil("),
    ("shop/limits.py", 're.compile("[a-z]+")', 're.compile("[a-z]+", NAME)'),
    ("shop/use.py", "import LIMIT", "import LIMITS"),
    ("shop/use.py", "import shop.limits\n", "import shop.limit\n"),
]


def break_package(path: str, right: str, wrong: str) -> dict[str, str]:
    assert PACKAGE[path].count(right) == 1
    return {**PACKAGE, path: PACKAGE[path].replace(right, wrong)}


@pytest.mark.parametrize(
    ("path", "right", "wrong"),
    [
        pytest.param(*row, id=row[2].strip(), marks=pytest.mark.thorough if at % 2 else ())
        for at, row in enumerate(BREAKS)
    ],
)
def test_module_that_cannot_be_imported_is_repaired(
    path: str, right: str, wrong: str, write: Write, repair: Repair
) -> None:
    result = repair(write(break_package(path, right, wrong)), seconds_after_green=0.0)
    best = result.patches[0]
    assert result.failing == ("tests/test_use.py",)
    assert best.path == path
    assert best.fixed == ("tests/test_use.py", "tests/test_use.py::test_fits", "tests/test_use.py::test_limits")
    assert (result.end_reason, result.passing, result.remaining, result.problem) == ("green", 1, (), "")
    assert result.localised[0].path == path


def test_second_bug_is_fixed_in_the_next_step(write: Write, repair: Repair) -> None:
    broken = break_package("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2")
    broken["shop/use.py"] = broken["shop/use.py"].replace("<=", "<")
    result = repair(write(broken), failing=["tests/test_use.py::test_fits"], seconds_after_green=0.5)
    first, second = result.steps
    assert first.fixed == ("tests/test_use.py", "tests/test_use.py::test_limits")
    assert (second.path, second.fixed) == ("shop/use.py", ("tests/test_use.py::test_fits",))
    assert result.end_reason == "green"


def test_broken_module_imported_by_conftest_is_repaired(write: Write, repair: Repair) -> None:
    broken = break_package("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2")
    result = repair(write({**broken, "conftest.py": "import shop.limits\n"}), seconds_after_green=0.0)
    assert "TWICE = LIMIT * 2" in result.steps[0].after
    assert (result.end_reason, result.remaining) == ("green", ())


def test_collected_tests_are_repaired_while_others_cannot_be_imported(write: Write, repair: Repair) -> None:
    broken = break_package("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2")
    broken["shop/more.py"] = "def more(number):\n    return number - 1\n"
    broken["tests/test_more.py"] = "from shop.more import more\ndef test_more(): assert more(1) == 2\n"
    result = repair(write(broken), failing=["tests/test_more.py::test_more"], seconds_after_green=0.0)
    assert result.patches[0].path == "shop/more.py"
    assert result.problem == (
        "tests/test_use.py cannot be imported: NameError: name 'LIMT' is not defined (shop/limits.py:5)"
    )


def test_problem_names_the_import_error_if_no_candidate_helps(write: Write, repair: Repair) -> None:
    broken = break_package("shop/limits.py", "LIMIT = 5", "raise SystemError('no way')")
    result = repair(write(broken), allow=["shop/limits.py"], candidates=2, seconds_after_green=0.0)
    assert result.end_reason == "candidates"
    assert result.problem == "tests/test_use.py cannot be imported: SystemError: no way (shop/limits.py:4)"
    assert [(place.path, place.line) for place in result.localised] == [("shop/limits.py", 4)]


def test_syntax_error_is_named_in_the_problem(write: Write, repair: Repair) -> None:
    result = repair(write(break_package("shop/limits.py", "LIMIT = 5", "LIMIT = = 5")))
    assert result.end_reason == "nothing fails"
    assert "tests/test_use.py cannot be imported: SyntaxError: invalid syntax (limits.py, line 4)" in result.problem


@pytest.mark.thorough
def test_collected_tests_are_searched_if_no_edit_helps_the_import(write: Write, repair: Repair) -> None:
    broken = break_package("shop/limits.py", "LIMIT = 5", "raise SystemError('no way')")
    broken["shop/more.py"] = "def more(number):\n    return number - 1\n"
    broken["tests/test_more.py"] = "from shop.more import more\ndef test_more(): assert more(1) == 2\n"
    failing = ["tests/test_more.py::test_more", "tests/test_use.py"]
    result = repair(
        write(broken), failing=failing, seconds=20.0, seconds_after_green=0.0, allow=["shop/more.py", "shop/limits.py"]
    )
    assert [step.path for step in result.steps] == ["shop/more.py"]
    assert "tests/test_use.py cannot be imported: SystemError: no way" in result.problem
