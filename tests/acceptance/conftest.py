"""Stories of runs: pytest as a person calls it, in a project that the story makes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(project: Path) -> Pytest:
    """Calls pytest in the folder `project`."""

    def pytest_(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pytest", *words]
        return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=300)

    return pytest_
