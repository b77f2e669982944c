"""Every iteration is a commit that nobody sees who does not ask for it, in whatever state a repository is."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.workspace import git_repository
from pytest_loop.workspace.checkpoints import Checkpoint, Checkpoints
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree
from pytest_loop.workspace.git import Git, GitError

Write = Callable[..., Path]
RUN = "guide-20260101-120000"
REFS = f"refs/pytest-loop/{RUN}/"
WHO = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "protocol.file.allow=always")


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *WHO, *words], cwd=folder, capture_output=True, check=True)
    return os.fsdecode(done.stdout).removesuffix("\n")


@pytest.fixture
def repository(project: Path, write: Write) -> Path:
    """A repository with a commit, a staged edit, an edit, a stash and a file that git does not know."""
    _git(project, "init", "-q", "-b", "main")
    write("src/a.py", "committed\n")
    write("src/b.py", "committed\n")
    _git(project, "add", ".")
    _git(project, "commit", "-qm", "first")
    write("src/a.py", "stashed\n")
    _git(project, "stash", "-q")
    write("src/a.py", "staged\n")
    _git(project, "add", "src/a.py")
    write("src/a.py", "edited\n")
    write("new.py", "unknown\n")
    return project


def _of_git(root: Path) -> dict[str, str]:
    """All that git keeps, but for objects and our refs."""
    found = {}
    for path in (root / ".git").rglob("*"):
        name = path.relative_to(root / ".git").as_posix()
        if path.is_file() and not name.startswith(("objects/", "refs/pytest-loop/")):
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() + str(path.stat().st_mtime_ns)
    return found


def _files(root: Path, commit: str) -> dict[str, str]:
    names = _git(root, "ls-tree", "-r", "--name-only", "-z", commit).split("\0")
    return {name: _git(root, "show", f"{commit}:{name}") for name in names if name}


def _written(root: Path, number: int = 0) -> tuple[Checkpoints, Checkpoint, FileTree]:
    tree = scan_files(root, ScanScope())
    found = Checkpoints(root, RUN)
    assert found.unavailable_reason == ""
    return found, found.write(number, tree), tree


def test_checkpoint_holds_the_files_as_they_are_and_touches_nothing_else(repository: Path) -> None:
    before = _of_git(repository)
    status = _git(repository, "--no-optional-locks", "status", "--porcelain")
    _, found, _ = _written(repository)
    assert _of_git(repository) == before
    assert _git(repository, "--no-optional-locks", "status", "--porcelain") == status
    assert _git(repository, "rev-parse", f"{REFS}0") == found.commit
    assert _files(repository, found.commit) == {"new.py": "unknown", "src/a.py": "edited", "src/b.py": "committed"}
    assert _git(repository, "rev-parse", f"{found.commit}^") == _git(repository, "rev-parse", "HEAD")
    assert (
        _git(repository, "log", "-1", "--format=%an <%ae> %cn", found.commit)
        == "pytest-loop <pytest-loop@localhost> pytest-loop"
    )
    _git(repository, "fsck", "--strict")


def test_checkpoints_are_a_chain_and_the_next_one_holds_the_changes(repository: Path, write: Write) -> None:
    found, first, before = _written(repository)
    write("src/a.py", "again\n")
    write("tool", "#!/bin/sh\n", 0o755)
    (repository / "src" / "b.py").unlink()
    (repository / "link").symlink_to("src")
    second = found.write(1, scan_files(repository, ScanScope(), before), "the title")
    assert found.list_all() == [first, second]
    assert _git(repository, "log", "--format=%P %s", "-1", second.commit) == f"{first.commit} the title"
    assert _files(repository, second.commit) == {
        "link": "src",
        "new.py": "unknown",
        "src/a.py": "again",
        "tool": "#!/bin/sh",
    }
    modes = _git(repository, "ls-tree", "-r", "--format=%(objectmode) %(path)", second.commit).splitlines()
    assert modes == ["120000 link", "100644 new.py", "100644 src/a.py", "100755 tool"]
    _git(repository, "fsck", "--strict")


def test_another_process_goes_on_with_the_chain(repository: Path, write: Write) -> None:
    _, first, _ = _written(repository)
    (repository / "new.py").unlink()
    found, second, _ = _written(repository, 1)
    assert _git(repository, "rev-parse", f"{second.commit}^") == first.commit
    assert set(_files(repository, second.commit)) == {"src/a.py", "src/b.py"}
    write("new.py", "back\n")
    again = found.write(1, scan_files(repository, ScanScope()))
    assert _git(repository, "rev-parse", f"{REFS}1^") == first.commit
    assert [one.commit for one in found.list_all()] == [first.commit, again.commit]


def test_what_becomes_something_else_is_that_in_the_next_checkpoint(
    repository: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repository, "MAX_SIZE", 100)
    found, _, before = _written(repository)
    for name in ("src/a.py", "new.py"):
        (repository / name).unlink()
    os.mkfifo(repository / "src" / "a.py")
    write("new.py/inner", "x\n")
    write("src/b.py", "x" * 101)
    between = scan_files(repository, ScanScope(), before)
    second = found.write(1, between)
    assert _files(repository, second.commit) == {"new.py/inner": "x"}
    write("other", "x")
    third = found.write(2, scan_files(repository, ScanScope(), before))
    assert _files(repository, third.commit) == {"new.py/inner": "x", "other": "x"}


def test_any_name_is_stored(repository: Path, write: Write, odd_name: bytes) -> None:
    write(odd_name, "one")
    write(b"in " + odd_name + b"/" + odd_name, "one")
    found, first, before = _written(repository)
    write(odd_name, "two")
    shutil.rmtree(repository / os.fsdecode(b"in " + odd_name))
    after = scan_files(repository, ScanScope(), before)
    found.write(1, after)
    assert set(_files(repository, f"{REFS}1")) == {*after.entries}
    assert set(_files(repository, first.commit)) == {*before.entries}


def test_many_contents_are_stored_in_batches(repository: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_repository, "BATCH_FILES", 2)
    for number in range(5):
        write(f"{number}", f"{number}\n")
    found, first, before = _written(repository)
    for number in range(5):
        write(f"{number}", "same\n")
    second = found.write(1, scan_files(repository, ScanScope(), before))
    numbers = "01234"
    assert [_files(repository, first.commit)[number] for number in numbers] == [*numbers]
    assert [_files(repository, second.commit)[number] for number in numbers] == ["same"] * 5


def test_contents_are_stored_as_they_are_whatever_git_would_make_of_them(repository: Path, write: Write) -> None:
    write(".gitattributes", "* text=auto eol=lf ident\n")
    _git(repository, "config", "core.autocrlf", "true")
    write("dos.txt", b"$Id$\r\nline\r\n")
    _, found, _ = _written(repository)
    command = ["git", "cat-file", "blob", f"{found.commit}:dos.txt"]
    assert subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout == b"$Id$\r\nline\r\n"


def test_removing_forgets_the_refs_of_this_run_only(repository: Path) -> None:
    found, _, tree = _written(repository)
    other = Checkpoints(repository, f"{RUN}-2")
    other.write(0, tree)
    found.remove_all()
    assert found.list_all() == []
    assert _git(repository, "for-each-ref", "--format=%(refname)", "refs/pytest-loop").splitlines() == [
        f"{other.refs}0"
    ]
    found.remove_all()


# -- states of a repository


def _no_commits(root: Path) -> Path:
    shutil.rmtree(root / ".git")
    _git(root, "init", "-q")
    return root


def _detached(root: Path) -> Path:
    _git(root, "checkout", "-q", "--detach")
    return root


def _worktree(root: Path) -> Path:
    _git(root, "worktree", "add", "-q", "../linked")
    return root.parent / "linked"


def _shallow(root: Path) -> Path:
    _git(root, "stash", "-q")
    _git(root, "commit", "-q", "--allow-empty", "-m", "second")
    _git(root.parent, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
    return root.parent / "shallow"


def _locked(root: Path) -> Path:
    (root / ".git" / "index.lock").write_text("")
    (root / ".git" / "HEAD.lock").write_text("")
    return root


def _in_the_middle_of_a_merge(root: Path) -> Path:
    _git(root, "checkout", "-qf", "-b", "other")
    (root / "src" / "b.py").write_text("theirs\n")
    _git(root, "commit", "-qam", "theirs")
    _git(root, "checkout", "-q", "main")
    (root / "src" / "b.py").write_text("ours\n")
    _git(root, "commit", "-qam", "ours")
    subprocess.run(["git", *WHO, "merge", "other"], cwd=root, capture_output=True, check=False)
    return root


def _sha256(root: Path) -> Path:
    shutil.rmtree(root / ".git")
    _git(root, "init", "-q", "--object-format=sha256")
    _git(root, "add", ".")
    _git(root, "commit", "-qm", "first")
    return root


def _moved_git_folder(root: Path) -> Path:
    _git(root, "init", "-q", f"--separate-git-dir={root.parent / 'else where'}")
    return root


def _packed(root: Path) -> Path:
    _git(root, "gc", "-q")
    _git(root, "pack-refs", "--all")
    return root


@pytest.mark.parametrize(
    "made",
    [
        _no_commits, _detached, _worktree, _shallow, _locked, _in_the_middle_of_a_merge, _sha256, _moved_git_folder, _packed,
    ],
)  # fmt: skip
def test_repository_may_be_in_any_state(repository: Path, made: Callable[[Path], Path]) -> None:
    root = made(repository)
    before = scan_files(root, ScanScope())
    found = Checkpoints(root, RUN)
    assert found.unavailable_reason == ""
    first = found.write(0, before)
    (root / "src" / "b.py").write_text("worse\n")
    (root / "more.py").write_text("more\n")
    after = scan_files(root, ScanScope(), before)
    found.write(1, after)
    assert _files(root, first.commit).keys() == before.entries.keys()
    assert _files(root, f"{REFS}1").keys() == after.entries.keys()
    assert _files(root, f"{REFS}1")["src/b.py"] == "worse"
    _git(root, "fsck")


def test_project_in_a_folder_of_a_repository_is_stored_at_its_place(repository: Path, write: Write) -> None:
    write('sub "folder"\n/it.py', "x\n")
    root = repository / 'sub "folder"\n'
    found, first, before = _written(root)
    assert _files(repository, first.commit) == {
        "src/a.py": "committed",
        "src/b.py": "committed",
        'sub "folder"\n/it.py': "x",
    }
    (root / "it.py").unlink()
    (root / "new.py").write_text("new\n")
    after = scan_files(root, ScanScope(), before)
    second = found.write(1, after)
    assert set(_files(repository, second.commit)) == {"src/a.py", "src/b.py", 'sub "folder"\n/new.py'}


def test_submodules_are_left_alone(repository: Path, write: Write, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    _git(library, "init", "-q")
    (library / "lib.py").write_text("lib\n")
    _git(library, "add", ".")
    _git(library, "commit", "-qm", "lib")
    _git(repository, "submodule", "--quiet", "add", str(library), "vendor/library")
    found, first, before = _written(repository)
    assert "vendor/library/lib.py" in before.entries
    entry = _git(repository, "ls-tree", first.commit, "vendor/library")
    assert entry.split() == ["160000", "commit", _git(library, "rev-parse", "HEAD"), "vendor/library"]
    write("vendor/library/lib.py", "edited\n")
    write("vendor/library/more.py", "edited\n")
    after = scan_files(repository, ScanScope(), before)
    found.write(1, after)
    assert _git(repository, "ls-tree", f"{REFS}1", "vendor/library") == entry


def test_folder_that_is_made_a_repository_later_is_still_stored(repository: Path, write: Write) -> None:
    found, _, before = _written(repository)
    _git(repository / "src", "init", "-q")
    commit = _git(repository, "rev-parse", "HEAD")
    _git(repository, "rm", "-q", "-r", "-f", "--cached", "src")
    _git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},src")
    write("src/a.py", "hidden\n")
    second = found.write(1, scan_files(repository, ScanScope(), before))
    assert _files(repository, second.commit)["src/a.py"] == "hidden"


def test_refs_that_somebody_moved_do_not_change_the_chain(repository: Path, write: Write) -> None:
    found, first, before = _written(repository)
    _git(repository, "update-ref", "-d", f"{REFS}0")
    write("src/a.py", "again\n")
    second = found.write(1, scan_files(repository, ScanScope(), before))
    assert _git(repository, "rev-parse", f"{second.commit}^") == first.commit


# -- no checkpoints, and why


def test_no_git_means_no_checkpoints(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project))
    assert Checkpoints(project, RUN).unavailable_reason == "git is not installed here"
    with pytest.raises(GitError, match="git is not installed here"):
        Checkpoints(project, RUN).list_all()


def test_no_repository_means_no_checkpoints(project: Path) -> None:
    assert Checkpoints(project, RUN).unavailable_reason == "the project is not in a git work tree"


def test_bare_repository_means_no_checkpoints(project: Path) -> None:
    _git(project, "init", "-q", "--bare")
    assert (
        Checkpoints(project, RUN).unavailable_reason == "the git repository of the project is bare: it has no work tree"
    )


def test_broken_repository_is_named_with_the_words_of_git(repository: Path) -> None:
    (repository / ".git" / "config").write_text("[core\n")
    assert Checkpoints(repository, RUN).unavailable_reason.startswith("git rev-parse failed: fatal: bad config line 1")


def test_missing_project_is_named(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "none", RUN).unavailable_reason.endswith("none: No such file or directory")


def test_git_that_waits_is_ended_at_the_deadline(repository: Path) -> None:
    os.mkfifo(repository / "pipe")
    _git(repository, "config", "include.path", str(repository / "pipe"))
    assert (
        Checkpoints(repository, RUN, deadline=0.5).unavailable_reason == "git rev-parse did not end within 0.5 seconds"
    )


@pytest.mark.parametrize("run_id", ["", "../x", "a b", "-x", "a..b", "x.lock", ".x", "x.", "a/b", "a\n", "x~1", "ü"])
def test_name_of_a_run_that_is_no_part_of_a_ref_is_an_error(project: Path, run_id: str) -> None:
    with pytest.raises(StateError, match="expected letters, digits, dots, hyphens and underscores for a run"):
        Checkpoints(project, run_id)


@pytest.mark.parametrize("run_id", ["a", "guide-20260101-120000", "v1.2_x"])
def test_name_of_a_run_is_part_of_a_ref(project: Path, run_id: str) -> None:
    assert (
        subprocess.run(["git", "check-ref-format", f"{Checkpoints(project, run_id).refs}0"], check=False).returncode
        == 0
    )


def test_interrupted_git_leaves_no_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupted(self: subprocess.Popen[bytes], *_: object) -> tuple[bytes, bytes]:
        started.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Git.locate(project).run("cat-file", "--batch")
    assert started[0].poll() is not None
