from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Names that a disk can hold: newline, quotes, a leading dash, an emoji, spaces, and bytes that are not UTF-8.
NAMES = [b"a\nb.py", b"a'\"\\b.py", b"-rf", "\U0001f600.py".encode(), b"  spaces  ", b"\xff\xfe.py", b"\t", b'"quoted"']
Write = Callable[..., Path]


@pytest.fixture(params=NAMES, ids=range(len(NAMES)))
def odd_name(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    name: bytes = request.param
    try:
        (tmp_path / os.fsdecode(name)).touch()
    except OSError:
        pytest.skip("this disk takes no such name")
    return name


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def write(project: Path) -> Write:
    """A function that writes a file of the project."""

    def write_file(name: str | bytes, data: str | bytes = "text\n", mode: int | None = None) -> Path:
        path = project / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            path.chmod(mode)
        return path

    return write_file


@pytest.fixture
def own_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose permissions count: a test that runs as root runs as another user meanwhile."""
    if os.getuid() != 0:
        yield tmp_path
        return
    folder = Path(tempfile.mkdtemp(prefix="pytest-loop-own-"))
    os.chown(folder, 65534, 65534)
    os.seteuid(65534)
    try:
        yield folder
    finally:
        os.seteuid(0)
        shutil.rmtree(folder)
