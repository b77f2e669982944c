"""Edits of sealed files that cannot change a verdict are honest."""

from __future__ import annotations

import pytest

from pytest_loop.workspace.honest_edits import is_honest_edit

TEST = """import sys
import os

def test_it():
    assert  f(1)==2
"""
SETTINGS = """[project]
name = "shop"
dependencies = []

[tool.pytest.ini_options]
addopts = "-q"
"""


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("tests/test_it.py", TEST, TEST.replace("  f(1)==2", " f(1) == 2  # two")),
        ("tests/test_it.py", TEST, TEST.replace("import sys\nimport os", "import os\nimport sys\n")),
        ("tests/test_it.py", TEST, TEST.replace("import sys\nimport os", "import os, sys")),
        ("tests/test_it.py", TEST, TEST.replace("import os\n", "")),
        ("tests/test_it.py", "from a import b\nfrom a import c\n", "from a import c, b\n"),
        ("pyproject.toml", SETTINGS, SETTINGS.replace("dependencies = []", 'dependencies = ["attrs"]')),
        ("pyproject.toml", SETTINGS, SETTINGS + "[dependency-groups]\ntest = ['attrs']\n"),
        ("sub/pyproject.toml", SETTINGS, f"# a comment\n{SETTINGS}"),
    ],
)
def test_edit_that_means_the_same_to_a_judge_is_honest(path: str, before: str, after: str) -> None:
    assert is_honest_edit(path, before.encode(), after.encode())


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("tests/test_it.py", TEST, TEST.replace("==2", "==3")),
        ("tests/test_it.py", TEST, TEST.replace("import os", "import shop")),
        ("tests/test_it.py", "import shop\n", ""),
        ("tests/test_it.py", "from __future__ import annotations\n", ""),
        ("tests/test_it.py", "import os\ndef test(): os\n", "def test(): os\n"),
        ("tests/test_it.py", "from os import path\ndef test(path): pass\n", "def test(path): pass\n"),
        ("tests/test_it.py", TEST, "def ("),
        ("tests/test_it.py", "import shop\nx = 1\n", "x = 1\nimport shop\n"),
        ("pyproject.toml", SETTINGS, SETTINGS.replace('"-q"', '"--co"')),
        ("pyproject.toml", SETTINGS, SETTINGS + "[tool.ruff]\n"),
        ("pyproject.toml", SETTINGS, SETTINGS + "["),
        ("pytest.ini", "[pytest]\n", "[pytest]\n\n"),
    ],
)
def test_edit_that_may_change_a_verdict_is_not_honest(path: str, before: str, after: str) -> None:
    assert not is_honest_edit(path, before.encode(), after.encode())
