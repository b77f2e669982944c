from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeAlias

import pytest

from pytest_loop.repair.repair_request import RepairResult

Repair: TypeAlias = Callable[..., RepairResult]
Write: TypeAlias = Callable[[dict[str, str]], Path]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a project from indented texts."""

    def write_files(files: dict[str, str]) -> Path:
        folder = tmp_path / "project"
        for name, text in {"pytest.ini": "[pytest]\n", **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return folder

    return write_files


def make_command(folder: Path, home: Path, **fields: Any) -> tuple[list[str], Path]:
    """Write a repair request; return the command that starts the engine with it, and the file of its answers."""
    request, answer = home / "request.json", home / "answer.jsonl"
    defaults = {
        "folder": str(folder),
        "pytest_arguments": ["-p", "no:agent_loop"],
        "seconds": 60.0,
        "workers": 2,
        "seconds_after_green": 0.0,
    }
    request.write_text(json.dumps(defaults | fields), encoding="utf-8")
    answer.unlink(missing_ok=True)
    return [sys.executable, "-m", "pytest_loop.repair", str(request), str(answer)], answer


def make_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_PLUGINS": ""}


def read_result(answer: Path) -> RepairResult:
    lines = [json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines()]
    assert all(line["kind"] == "plan" for line in lines[:-1])
    return RepairResult.model_validate(lines[-1])


@pytest.fixture
def repair(tmp_path: Path) -> Repair:
    """Run the engine on a folder, and check that it changes nothing in the folder."""

    def run(folder: Path, **fields: Any) -> RepairResult:
        before = read_contents(folder)
        command, answer = make_command(folder, tmp_path, **fields)
        process = subprocess.run(command, env=make_environment(), capture_output=True, timeout=120)
        assert process.returncode == 0, (process.stdout + process.stderr).decode(errors="replace")
        assert read_contents(folder) == before
        return read_result(answer)

    return run


def read_contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
