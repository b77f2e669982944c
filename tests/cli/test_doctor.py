"""The check of the set-up."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.cli import doctor


def test_every_part_of_the_set_up_has_a_line(tmp_path: Path) -> None:
    lines = list(doctor.render_checkup(tmp_path))
    assert [line.partition(":")[0] for line in lines[:4]] == ["versions", "fence", "warm sessions", "git"]
    assert lines[3] == "git: the project is not in a git work tree"


def test_missing_git_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "git: not installed: no checkpoints in git, and no candidates" in doctor.render_checkup(tmp_path)


def test_command_prints_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert doctor.main(["--run", "it"]) == 0
    assert capsys.readouterr().out.startswith("versions: pytest-agent-loop ")
