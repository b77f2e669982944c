"""A task that asks for the edit of a file names it, and not what only has to pass."""

from __future__ import annotations

import pytest

from pytest_loop.inference.named_files import find_named_files


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
        ("correct the expected total in data/prices.json", ("/data/prices.json",)),
        ("update the golden files in tests/golden", ("/tests/golden",)),
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
