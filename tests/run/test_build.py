"""`loop_build`: a command without a shell, whose failure is explained with its output."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from pytest_loop.run.build import build_files


def make_command(script: str) -> str:
    return shlex.join([sys.executable, "-c", script])


def test_build_runs_in_the_project_without_a_shell(tmp_path: Path) -> None:
    command = make_command("import sys; open('built', 'w').write(sys.argv[1])") + " '$HOME;'"
    assert build_files(command, tmp_path, 30) == ""
    assert (tmp_path / "built").read_text() == "$HOME;"


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (make_command("print('cc: no such file'); raise SystemExit(2)"), "exit code 2: cc: no such file"),
        (make_command("import time; time.sleep(60)"), "ended at its deadline"),
        ("no-such-compiler", "no such command is installed here"),
        ("make 'ext", "No closing quotation"),
    ],
    ids=["failure", "deadline", "missing", "quotes"],
)
def test_failed_build_is_explained(tmp_path: Path, command: str, problem: str) -> None:
    text = build_files(command, tmp_path, 1)
    assert text.startswith(f"loop_build = {command}: ")
    assert problem in text
