"""The journal of a clean room, an evaluation for which files that are not part of the change are set aside.

It lists what the clean room has moved and written, so that everything can be put back, also after a crash.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_loop.core.text.wording import list_names
from pytest_loop.errors import StateError
from pytest_loop.store import disk
from pytest_loop.workspace import file_writer
from pytest_loop.workspace.left_out_files import is_cache

_JOURNAL, ASIDE = "clean-room.json", "aside"


@dataclass(frozen=True)
class Journal:
    """The paths that a clean room has moved into the run's folder, and those of files and folders that it has made.

    `root` is the project's path from the run's folder: it stays right if the project is moved or copied.
    """

    root: str
    moved: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    made: tuple[str, ...] = ()


def write_journal(folder: Path, journal: Journal) -> None:
    """Write the journal before anything is moved or written."""
    disk.write_atomically(folder / _JOURNAL, json.dumps(asdict(journal)).encode(), durable=False)


def put_back(folder: Path) -> tuple[str, ...]:
    """Put back what the clean room of the run in this folder has set aside, also after a crash; return the paths.

    In caches, a file that a session wrote stays; elsewhere, the file that was set aside replaces it.
    """
    journal = _read_journal(folder)
    if journal is None:
        return ()
    root, aside = Path(os.path.normpath(folder / journal.root)), folder / ASIDE
    with suppress(FileNotFoundError):
        aside.chmod(0o700)
    moved = [path for number, path in enumerate(journal.moved) if _put_back_path(root, f"{aside}/{number}", path)]
    for path in journal.written:
        file_writer.remove_path(root, path)
    for path in journal.made:
        file_writer.remove_empty_folder(root, path)
    shutil.rmtree(aside, ignore_errors=True)
    disk.remove_file(folder / _JOURNAL)
    return tuple(moved)


def _read_journal(folder: Path) -> Journal | None:
    data = disk.read_file(folder / _JOURNAL)
    if not data:
        return None
    try:
        fields = json.loads(data)
        return Journal(fields["root"], *(tuple(fields[name]) for name in ("moved", "written", "made")))
    except (ValueError, KeyError, TypeError):
        raise StateError(
            f"{folder / _JOURNAL} cannot be read: files of the project are in {folder / ASIDE}, move them back by hand"
        ) from None


def _put_back_path(root: Path, source: str, path: str) -> bool:
    if not os.path.lexists(source):  # it was never moved, or is back already
        return False
    target = root / path
    with disk.translate_errors("put back", target, f"move {source} there by hand"):
        if os.path.lexists(target):
            if is_cache(path):
                return False
            if os.path.isdir(source) and not os.path.islink(source) and target.is_dir():  # noqa: PTH112, PTH114 - called for many files
                for name in sorted(os.listdir(source)):  # noqa: PTH208 - called for many files
                    _put_back_path(root, f"{source}/{name}", f"{path}/{name}")
                return True
            file_writer.remove_path(root, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        os.rename(source, target)  # noqa: PTH104 - called for many files
    return True


def describe_put_back(paths: tuple[str, ...]) -> str:
    """Say what was put back after a crash."""
    return f"put back what an interrupted evaluation had set aside: {list_names(paths, 3)}"
