"""Nothing that an agent can write into a repository, or somebody into our environment, runs when we call git.

Each trap has its honest control: git as people call it walks into it.
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
WHO = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org")
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
        command = ["git", *WHO, *words]
        done = subprocess.run(
            command, cwd=self.root, env={**os.environ, **env}, capture_output=True, text=True, check=check, timeout=30
        )
        return done.stdout

    def config(self, name: str, value: str) -> None:
        self.git("config", name, value)

    def edit(self) -> None:
        (self.root / "a.txt").write_text(f"edit {os.urandom(4).hex()}\n")

    @property
    def is_sprung(self) -> bool:
        found = self.mark.exists()
        self.mark.unlink(missing_ok=True)
        return found


@pytest.fixture
def repository(project: Path) -> Repository:
    return Repository(project)


Control = Callable[[], object]


def _fsmonitor(one: Repository) -> Control:
    one.config("core.fsmonitor", str(one.script))
    return lambda: one.git("status")


def _included_fsmonitor(one: Repository) -> Control:
    (one.root / ".git" / "more").write_text(f"[core]\n\tfsmonitor = {one.script}\n")
    one.config("include.path", "more")
    return lambda: one.git("status")


def _worktree_fsmonitor(one: Repository) -> Control:
    one.config("extensions.worktreeConfig", "true")
    one.git("config", "--worktree", "core.fsmonitor", str(one.script))
    return lambda: one.git("status")


def _hook(name: str, *words: str) -> Callable[[Repository], Control]:
    def trap(one: Repository) -> Control:
        (one.root / ".git" / "hooks").mkdir(exist_ok=True)
        (one.root / ".git" / "hooks" / name).symlink_to(one.script)
        return lambda: one.git(*words)

    return trap


def _hooks_elsewhere(one: Repository) -> Control:
    (one.root / "hooks").mkdir()
    (one.root / "hooks" / "reference-transaction").symlink_to(one.script)
    one.config("core.hooksPath", "hooks")
    return lambda: one.git("update-ref", "refs/other", "HEAD")


def _filter(kind: str, where: str) -> Callable[[Repository], Control]:
    def trap(one: Repository) -> Control:
        command = f"sh -c ': > {one.mark}; cat'" if kind != "process" else str(one.script)
        one.config(f"filter.evil.{kind}", command)
        attributes = one.root / where
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("* filter=evil\n")
        if where == "elsewhere":
            one.config("core.attributesFile", str(attributes))
        one.edit()
        if kind == "smudge":
            return lambda: one.git("checkout", "--", "a.txt")
        return lambda: one.git("add", "a.txt", check=False)

    return trap


def _external_diff(one: Repository) -> Control:
    one.config("diff.external", str(one.script))
    one.edit()
    return lambda: one.git("diff")


def _textconv(one: Repository) -> Control:
    one.config("diff.evil.textconv", str(one.script))
    (one.root / ".gitattributes").write_text("* diff=evil\n")
    one.edit()
    return lambda: one.git("diff")


def _alias(one: Repository) -> Control:
    for name in ("rev-parse", "fast-import", "cat-file", "ls-tree", "update-ref", "for-each-ref", "ls-files", "other"):
        one.config(f"alias.{name}", f"!{one.script}")
    return lambda: one.git("other")


def _signature(one: Repository) -> Control:
    one.config("commit.gpgSign", "true")
    one.config("gpg.program", str(one.script))
    return lambda: one.git("commit", "--allow-empty", "-m", "signed", check=False)


def _editor(one: Repository) -> Control:
    one.config("core.editor", str(one.script))
    return lambda: one.git("commit", "--allow-empty", check=False, TERM="xterm")


def _promised(one: Repository, url: str) -> Control:
    """Objects that are missing would be fetched."""
    one.config("core.repositoryFormatVersion", "1")
    one.config("extensions.partialClone", "evil")
    one.config("remote.evil.promisor", "true")
    one.config("remote.evil.url", url)
    return lambda: one.git("cat-file", "-e", MISSING, check=False)


def _ssh_command(one: Repository) -> Control:
    one.config("core.sshCommand", str(one.script))
    return _promised(one, "ssh://example.invalid/evil")


def _external_protocol(one: Repository) -> Control:
    one.config("protocol.ext.allow", "always")
    return _promised(one, f"ext::{one.script}")


def _upload_pack(one: Repository) -> Control:
    one.config("remote.evil.uploadpack", str(one.script))
    return _promised(one, str(one.root))


TRAPS = {
    "fsmonitor": _fsmonitor,
    "included-fsmonitor": _included_fsmonitor,
    "worktree-fsmonitor": _worktree_fsmonitor,
    "reference-transaction": _hook("reference-transaction", "update-ref", "refs/other", "HEAD"),
    "post-index-change": _hook("post-index-change", "reset", "-q", "--hard"),
    "post-checkout": _hook("post-checkout", "checkout", "-q", "--detach"),
    "pre-commit": _hook("pre-commit", "commit", "--allow-empty", "-m", "x"),
    "post-commit": _hook("post-commit", "commit", "--allow-empty", "-m", "x"),
    "hooks-elsewhere": _hooks_elsewhere,
    "clean": _filter("clean", ".gitattributes"),
    "smudge": _filter("smudge", ".gitattributes"),
    "process": _filter("process", ".gitattributes"),
    "clean-of-the-clone": _filter("clean", ".git/info/attributes"),
    "clean-of-an-attributes-file": _filter("clean", "elsewhere"),
    "external-diff": _external_diff,
    "textconv": _textconv,
    "alias": _alias,
    "signature": _signature,
    "editor": _editor,
    "ssh-command": _ssh_command,
    "external-protocol": _external_protocol,
    "upload-pack": _upload_pack,
}


def _everything(one: Repository) -> None:
    """All that is ever asked of git."""
    found = Checkpoints(one.root, RUN)
    assert found.unavailable_reason == ""
    before = scan_files(one.root, ScanScope())
    found.write(0, before)
    one.edit()
    (one.root / "new.txt").write_text("new\n")
    after = scan_files(one.root, ScanScope(), before)
    found.write(1, after)
    assert len(found.list_all()) == 2
    found.remove_all()


@pytest.mark.parametrize("trap", TRAPS.values(), ids=TRAPS)
def test_trap_in_the_repository_is_not_sprung_by_us(
    repository: Repository, trap: Callable[[Repository], Control]
) -> None:
    control = trap(repository)
    repository.is_sprung  # noqa: B018 - setting it may have
    _everything(repository)
    assert not repository.is_sprung
    control()
    assert repository.is_sprung, "the trap does not work: it proves nothing"


def test_missing_object_is_not_fetched_even_where_git_would(repository: Repository) -> None:
    """The folder apart knows no remote; the calls in the repository itself are told not to fetch."""
    control = _ssh_command(repository)
    (repository.root / ".git" / "refs" / "heads" / "main").write_text(f"{MISSING}\n")
    found = Checkpoints(repository.root, RUN)
    found.write(0, scan_files(repository.root, ScanScope()))
    assert not repository.is_sprung
    control()
    assert repository.is_sprung


def test_settings_of_the_person_do_not_run_either(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".config" / "git").mkdir(parents=True)
    (home / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {repository.script}\n\thooksPath = {home}\n")
    (home / "reference-transaction").symlink_to(repository.script)
    monkeypatch.setenv("HOME", str(home))
    _everything(repository)
    assert not repository.is_sprung
    repository.git("status")
    assert repository.is_sprung


def test_variables_of_the_environment_lead_nowhere(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As they are set where pytest is started by a hook of git."""
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
    _everything(repository)
    assert not (tmp_path / "trace").exists()
    assert not (tmp_path / "index").exists()
    assert (repository.root / ".git" / "index").read_bytes() == index
    assert not repository.is_sprung
    monkeypatch.delenv("GIT_EXEC_PATH")
    assert repository.git("rev-parse", "--absolute-git-dir").strip() == str(other / ".git")
    assert (tmp_path / "trace").exists()


def test_git_hears_no_settings_but_ours(repository: Repository) -> None:
    repository.config("core.pager", str(repository.script))
    said = Git.locate(repository.root).query("config", "--get", "core.pager")
    assert said == "cat"
    assert repository.git("config", "--get", "core.pager").strip() == str(repository.script)
