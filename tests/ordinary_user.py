"""Run programs as an ordinary user, also where the tests run as root."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
needs_user = pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("bwrap") is None, reason="root needs bubblewrap to act as another user"
)


def make_user_command(words: Sequence[str]) -> list[str]:
    """Return a command that runs another one as a user other than root.

    Python may lie in a folder of root that others cannot enter: such a folder is replaced by one that holds Python.
    """
    if os.geteuid() != 0:
        return list(words)
    needed = {os.path.realpath(path) for path in (sys.base_prefix, sys.prefix, Path(__file__).parents[1])}
    options = ["--dev-bind", "/", "/"]
    hidden: set[Path] = set()
    for path in sorted(needed):
        if folder := find_private_folder(Path(path)):
            options += [] if folder in hidden else ["--perms", "0755", "--tmpfs", str(folder)]
            hidden.add(folder)
            for parent in reversed(Path(path).parents):
                options += ["--perms", "0755", "--dir", str(parent)] if folder in parent.parents else []
            options += ["--ro-bind", path, path]
    user = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    return ["bwrap", *options, "--", *user, *words]


def find_private_folder(path: Path) -> Path | None:
    """Return the outermost folder on the way to a path that others cannot enter."""
    return next((folder for folder in (*reversed(path.parents), path) if not _is_open(folder)), None)


def _is_open(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)


@contextmanager
def make_user_folder() -> Iterator[Path]:
    """Make a folder that such a user owns."""
    folder = Path(tempfile.mkdtemp(prefix="ordinary-user-"))
    try:
        give_to_user(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def give_to_user(folder: Path) -> None:
    """Make such a user the owner of a folder and of all in it."""
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
