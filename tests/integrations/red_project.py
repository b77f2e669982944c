"""A small project whose test fails, in a git repository, as a fresh clone of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

RED = "def add(a, b):\n    return a - b\n"
GREEN = "def add(a, b):\n    return a + b\n"


def make_red_project(folder: Path) -> Path:
    """Make the project, and return a clone of it."""
    origin = folder / "origin"
    (origin / "src").mkdir(parents=True)
    (origin / "src" / "calc.py").write_text(RED)
    (origin / "pytest.ini").write_text("[pytest]\npythonpath = src\n")
    (origin / "test_calc.py").write_text("from calc import add\n\n\ndef test_sum():\n    assert add(2, 3) == 5\n")
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    for arguments in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "-qm", "first")):
        subprocess.run(["git", *arguments], cwd=origin, check=True)
    subprocess.run(["git", "clone", "--quiet", str(origin), str(folder / "clone")], check=True)
    return folder / "clone"
