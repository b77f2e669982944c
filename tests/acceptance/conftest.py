"""Stories of runs: pytest as a person calls it, in a project that the story makes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from tests.calling import Caller

Made = Callable[..., Path]
Pytest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """Makes a folder `project` with these files and an ini file."""

    def make(**files: str) -> Path:
        folder = tmp_path / "project"
        folder.mkdir()
        for name, text in {"pytest_ini": "[pytest]\n", **files}.items():
            stem, _, ending = name.rpartition("_")
            (folder / f"{stem.replace('__', '.')}.{ending}").write_text(dedent(text))
        return folder

    return make


@pytest.fixture
def run(project: Path, caller: Caller) -> Pytest:
    """Calls pytest in the folder `project`."""

    def pytest_(*words: str) -> subprocess.CompletedProcess[str]:
        return caller.call(*words, folder=project)

    return pytest_
