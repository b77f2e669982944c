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
BROKEN = [
    ("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2"),
    ("shop/limits.py", "import re\n        from", "from"),
    ("shop/limits.py", "from collections import Counter", "from collections import Countr"),
    ("shop/limits.py", "from collections import Counter", "from colections import Counter"),
    ("shop/limits.py", "re.compile(", "re.compil("),
    ("shop/limits.py", 're.compile("[a-z]+")', 're.compile("[a-z]+", NAME)'),
    ("shop/use.py", "import LIMIT", "import LIMITS"),
    ("shop/use.py", "import shop.limits\n", "import shop.limit\n"),
]


def files(path: str, right: str, wrong: str) -> dict[str, str]:
    assert PACKAGE[path].count(right) == 1
    return {**PACKAGE, path: PACKAGE[path].replace(right, wrong)}


@pytest.mark.parametrize(
    ("path", "right", "wrong"),
    [
        pytest.param(*row, id=row[2].strip(), marks=pytest.mark.thorough if at % 2 else ())
        for at, row in enumerate(BROKEN)
    ],
)
def test_a_module_that_cannot_be_imported_is_repaired(
    path: str, right: str, wrong: str, write: Write, repair: Repair
) -> None:
    found = repair(write(files(path, right, wrong)), seconds_after_green=0.0)
    best = found.patches[0]
    assert found.failing == ("tests/test_use.py",)
    assert best.path == path
    assert best.fixed == ("tests/test_use.py", "tests/test_use.py::test_fits", "tests/test_use.py::test_limits")
    assert (found.end_reason, found.passing, found.remaining, found.problem) == ("green", 1, (), "")
    assert found.localised[0].path == path


def test_what_is_wrong_besides_is_mended_in_the_next_step(write: Write, repair: Repair) -> None:
    broken = files("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2")
    broken["shop/use.py"] = broken["shop/use.py"].replace("<=", "<")
    found = repair(write(broken), failing=["tests/test_use.py::test_fits"], seconds_after_green=0.5)
    one, two = found.steps
    assert one.fixed == ("tests/test_use.py", "tests/test_use.py::test_limits")
    assert (two.path, two.fixed) == ("shop/use.py", ("tests/test_use.py::test_fits",))
    assert found.end_reason == "green"


def test_a_conftest_file_that_needs_such_a_module_is_one_more_that_cannot_be_imported(
    write: Write, repair: Repair
) -> None:
    broken = files("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2")
    found = repair(write({**broken, "conftest.py": "import shop.limits\n"}), seconds_after_green=0.0)
    assert "TWICE = LIMIT * 2" in found.steps[0].after
    assert (found.end_reason, found.remaining) == ("green", ())


def test_tests_that_were_collected_need_not_wait_for_others(write: Write, repair: Repair) -> None:
    broken = files("shop/limits.py", "TWICE = LIMIT * 2", "TWICE = LIMT * 2")
    broken["shop/more.py"] = "def more(number):\n    return number - 1\n"
    broken["tests/test_more.py"] = "from shop.more import more\ndef test_more(): assert more(1) == 2\n"
    found = repair(write(broken), failing=["tests/test_more.py::test_more"], seconds_after_green=0.0)
    assert found.patches[0].path == "shop/more.py"
    assert found.problem == (
        "tests/test_use.py cannot be imported: NameError: name 'LIMT' is not defined (shop/limits.py:5)"
    )


def test_where_nothing_helps_it_is_said_what_cannot_be_imported(write: Write, repair: Repair) -> None:
    broken = files("shop/limits.py", "LIMIT = 5", "raise SystemError('no way')")
    found = repair(write(broken), allow=["shop/limits.py"], candidates=2, seconds_after_green=0.0)
    assert found.end_reason == "candidates"
    assert found.problem == "tests/test_use.py cannot be imported: SystemError: no way (shop/limits.py:4)"
    assert [(one.path, one.line) for one in found.localised] == [("shop/limits.py", 4)]


def test_a_file_that_is_no_python_is_named(write: Write, repair: Repair) -> None:
    found = repair(write(files("shop/limits.py", "LIMIT = 5", "LIMIT = = 5")))
    assert found.end_reason == "nothing fails"
    assert "tests/test_use.py cannot be imported: SyntaxError: invalid syntax (limits.py, line 4)" in found.problem
