"""Build the environment of the project at a worker, from the lock or the requirements at the start of the run."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from pytest_loop.cluster.tree import compute_hash, find_base, read_piece
from pytest_loop.errors import LoopError

_FILES = re.compile(r"uv\.lock|pyproject\.toml|[\w.-]*(requirements|constraints)[\w.-]*\.txt|requirements/[\w.-]+\.txt")
_TIMEOUT = 1800.0
_DONE = "pytest-loop-done"


class BuildError(LoopError):
    """The environment cannot be built; the text says why."""


def select_files(paths: Iterable[str]) -> list[str]:
    """Return the paths that describe an environment."""
    return sorted(filter(_FILES.fullmatch, paths))


def build_environment(files: Mapping[str, str], python: str) -> Path:
    """Return the interpreter of an environment of this Python version; `files` are hashes by path.

    It is built once on each host. Raise `BuildError` if that fails.
    """
    name = compute_hash(json.dumps([dict(files), python, platform.machine()]).encode())[:16]
    folder = find_base() / "environments" / name
    folder.parent.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / _DONE).exists():
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory() as source:
                _write_files(Path(source), files)
                for command in _list_commands(Path(source), folder, python):
                    _run(command, Path(source), folder)
            (folder / _DONE).touch()
        os.utime(folder)  # one that is not used is deleted
    finally:
        os.close(lock)
    return folder / "bin" / "python"


def _write_files(source: Path, files: Mapping[str, str]) -> None:
    for path, digest in files.items():
        (source / path).parent.mkdir(exist_ok=True)
        (source / path).write_bytes(read_piece(digest) or b"")


def _list_commands(source: Path, folder: Path, python: str) -> list[list[str]]:
    """Return the commands that build the environment; raise `BuildError` if there are none."""
    uv = shutil.which("uv")
    if (source / "uv.lock").exists() and uv:
        options = ("--frozen", "--all-extras", "--all-groups", "--no-install-project", "--python", python)
        return [[uv, "sync", *options]]
    names = sorted(path.name for path in source.glob("*.txt"))
    lists = [name for name in names if "constraints" not in name]
    words = [word for name in lists for word in ("-r", name)]
    if not words:
        raise BuildError("the project has no requirements.txt, and no uv.lock that uv could install")
    if uv:
        interpreter = str(folder / "bin" / "python")
        return [[uv, "venv", "--python", python, str(folder)], [uv, "pip", "install", "--python", interpreter, *words]]
    if platform.python_version() != python:
        raise BuildError(f"Python is {platform.python_version()}, expected {python}, which needs uv")
    pip = (str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check")
    return [[sys.executable, "-m", "venv", str(folder)], [*pip, *words]]


def _run(command: list[str], source: Path, folder: Path) -> None:
    try:
        subprocess.run(
            command,
            cwd=source,
            env={**os.environ, "UV_PROJECT_ENVIRONMENT": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_TIMEOUT,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{Path(command[0]).name} took longer than {_TIMEOUT:g} s") from None
    except subprocess.CalledProcessError as error:
        last_line = next(iter(reversed(error.stderr.strip().splitlines())), "no message")
        raise BuildError(f"{Path(command[0]).name} failed: {last_line}") from None
