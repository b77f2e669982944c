"""The outputs of cases: read at a worker, and written into the project of the run."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath

from pytest_loop.errors import LoopError
from pytest_loop.workspace.file_writer import write_file

MAX_SIZE = 16 << 20
_CLOCK_TICK = 0.1


def read_outputs(tree: Path, patterns: Collection[str], since: float) -> dict[str, str]:
    """Return as Base64 the files that match and are newer; raise `LoopError` if they are too large to travel."""
    outputs, size = {}, 0
    for path in _list_files(tree, patterns):
        if path.stat().st_mtime < since - _CLOCK_TICK:
            continue
        size += path.stat().st_size
        if size > MAX_SIZE:
            raise LoopError(f"the outputs of its cases have more than {MAX_SIZE >> 20} MB")
        outputs[path.relative_to(tree).as_posix()] = base64.b64encode(path.read_bytes()).decode()
    return outputs


def write_outputs(root: Path, patterns: Collection[str], outputs: Mapping[str, str]) -> None:
    """Write outputs into a project; ignore paths that match no pattern."""
    for path, text in outputs.items():
        is_inside = ".." not in PurePosixPath(path).parts
        if is_inside and any(path == name or (name.endswith("/") and path.startswith(name)) for name in patterns):
            write_file(root, path, base64.b64decode(text), 0o644)


def _list_files(tree: Path, patterns: Collection[str]) -> Iterator[Path]:
    for name in sorted(patterns):
        path = tree / name
        for file in path.rglob("*") if name.endswith("/") else (path,):
            if file.is_file() and not file.is_symlink() and file.resolve().is_relative_to(tree):
                yield file
