"""A task names the files that it edits, and a judging command the scripts that it runs."""

from __future__ import annotations

import pytest

from pytest_loop.inference.file_roles import find_judging_scripts, find_named_files


@pytest.mark.parametrize(
    ("task", "patterns"),
    [
        ("add the fixture `prices` to tests/conftest.py, fix until green", ("/tests/conftest.py",)),
        ("Add the fixture to conftest.py.", ("conftest.py",)),
        ("regenerate the snapshot tests/golden.txt", ("__snapshots__/", "*.snap", "*.ambr", "/tests/golden.txt")),
        ("migrate setup.cfg to pyproject.toml, fix until green", ("setup.cfg", "pyproject.toml")),
        ("move to src layout", ("pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml")),
        ("fix until green", ()),
        ("fix until `pytest tests/test_shop.py` passes", ()),
        ("update shop.py so that tests/test_shop.py passes", ("shop.py",)),
        ("change the total until tests/test_shop.py passes", ()),
        ("fix tests/test_shop.py", ()),
        ("fix the wrong expectation in tests/test_shop.py, until green", ("/tests/test_shop.py",)),
        ("fix the failing tests in tests/test_shop.py", ()),
        ("correct the expected total in data/prices.json", ("/data/prices.json",)),
        ("update the golden files in tests/golden", ("/tests/golden/**",)),
        ("update the tests in tests/unit", ()),
        ("adapt shop.py to tests/test_shop.py", ("shop.py",)),
        ("update shop.py to satisfy tests/test_shop.py", ("shop.py",)),
        ("extend shop.py according to tests/test_shop.py", ("shop.py",)),
        ("correct the bug that tests/test_shop.py shows", ()),
        ("add 3.5 to the price", ("3.5",)),
    ],
)
def test_files_that_a_task_edits_are_named(task: str, patterns: tuple[str, ...]) -> None:
    assert find_named_files(task) == patterns


FILES = {
    "Makefile": "include config.mk\n\ntest:\n\t$(PYTHON) scripts/run_tests.py shop.py\n\t./check.sh\n",
    "config.mk": "-include more.mk missing.mk\nPYTHON = python\n",
    "more.mk": "include config.mk\n",
    "scripts/run_tests.py": "",
    "check.sh": ". ./env.sh\n# source of it\nsource of/names\necho source.sh\n",
    "env.sh": "source ./check.sh\n",
    "shop.py": "",
    "app/run": "",
    "sub/Makefile": "include other.mk\n",
    "other.mk": "",
    "tools/lint": "",
}


@pytest.mark.parametrize(
    ("left_out", "named", "expected"),
    [
        ((), (), ("check.sh", "config.mk", "env.sh", "missing.mk", "more.mk", "of/names", "scripts/run_tests.py")),
        (("Makefile", "config.mk", "more.mk"), (), ()),
        (
            ("Makefile", "config.mk", "more.mk"),
            ("tools/lint", "shop.py", "app/run", "gone.sh"),
            ("app/run", "tools/lint"),
        ),
    ],
    ids=["make", "nothing", "named"],
)
def test_scripts_of_commands_are_found(
    left_out: tuple[str, ...], named: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    files = {path: text for path, text in FILES.items() if path not in left_out}
    assert find_judging_scripts(files, named, lambda path: files.get(path, "")) == expected
