"""Calls git so that nothing in a repository can run code or wait for ever: an agent may have written all of it.

Contents go through a git folder of our own, whose configuration nobody else writes; it shares only the objects with the
repository. What has to be asked of the repository itself is asked with every setting overridden that names a program.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from pytest_loop.core.text.lengths import shorten
from pytest_loop.errors import LoopError

DEADLINE = 60.0
_NOWHERE = os.devnull
_SETTINGS = {
    "core.hooksPath": _NOWHERE,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": _NOWHERE,
    "core.excludesFile": _NOWHERE,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.alternateRefsCommand": "false",
    "core.logAllRefUpdates": "false",
    "core.protectNTFS": "false",  # names that another system would not take are names
    "core.protectHFS": "false",
    "credential.helper": "",
    "diff.external": "false",
    "gc.auto": "0",
    "core.compression": "1",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "gpg.program": "false",
    "safe.directory": "*",  # whoever owns the files: the tests in them are run anyway
}
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": _NOWHERE,
    "GIT_CONFIG_GLOBAL": _NOWHERE,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # Objects that are missing are missing: fetching them would run what the repository names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}
_PASSED_ON = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class GitError(LoopError):
    """Git did not do what it was asked to; its text says why."""


@dataclass(frozen=True)
class Git:
    """Git in one folder."""

    program: str
    folder: Path
    deadline: float = DEADLINE
    env: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def locate(cls, folder: Path, deadline: float = DEADLINE) -> Git:
        """The git of this machine."""
        program = shutil.which("git")
        if program is None:
            raise GitError("git is not installed here")
        return cls(os.path.abspath(program), folder, deadline)  # noqa: PTH100 - a link keeps its name

    def run(self, *words: str, data: bytes = b"") -> bytes:
        """What it says on its standard output; an error where it fails or takes too long."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        process = self._started([self.program, "--no-pager", "--literal-pathspecs", *settings, *words])
        with process:
            try:
                output, errors = process.communicate(data, self.deadline)
            except subprocess.TimeoutExpired:
                _end(process)
                raise GitError(f"git {words[0]} did not end within {self.deadline:g} seconds") from None
            except BaseException:
                _end(process)
                raise
        if process.returncode != 0:
            told = shorten(errors.decode("utf-8", "replace")) or f"exit code {process.returncode}"
            raise GitError(f"git {words[0]} failed: {told}")
        return output

    def _started(self, command: list[str]) -> subprocess.Popen[bytes]:
        passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
        pipe = subprocess.PIPE
        try:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={**passed_on, **_ENVIRONMENT, "HOME": _NOWHERE, **self.env},
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be run in {self.folder}: {error.strerror or error}") from None

    def query(self, *words: str) -> str:
        """Its answer to a question, without the end of the line."""
        return os.fsdecode(self.run(*words).removesuffix(b"\n"))

    @contextmanager
    def open_private_folder(self, objects: Path, object_format: str) -> Iterator[Git]:
        """Git in a folder of our own, which knows nothing of the repository but its objects."""
        with tempfile.TemporaryDirectory(prefix="pytest-loop-git-") as name:
            folder = Path(name)
            (folder / "refs").mkdir()
            (folder / "HEAD").write_text("ref: refs/heads/none\n")
            extension = "" if object_format == "sha1" else f"[extensions]\n\tobjectFormat = {object_format}\n"
            version = 1 if extension else 0
            (folder / "config").write_text(f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = true\n{extension}")
            env = {"GIT_DIR": name, "GIT_OBJECT_DIRECTORY": os.fspath(objects)}
            yield Git(self.program, folder, self.deadline, env)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
