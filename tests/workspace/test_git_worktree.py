"""A worktree starts with uncommitted changes, and its own changes become a commit on a branch."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.git_worktree import Worktree, compute_folder_diff, copy_changes

Write = Callable[..., Path]
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")


def _run_git(folder: Path, *words: str) -> str:
    process = subprocess.run(["git", *IDENTITY, *words], cwd=folder, capture_output=True, check=True, text=True)
    return process.stdout.strip()


@pytest.fixture
def repository(project: Path, write: Write) -> Path:
    """A repository with a commit, an uncommitted edit, a new file and a deleted one."""
    _run_git(project, "init", "-q", "-b", "main")
    for name in ("a.py", "b.py", "c.py"):
        write(name, "committed\n")
    _run_git(project, "add", ".")
    _run_git(project, "commit", "-qm", "first")
    write("a.py", "edited\n")
    write("new.py", "new\n", 0o755)
    (project / "c.py").unlink()
    (project / "link").symlink_to("a.py")
    return project


@pytest.fixture
def worktree(repository: Path, tmp_path: Path) -> Worktree:
    return Worktree(repository, tmp_path / "tree")


def test_worktree_holds_the_files_with_uncommitted_changes(repository: Path, worktree: Worktree) -> None:
    worktree.create(ScanScope())
    assert worktree.exists
    scope = ScanScope("")
    assert scan_files(worktree.project, scope).digest == scan_files(repository, ScanScope()).digest


def test_only_changes_since_creation_are_committed(repository: Path, worktree: Worktree) -> None:
    worktree.create(ScanScope(), "loop/fix")
    assert worktree.commit_changes("loop/fix", "nothing yet") == ""
    (worktree.project / "b.py").write_text("fixed\n")
    (worktree.project / "added.py").write_text("added\n")
    commit = worktree.commit_changes("loop/fix", "fix it")
    assert _run_git(repository, "rev-parse", "loop/fix") == commit
    assert _run_git(repository, "rev-parse", f"{commit}^") == _run_git(repository, "rev-parse", "HEAD")
    assert _run_git(repository, "show", "--format=%s", "--name-status", commit).split() == [
        "fix", "it", "A", "added.py", "M", "b.py",
    ]  # fmt: skip


def test_removed_worktree_leaves_no_files_and_no_branch(repository: Path, worktree: Worktree) -> None:
    worktree.create(ScanScope(), "loop/fix")
    worktree.remove("loop/fix")
    worktree.remove()
    assert not worktree.exists
    assert [path.name for path in worktree.path.parent.iterdir()] == ["project"]
    assert _run_git(repository, "branch", "--format=%(refname:short)") == "main"


def test_project_in_a_subfolder_is_a_subfolder_of_the_worktree(repository: Path, tmp_path: Path, write: Write) -> None:
    write("packages/app/it.py", "x\n")
    _run_git(repository, "add", "packages")
    _run_git(repository, "commit", "-qm", "second")
    worktree = Worktree(repository / "packages" / "app", tmp_path / "tree")
    worktree.create(ScanScope())
    assert worktree.project.resolve() == tmp_path / "tree" / "packages" / "app"
    assert (worktree.project / "it.py").read_text() == "x\n"


def test_repository_without_a_commit_has_no_worktree(project: Path, tmp_path: Path) -> None:
    _run_git(project, "init", "-q")
    with pytest.raises(GitError, match="the git repository has no commit yet: make one first"):
        Worktree(project, tmp_path / "tree").create(ScanScope())


def test_diff_of_a_copy_can_be_copied_back(repository: Path, worktree: Worktree) -> None:
    worktree.create(ScanScope())
    before = scan_files(worktree.project, ScanScope(""))
    (worktree.project / "a.py").write_text("fixed\n")
    (worktree.project / "b.py").unlink()
    after = scan_files(worktree.project, ScanScope(""), before)
    diff = compute_folder_diff(repository, before, worktree.project, after)
    assert (diff.changes.modified, diff.changes.removed) == (("a.py",), ("b.py",))
    assert (diff.lines_added, diff.lines_removed) == (1, 2)
    copy_changes(worktree.project, after, diff.changes, repository)
    assert (repository / "a.py").read_text() == "fixed\n"
    assert not (repository / "b.py").exists()
