"""Call git so that it runs no code from the repository and ends in time: an agent may have written all of it.

Contents go through a private git folder with a configuration of its own, which shares only the objects with the
repository. Calls in the repository itself override every setting that names a program.
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

TIMEOUT = 60.0
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.attributesFile": os.devnull,
    "core.excludesFile": os.devnull,
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "false",
    "core.sshCommand": "false",
    "core.gitProxy": "false",
    "core.alternateRefsCommand": "false",
    "core.logAllRefUpdates": "false",
    "core.protectNTFS": "false",  # allow file names that only other systems reject
    "core.protectHFS": "false",
    "credential.helper": "",
    "diff.external": "false",
    "gc.auto": "0",
    "core.compression": "1",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "gpg.program": "false",
    "safe.directory": "*",  # also work in a repository of another user: sessions run its tests anyway
}
_ENVIRONMENT = {
    "LC_ALL": "C",
    "HOME": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    # Fetching missing objects would run programs that the repository names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
}
_INHERITED_VARIABLES = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


class GitError(LoopError):
    """A git command failed."""


@dataclass(frozen=True)
class Git:
    """The git program, run in one folder."""

    program: str
    folder: Path
    timeout: float = TIMEOUT
    env: Mapping[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ("--literal-pathspecs",)

    @classmethod
    def locate(cls, folder: Path, timeout: float = TIMEOUT) -> Git:
        """Find the git program of this machine; raise `GitError` if there is none."""
        program = shutil.which("git")
        if program is None:
            raise GitError("git is not installed here")
        # Not resolved: a link may point to a launcher that goes by the name of the link.
        return cls(str(Path(program).absolute()), folder, timeout)

    def run(self, *words: str, data: bytes = b"") -> bytes:
        """Run a git command and return its output; raise `GitError` if it fails or takes too long."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        process = self._start([self.program, "--no-pager", *self.options, *settings, *words])
        with process:
            try:
                output, errors = process.communicate(data, self.timeout)
            except BaseException as error:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                if isinstance(error, subprocess.TimeoutExpired):
                    raise GitError(f"git {words[0]} did not end within {self.timeout:g} seconds") from None
                raise
        if process.returncode != 0:
            message = shorten(errors.decode("utf-8", "replace")) or f"exit code {process.returncode}"
            raise GitError(f"git {words[0]} failed: {message}")
        return output

    def _start(self, command: list[str]) -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        try:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={**environment, **_ENVIRONMENT, **self.env},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise GitError(f"git cannot be run in {self.folder}: {error.strerror or error}") from None

    def query(self, *words: str) -> str:
        """Run a git command and return its output as text, without the newline at the end."""
        return os.fsdecode(self.run(*words).removesuffix(b"\n"))

    @contextmanager
    def open_private_folder(self, objects: Path, object_format: str) -> Iterator[Git]:
        """Run git in a temporary git folder that shares only its objects with the repository."""
        with tempfile.TemporaryDirectory(prefix="pytest-loop-git-") as name:
            folder = Path(name)
            (folder / "refs").mkdir()
            (folder / "HEAD").write_text("ref: refs/heads/none\n")
            extension = "" if object_format == "sha1" else f"[extensions]\n\tobjectFormat = {object_format}\n"
            version = 1 if extension else 0
            (folder / "config").write_text(f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = true\n{extension}")
            env = {"GIT_DIR": name, "GIT_OBJECT_DIRECTORY": os.fspath(objects)}
            yield Git(self.program, folder, self.timeout, env)
