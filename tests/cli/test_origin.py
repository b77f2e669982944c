"""The origin of a run names its command line, the commit and versions."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pytest_loop.cli.origin import describe_origin


def test_origin_names_command_commit_and_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "k7Jx92mQpLw4")
    arguments = ("--loop-task", "use k7Jx92mQpLw4")
    origin = describe_origin(tmp_path, arguments)
    assert origin.command == "pytest --loop-task 'use [SERVICE_TOKEN]'"
    assert origin.revision == ""
    assert set(origin.versions) == {"Python", "pytest-agent-loop", "pytest", "pytest-xdist"}
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run([*git, "init", "-q"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], cwd=tmp_path, check=True)
    assert len(describe_origin(tmp_path, arguments).revision) == 40
