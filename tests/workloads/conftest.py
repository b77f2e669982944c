from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.workloads.cases import Workload, load_workload

WriteWorkload = Callable[..., Path]
PYTHON = sys.executable

# Writes the case in capitals if the prompt contains that word.
RUN = """\
import pathlib, sys
case, output = map(pathlib.Path, sys.argv[1:3])
text = case.read_text()
output.write_text(text.upper() if "capitals" in pathlib.Path("prompt.md").read_text() else text)
"""
MANIFEST: dict[str, Any] = {
    "workloadId": "letters",
    "artifactPaths": ["prompt.md"],
    "casePaths": ["cases/*.txt"],
    "runCommand": f"{PYTHON} run.py {{case}} {{output}}",
    "outputPath": "out/{case}",
    "expectedPaths": ["expected/*.txt"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of the workload; tests with `pytester` override it."""
    return tmp_path


@pytest.fixture
def write_workload(folder: Path) -> WriteWorkload:
    """Return a function that writes a workload: `a` passes, `b` needs capitals; `fields` change the manifest."""

    def write(files: Mapping[str, str] | None = None, name: str = "loop.manifest.json", **fields: Any) -> Path:
        texts = {
            "prompt.md": "Copy it.\n",
            "run.py": RUN,
            "cases/a.txt": "ONE\n",
            "cases/b.txt": "two\n",
            "expected/a.txt": "ONE\n",
            "expected/b.txt": "TWO\n",
            **(files or {}),
        }
        for path, text in texts.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        data = {key: value for key, value in (MANIFEST | fields).items() if value is not None}
        (folder / name).write_text(json.dumps(data, indent=1), encoding="utf-8")
        return folder / name

    return write


@pytest.fixture
def open_workload(write_workload: WriteWorkload, folder: Path) -> Callable[..., Workload]:
    """Return a function that writes a workload and loads it."""

    def load(files: Mapping[str, str] | None = None, **fields: Any) -> Workload:
        return load_workload(write_workload(files, **fields), folder)

    return load
