"""The tree of a worker: files rebuilt from pieces that are stored by their hash, and checked by it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_loop.cluster.job import Piece
from pytest_loop.workspace.file_tree import FileEntry, FileKind
from pytest_loop.workspace.file_writer import write_entry

Contents = Mapping[str, bytes]
_MAX_AGE = 7 * 24 * 3600


def find_base() -> Path:
    """Return the folder of this user on this host that holds all pieces and trees."""
    return Path(tempfile.gettempdir()).resolve() / f"pytest-loop-cluster-{os.getuid()}"


def find_piece_folder() -> Path:
    """Return the folder of pieces."""
    return find_base() / "pieces"


def make_folders() -> Path:
    """Make the folders of pieces and trees, and return that of trees; raise an error if another user made them."""
    for folder in (find_base(), find_piece_folder(), find_base() / "trees"):
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            raise PermissionError(f"{folder} belongs to another user")
    return find_base() / "trees"


def remove_old_files() -> None:
    """Delete pieces and trees of killed workers that are a week old; a piece that is used again is sent again."""
    oldest = time.time() - _MAX_AGE
    for path in find_base().glob("*/*"):
        with suppress(OSError):
            if path.stat().st_mtime < oldest:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def store_pieces(contents: Contents) -> None:
    """Store pieces that are not there yet."""
    piece_folder = find_piece_folder()
    for digest, data in contents.items():
        temp_file = piece_folder / f"{uuid.uuid4().hex}.tmp"
        temp_file.write_bytes(data)
        temp_file.replace(piece_folder / digest)


def list_missing(digests: Iterable[str]) -> tuple[str, ...]:
    """Return the pieces that this host does not have."""
    piece_folder = find_piece_folder()
    return tuple(digest for digest in dict.fromkeys(digests) if not (piece_folder / digest).exists())


def build_tree(folder: Path, pieces: Mapping[str, Piece]) -> tuple[str, ...]:
    """Write all files, and return the pieces that turned out to be damaged; these are deleted."""
    piece_folder, damaged = find_piece_folder(), []
    for path, piece in pieces.items():
        data = (piece_folder / piece.digest).read_bytes()
        if hashlib.sha256(data).hexdigest() != piece.digest:
            with suppress(FileNotFoundError):
                (piece_folder / piece.digest).unlink()
            damaged.append(piece.digest)
            continue
        write_entry(folder, path, FileEntry(FileKind(piece.kind), mode=piece.mode), data)
    return tuple(damaged)


def find_changed(folder: Path, pieces: Mapping[str, Piece], paths: Iterable[str]) -> list[str]:
    """Return the paths whose content differs from their pieces."""
    return [path for path in paths if path in pieces and _hash_file(folder / path) != pieces[path].digest]


def _hash_file(path: Path) -> str:
    try:
        data = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except OSError:
        return ""
    return hashlib.sha256(data).hexdigest()
