"""The entry of runs and commands."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Command

FOLDER = str(Path(sys.executable).parent)


@pytest.mark.parametrize(
    ("before", "after"),
    [("/usr/bin:/bin", f"{FOLDER}:/usr/bin:/bin"), (f"/usr/bin:{FOLDER}", f"/usr/bin:{FOLDER}")],
)
def test_tools_of_this_environment_are_found_without_activating_it(
    command: Command, monkeypatch: pytest.MonkeyPatch, before: str, after: str
) -> None:
    monkeypatch.setenv("PATH", before)
    for _ in range(2):
        command("--loop-list").get_lines()
        assert os.environ["PATH"] == after
