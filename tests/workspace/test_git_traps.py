"""Nothing in a repository or in the environment makes our calls of git run a program.

Each trap has a control: an ordinary call of git springs it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.git import Git

RUN = "guide-20260101-120000"
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
MISSING = "0123456789012345678901234567890123456789"


class Repository:
    """A repository, and a script that leaves a mark when it is run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.mark = root.parent / "sprung"
        self.script = root.parent / "trap.sh"
        self.script.write_text(f"#!/bin/sh\n: > '{self.mark}'\nexit 0\n")
        self.script.chmod(0o755)
        self.git("init", "-q", "-b", "main")
        (root / "a.txt").write_text("first\n")
        self.git("add", ".")
        self.git("commit", "-qm", "first")

    def git(self, *words: str, check: bool = True, **env: str) -> str:
        command = ["git", *IDENTITY, *words]
        process = subprocess.run(
            command, cwd=self.root, env={**os.environ, **env}, capture_output=True, text=True, check=check, timeout=30
        )
        return process.stdout

    def config(self, name: str, value: str) -> None:
        self.git("config", name, value)

    def edit(self) -> None:
        (self.root / "a.txt").write_text(f"edit {os.urandom(4).hex()}\n")

    @property
    def is_sprung(self) -> bool:
        is_sprung = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return is_sprung


@pytest.fixture
def repository(project: Path) -> Repository:
    return Repository(project)


Control = Callable[[], object]


def _set_fsmonitor(repository: Repository) -> Control:
    repository.config("core.fsmonitor", str(repository.script))
    return lambda: repository.git("status")


def _include_fsmonitor(repository: Repository) -> Control:
    (repository.root / ".git" / "more").write_text(f"[core]\n\tfsmonitor = {repository.script}\n")
    repository.config("include.path", "more")
    return lambda: repository.git("status")


def _set_worktree_fsmonitor(repository: Repository) -> Control:
    repository.config("extensions.worktreeConfig", "true")
    repository.git("config", "--worktree", "core.fsmonitor", str(repository.script))
    return lambda: repository.git("status")


def _make_hook_trap(name: str, *words: str) -> Callable[[Repository], Control]:
    def set_trap(repository: Repository) -> Control:
        (repository.root / ".git" / "hooks").mkdir(exist_ok=True)
        (repository.root / ".git" / "hooks" / name).symlink_to(repository.script)
        return lambda: repository.git(*words)

    return set_trap


def _move_hooks(repository: Repository) -> Control:
    (repository.root / "hooks").mkdir()
    (repository.root / "hooks" / "reference-transaction").symlink_to(repository.script)
    repository.config("core.hooksPath", "hooks")
    return lambda: repository.git("update-ref", "refs/other", "HEAD")


def _make_filter_trap(kind: str, where: str) -> Callable[[Repository], Control]:
    def set_trap(repository: Repository) -> Control:
        command = f"sh -c ': > {repository.mark}; cat'" if kind != "process" else str(repository.script)
        repository.config(f"filter.evil.{kind}", command)
        attributes = repository.root / where
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("* filter=evil\n")
        if where == "elsewhere":
            repository.config("core.attributesFile", str(attributes))
        repository.edit()
        if kind == "smudge":
            return lambda: repository.git("checkout", "--", "a.txt")
        return lambda: repository.git("add", "a.txt", check=False)

    return set_trap


def _set_external_diff(repository: Repository) -> Control:
    repository.config("diff.external", str(repository.script))
    repository.edit()
    return lambda: repository.git("diff")


def _set_textconv(repository: Repository) -> Control:
    repository.config("diff.evil.textconv", str(repository.script))
    (repository.root / ".gitattributes").write_text("* diff=evil\n")
    repository.edit()
    return lambda: repository.git("diff")


def _set_aliases(repository: Repository) -> Control:
    for name in ("rev-parse", "fast-import", "cat-file", "ls-tree", "update-ref", "for-each-ref", "ls-files", "other"):
        repository.config(f"alias.{name}", f"!{repository.script}")
    return lambda: repository.git("other")


def _set_signature(repository: Repository) -> Control:
    repository.config("commit.gpgSign", "true")
    repository.config("gpg.program", str(repository.script))
    return lambda: repository.git("commit", "--allow-empty", "-m", "signed", check=False)


def _set_editor(repository: Repository) -> Control:
    repository.config("core.editor", str(repository.script))
    return lambda: repository.git("commit", "--allow-empty", check=False, TERM="xterm")


def _set_promisor(repository: Repository, url: str) -> Control:
    """Let git fetch missing objects."""
    repository.config("core.repositoryFormatVersion", "1")
    repository.config("extensions.partialClone", "evil")
    repository.config("remote.evil.promisor", "true")
    repository.config("remote.evil.url", url)
    return lambda: repository.git("cat-file", "-e", MISSING, check=False)


def _set_ssh_command(repository: Repository) -> Control:
    repository.config("core.sshCommand", str(repository.script))
    return _set_promisor(repository, "ssh://example.invalid/evil")


def _set_external_protocol(repository: Repository) -> Control:
    repository.config("protocol.ext.allow", "always")
    return _set_promisor(repository, f"ext::{repository.script}")


def _set_upload_pack(repository: Repository) -> Control:
    repository.config("remote.evil.uploadpack", str(repository.script))
    return _set_promisor(repository, str(repository.root))


TRAPS = {
    "fsmonitor": _set_fsmonitor,
    "included-fsmonitor": _include_fsmonitor,
    "worktree-fsmonitor": _set_worktree_fsmonitor,
    "reference-transaction": _make_hook_trap("reference-transaction", "update-ref", "refs/other", "HEAD"),
    "post-index-change": _make_hook_trap("post-index-change", "reset", "-q", "--hard"),
    "post-checkout": _make_hook_trap("post-checkout", "checkout", "-q", "--detach"),
    "pre-commit": _make_hook_trap("pre-commit", "commit", "--allow-empty", "-m", "x"),
    "post-commit": _make_hook_trap("post-commit", "commit", "--allow-empty", "-m", "x"),
    "hooks-elsewhere": _move_hooks,
    "clean": _make_filter_trap("clean", ".gitattributes"),
    "smudge": _make_filter_trap("smudge", ".gitattributes"),
    "process": _make_filter_trap("process", ".gitattributes"),
    "clean-of-the-clone": _make_filter_trap("clean", ".git/info/attributes"),
    "clean-of-an-attributes-file": _make_filter_trap("clean", "elsewhere"),
    "external-diff": _set_external_diff,
    "textconv": _set_textconv,
    "alias": _set_aliases,
    "signature": _set_signature,
    "editor": _set_editor,
    "ssh-command": _set_ssh_command,
    "external-protocol": _set_external_protocol,
    "upload-pack": _set_upload_pack,
}


def _use_all_of_git(repository: Repository) -> None:
    """Make every call of git that the package makes."""
    checkpoints = Checkpoints(repository.root, RUN)
    assert checkpoints.unavailable_reason == ""
    before = scan_files(repository.root, ScanScope())
    checkpoints.write(0, before)
    repository.edit()
    (repository.root / "new.txt").write_text("new\n")
    after = scan_files(repository.root, ScanScope(), before)
    checkpoints.write(1, after)
    assert len(checkpoints.list_all()) == 2
    checkpoints.remove_all()


@pytest.mark.parametrize("set_trap", TRAPS.values(), ids=TRAPS)
def test_trap_in_the_repository_is_not_sprung(
    repository: Repository, set_trap: Callable[[Repository], Control]
) -> None:
    control = set_trap(repository)
    repository.is_sprung  # noqa: B018 - setting it may have
    _use_all_of_git(repository)
    assert not repository.is_sprung
    control()
    assert repository.is_sprung, "the trap does not work: it proves nothing"


def test_missing_object_is_not_fetched(repository: Repository) -> None:
    """The private folder has no remote, and calls in the repository forbid fetching."""
    control = _set_ssh_command(repository)
    (repository.root / ".git" / "refs" / "heads" / "main").write_text(f"{MISSING}\n")
    checkpoints = Checkpoints(repository.root, RUN)
    checkpoints.write(0, scan_files(repository.root, ScanScope()))
    assert not repository.is_sprung
    control()
    assert repository.is_sprung


def test_settings_of_the_user_run_nothing(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {repository.script}\n\thooksPath = {home}\n")
    (home / "reference-transaction").symlink_to(repository.script)
    monkeypatch.setenv("HOME", str(home))
    _use_all_of_git(repository)
    assert not repository.is_sprung
    repository.git("status")
    assert repository.is_sprung


def test_environment_variables_of_git_are_ignored(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hook of git that starts pytest sets such variables."""
    other = tmp_path / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    index = (repository.root / ".git" / "index").read_bytes()
    variables = {
        "GIT_DIR": str(other / ".git"),
        "GIT_WORK_TREE": str(other),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_OBJECT_DIRECTORY": str(other / ".git" / "objects"),
        "GIT_EXEC_PATH": str(tmp_path),
        "GIT_TRACE": str(tmp_path / "trace"),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(repository.script),
        "GIT_NAMESPACE": "other",
        "GIT_REPLACE_REF_BASE": "refs/other",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    _use_all_of_git(repository)
    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / "index").exists()
    assert (repository.root / ".git" / "index").read_bytes() == index
    assert not repository.is_sprung
    monkeypatch.delenv("GIT_EXEC_PATH")
    assert repository.git("rev-parse", "--absolute-git-dir").strip() == str(other / ".git")
    assert (tmp_path / "trace").exists()


def test_git_uses_only_our_settings(repository: Repository) -> None:
    repository.config("core.pager", str(repository.script))
    pager = Git.locate(repository.root).query("config", "--get", "core.pager")
    assert pager == "cat"
    assert repository.git("config", "--get", "core.pager").strip() == str(repository.script)
