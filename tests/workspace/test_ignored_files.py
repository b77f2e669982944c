"""Source files that ignore files name are found."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_loop.workspace.ignored_files import find_ignored_sources


@pytest.mark.parametrize("name", [".gitignore", ".ignore", ".git/info/exclude"])
def test_source_that_an_ignore_file_names_is_found(tmp_path: Path, name: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    paths = ("rates.py", "shop.py", "notes.txt")
    assert find_ignored_sources(tmp_path, paths) == ()
    (tmp_path / name).write_text("rates.py\nnotes.txt\n")
    assert find_ignored_sources(tmp_path, paths) == ("rates.py",)


def test_nothing_is_ignored_without_git(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("rates.py\n")
    assert find_ignored_sources(tmp_path, ("rates.py",)) == ()
