from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.workloads.cases import Workload, load_workload

Make = Callable[..., Path]
Open = Callable[[], Workload]
PYTHON = sys.executable

# Writes the case in capitals where the prompt says so.
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
    """Where the workload is made; a story in `pytester` has its own folder as `tmp_path`."""
    return tmp_path


@pytest.fixture
def make(folder: Path) -> Make:
    """Writes a workload: `a` passes, `b` needs capitals; `fields` change the manifest, None takes one out."""

    def make(files: Mapping[str, str] | None = None, name: str = "loop.manifest.json", **fields: Any) -> Path:
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

    return make


@pytest.fixture
def open_workload(make: Make, folder: Path) -> Callable[..., Workload]:
    """Writes a workload and opens it."""

    def open_workload(files: Mapping[str, str] | None = None, **fields: Any) -> Workload:
        return load_workload(make(files, **fields), folder)

    return open_workload
