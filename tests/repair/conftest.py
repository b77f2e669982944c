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
    """Writes a project, indented as it stands in the test."""

    def written(files: dict[str, str]) -> Path:
        folder = tmp_path / "project"
        for name, text in {"pytest.ini": "[pytest]\n", **files}.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return folder

    return written


def command(folder: Path, home: Path, **wishes: Any) -> tuple[list[str], Path]:
    """The engine as it is started by others: an order in a file, and a file for its answers."""
    order, answer = home / "order.json", home / "answer.jsonl"
    known = {
        "folder": str(folder),
        "pytest_arguments": ["-p", "no:agent_loop"],
        "seconds": 60.0,
        "workers": 2,
        "seconds_after_green": 0.0,
    }
    order.write_text(json.dumps(known | wishes), encoding="utf-8")
    answer.unlink(missing_ok=True)
    return [sys.executable, "-m", "pytest_loop.repair", str(order), str(answer)], answer


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_PLUGINS": ""}


def result(answer: Path) -> RepairResult:
    lines = [json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines()]
    assert all(one["kind"] == "progress" for one in lines[:-1])
    return RepairResult.model_validate(lines[-1])


@pytest.fixture
def repair(tmp_path: Path) -> Repair:
    """Runs the engine on a folder; nothing in the folder changes by that."""

    def run(folder: Path, **wishes: Any) -> RepairResult:
        before = contents(folder)
        words, answer = command(folder, tmp_path, **wishes)
        done = subprocess.run(words, env=environment(), capture_output=True, timeout=120)
        assert done.returncode == 0, (done.stdout + done.stderr).decode(errors="replace")
        assert contents(folder) == before
        return result(answer)

    return run


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
