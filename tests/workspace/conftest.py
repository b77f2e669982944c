from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# Whatever a disk can hold: a line's end, quotes, a dash in front, an emoji, spaces, and bytes that are no UTF-8.
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
    """Writes a file of the project."""

    def writes(name: str | bytes, data: str | bytes = "text\n", mode: int | None = None) -> Path:
        path = project / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        if mode is not None:
            path.chmod(mode)
        return path

    return writes


@pytest.fixture
def own_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of somebody whom the rights of files concern: root becomes nobody for a while."""
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
