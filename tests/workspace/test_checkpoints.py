"""Every iteration is a commit on a private ref, in whatever state the repository is."""

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
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.file_scan import ScanScope, scan_files
from pytest_loop.workspace.file_tree import FileTree
from pytest_loop.workspace.git import Git, GitError

Write = Callable[..., Path]
RUN = "guide-20260101-120000"
REFS = f"refs/pytest-loop/{RUN}/"
IDENTITY = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always")


def _run_git(folder: Path, *words: str) -> str:
    process = subprocess.run(["git", *IDENTITY, *words], cwd=folder, capture_output=True, check=True)
    return os.fsdecode(process.stdout).removesuffix("\n")


@pytest.fixture
def repository(project: Path, write: Write) -> Path:
    """A repository with a commit, a staged edit, an edit, a stash and a file that git does not know."""
    _run_git(project, "init", "-q", "-b", "main")
    write("src/a.py", "committed\n")
    write("src/b.py", "committed\n")
    _run_git(project, "add", ".")
    _run_git(project, "commit", "-qm", "first")
    write("src/a.py", "stashed\n")
    _run_git(project, "stash", "-q")
    write("src/a.py", "staged\n")
    _run_git(project, "add", "src/a.py")
    write("src/a.py", "edited\n")
    write("new.py", "unknown\n")
    return project


def _hash_git_files(root: Path) -> dict[str, str]:
    """Hash the files of git except objects and our refs."""
    hashes = {}
    for path in (root / ".git").rglob("*"):
        name = path.relative_to(root / ".git").as_posix()
        if path.is_file() and not name.startswith(("objects/", "refs/pytest-loop/")):
            hashes[name] = hashlib.sha256(path.read_bytes()).hexdigest() + str(path.stat().st_mtime_ns)
    return hashes


def _read_commit(root: Path, commit: str) -> dict[str, str]:
    names = _run_git(root, "ls-tree", "-r", "--name-only", "-z", commit).split("\0")
    return {name: _run_git(root, "show", f"{commit}:{name}") for name in names if name}


def _write_checkpoint(root: Path, number: int = 0) -> tuple[Checkpoints, str, FileTree]:
    tree = scan_files(root, ScanScope())
    checkpoints = Checkpoints(root, RUN)
    assert checkpoints.unavailable_reason == ""
    return checkpoints, checkpoints.write(number, tree), tree


def test_checkpoint_holds_the_current_files_and_touches_nothing_else(repository: Path) -> None:
    before = _hash_git_files(repository)
    status = _run_git(repository, "--no-optional-locks", "status", "--porcelain")
    _, commit, _ = _write_checkpoint(repository)
    assert _hash_git_files(repository) == before
    assert _run_git(repository, "--no-optional-locks", "status", "--porcelain") == status
    assert _run_git(repository, "rev-parse", f"{REFS}0") == commit
    assert _read_commit(repository, commit) == {
        "new.py": "unknown",
        "src/a.py": "edited",
        "src/b.py": "committed",
    }
    assert _run_git(repository, "rev-parse", f"{commit}^") == _run_git(repository, "rev-parse", "HEAD")
    assert (
        _run_git(repository, "log", "-1", "--format=%an <%ae> %cn", commit)
        == "pytest-loop <pytest-loop@localhost> pytest-loop"
    )
    _run_git(repository, "fsck", "--strict")


def test_checkpoints_are_a_chain_and_the_next_one_holds_the_changes(repository: Path, write: Write) -> None:
    checkpoints, first, before = _write_checkpoint(repository)
    write("src/a.py", "again\n")
    write("tool", "#!/bin/sh\n", 0o755)
    (repository / "src" / "b.py").unlink()
    (repository / "link").symlink_to("src")
    second = checkpoints.write(1, scan_files(repository, ScanScope(), before), "the title")
    assert checkpoints.list_all() == {0: first, 1: second}
    assert _run_git(repository, "log", "--format=%P %s", "-1", second) == f"{first} the title"
    assert _read_commit(repository, second) == {
        "link": "src",
        "new.py": "unknown",
        "src/a.py": "again",
        "tool": "#!/bin/sh",
    }
    modes = _run_git(repository, "ls-tree", "-r", "--format=%(objectmode) %(path)", second).splitlines()
    assert modes == ["120000 link", "100644 new.py", "100644 src/a.py", "100755 tool"]
    _run_git(repository, "fsck", "--strict")


def test_another_process_continues_the_chain(repository: Path, write: Write) -> None:
    _, first, _ = _write_checkpoint(repository)
    (repository / "new.py").unlink()
    checkpoints, second, _ = _write_checkpoint(repository, 1)
    assert _run_git(repository, "rev-parse", f"{second}^") == first
    assert set(_read_commit(repository, second)) == {"src/a.py", "src/b.py"}
    write("new.py", "back\n")
    again = checkpoints.write(1, scan_files(repository, ScanScope()))
    assert _run_git(repository, "rev-parse", f"{REFS}1^") == first
    assert checkpoints.list_all() == {0: first, 1: again}


def test_path_that_changes_its_kind_has_the_new_kind_in_the_next_checkpoint(
    repository: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(git_repository, "MAX_SIZE", 100)
    checkpoints, _, before = _write_checkpoint(repository)
    for name in ("src/a.py", "new.py"):
        (repository / name).unlink()
    os.mkfifo(repository / "src" / "a.py")
    write("new.py/inner", "x\n")
    write("src/b.py", "x" * 101)
    between = scan_files(repository, ScanScope(), before)
    second = checkpoints.write(1, between)
    assert _read_commit(repository, second) == {"new.py/inner": "x"}
    write("other", "x")
    third = checkpoints.write(2, scan_files(repository, ScanScope(), before))
    assert _read_commit(repository, third) == {"new.py/inner": "x", "other": "x"}


def test_any_name_is_stored(repository: Path, write: Write, odd_name: bytes) -> None:
    write(odd_name, "one")
    write(b"in " + odd_name + b"/" + odd_name, "one")
    checkpoints, first, before = _write_checkpoint(repository)
    write(odd_name, "two")
    shutil.rmtree(repository / os.fsdecode(b"in " + odd_name))
    after = scan_files(repository, ScanScope(), before)
    checkpoints.write(1, after)
    assert set(_read_commit(repository, f"{REFS}1")) == {*after.entries}
    assert set(_read_commit(repository, first)) == {*before.entries}


def test_many_contents_are_stored_in_batches(repository: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(git_repository, "BATCH_FILES", 2)
    for number in range(5):
        write(f"{number}", f"{number}\n")
    checkpoints, first, before = _write_checkpoint(repository)
    for number in range(5):
        write(f"{number}", "same\n")
    second = checkpoints.write(1, scan_files(repository, ScanScope(), before))
    numbers = "01234"
    assert [_read_commit(repository, first)[number] for number in numbers] == [*numbers]
    assert [_read_commit(repository, second)[number] for number in numbers] == ["same"] * 5


def test_contents_are_stored_without_git_filters(repository: Path, write: Write) -> None:
    write(".gitattributes", "* text=auto eol=lf ident\n")
    _run_git(repository, "config", "core.autocrlf", "true")
    write("dos.txt", b"$Id$\r\nline\r\n")
    _, commit, _ = _write_checkpoint(repository)
    command = ["git", "cat-file", "blob", f"{commit}:dos.txt"]
    assert subprocess.run(command, cwd=repository, capture_output=True, check=True).stdout == b"$Id$\r\nline\r\n"


def test_removing_deletes_only_the_refs_of_this_run(repository: Path) -> None:
    checkpoints, _, tree = _write_checkpoint(repository)
    other = Checkpoints(repository, f"{RUN}-2")
    other.write(0, tree)
    checkpoints.remove_all()
    assert checkpoints.list_all() == {}
    assert _run_git(repository, "for-each-ref", "--format=%(refname)", "refs/pytest-loop").splitlines() == [
        f"{other.refs}0"
    ]
    checkpoints.remove_all()


def test_first_checkpoint_can_be_written_again(repository: Path, write: Write) -> None:
    checkpoints, first, before = _write_checkpoint(repository)
    write("src/a.py", "again\n")
    again = checkpoints.write(0, scan_files(repository, ScanScope(), before))
    assert checkpoints.list_all() == {0: again}
    assert again != first
    assert _run_git(repository, "rev-parse", f"{again}^") == _run_git(repository, "rev-parse", "HEAD")


# -- states of a repository


def _remove_commits(root: Path) -> Path:
    shutil.rmtree(root / ".git")
    _run_git(root, "init", "-q")
    return root


def _detach_head(root: Path) -> Path:
    _run_git(root, "checkout", "-q", "--detach")
    return root


def _add_worktree(root: Path) -> Path:
    _run_git(root, "worktree", "add", "-q", "../linked")
    return root.parent / "linked"


def _clone_shallowly(root: Path) -> Path:
    _run_git(root, "stash", "-q")
    _run_git(root, "commit", "-q", "--allow-empty", "-m", "second")
    _run_git(root.parent, "clone", "-q", "--depth=1", f"file://{root}", "shallow")
    return root.parent / "shallow"


def _lock_index(root: Path) -> Path:
    (root / ".git" / "index.lock").write_text("")
    (root / ".git" / "HEAD.lock").write_text("")
    return root


def _start_merge(root: Path) -> Path:
    _run_git(root, "checkout", "-qf", "-b", "other")
    (root / "src" / "b.py").write_text("theirs\n")
    _run_git(root, "commit", "-qam", "theirs")
    _run_git(root, "checkout", "-q", "main")
    (root / "src" / "b.py").write_text("ours\n")
    _run_git(root, "commit", "-qam", "ours")
    subprocess.run(["git", *IDENTITY, "merge", "other"], cwd=root, capture_output=True, check=False)
    return root


def _use_sha256(root: Path) -> Path:
    shutil.rmtree(root / ".git")
    _run_git(root, "init", "-q", "--object-format=sha256")
    _run_git(root, "add", ".")
    _run_git(root, "commit", "-qm", "first")
    return root


def _move_git_folder(root: Path) -> Path:
    _run_git(root, "init", "-q", f"--separate-git-dir={root.parent / 'else where'}")
    return root


def _pack_objects(root: Path) -> Path:
    _run_git(root, "gc", "-q")
    _run_git(root, "pack-refs", "--all")
    return root


@pytest.mark.parametrize(
    "prepare",
    [
        _remove_commits, _detach_head, _add_worktree, _clone_shallowly, _lock_index, _start_merge, _use_sha256, _move_git_folder, _pack_objects,
    ],
)  # fmt: skip
def test_repository_may_be_in_any_state(repository: Path, prepare: Callable[[Path], Path]) -> None:
    root = prepare(repository)
    before = scan_files(root, ScanScope())
    checkpoints = Checkpoints(root, RUN)
    assert checkpoints.unavailable_reason == ""
    first = checkpoints.write(0, before)
    (root / "src" / "b.py").write_text("worse\n")
    (root / "more.py").write_text("more\n")
    after = scan_files(root, ScanScope(), before)
    checkpoints.write(1, after)
    assert _read_commit(root, first).keys() == before.entries.keys()
    assert _read_commit(root, f"{REFS}1").keys() == after.entries.keys()
    assert _read_commit(root, f"{REFS}1")["src/b.py"] == "worse"
    _run_git(root, "fsck")


def test_project_in_a_subfolder_is_stored_in_that_subfolder(repository: Path, write: Write) -> None:
    write('sub "folder"\n/it.py', "x\n")
    root = repository / 'sub "folder"\n'
    checkpoints, first, before = _write_checkpoint(root)
    assert _read_commit(repository, first) == {
        "src/a.py": "committed",
        "src/b.py": "committed",
        'sub "folder"\n/it.py': "x",
    }
    (root / "it.py").unlink()
    (root / "new.py").write_text("new\n")
    after = scan_files(root, ScanScope(), before)
    second = checkpoints.write(1, after)
    assert set(_read_commit(repository, second)) == {"src/a.py", "src/b.py", 'sub "folder"\n/new.py'}


def test_submodules_stay_unchanged(repository: Path, write: Write, tmp_path: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    _run_git(library, "init", "-q")
    (library / "lib.py").write_text("lib\n")
    _run_git(library, "add", ".")
    _run_git(library, "commit", "-qm", "lib")
    _run_git(repository, "submodule", "--quiet", "add", str(library), "vendor/library")
    checkpoints, first, before = _write_checkpoint(repository)
    assert "vendor/library/lib.py" in before.entries
    entry = _run_git(repository, "ls-tree", first, "vendor/library")
    assert entry.split() == ["160000", "commit", _run_git(library, "rev-parse", "HEAD"), "vendor/library"]
    write("vendor/library/lib.py", "edited\n")
    write("vendor/library/more.py", "edited\n")
    after = scan_files(repository, ScanScope(), before)
    checkpoints.write(1, after)
    assert _run_git(repository, "ls-tree", f"{REFS}1", "vendor/library") == entry


def test_folder_that_becomes_a_repository_later_is_still_stored(repository: Path, write: Write) -> None:
    checkpoints, _, before = _write_checkpoint(repository)
    _run_git(repository / "src", "init", "-q")
    commit = _run_git(repository, "rev-parse", "HEAD")
    _run_git(repository, "rm", "-q", "-r", "-f", "--cached", "src")
    _run_git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},src")
    write("src/a.py", "hidden\n")
    second = checkpoints.write(1, scan_files(repository, ScanScope(), before))
    assert _read_commit(repository, second)["src/a.py"] == "hidden"


def test_deleted_refs_do_not_change_the_chain(repository: Path, write: Write) -> None:
    checkpoints, first, before = _write_checkpoint(repository)
    _run_git(repository, "update-ref", "-d", f"{REFS}0")
    write("src/a.py", "again\n")
    second = checkpoints.write(1, scan_files(repository, ScanScope(), before))
    assert _run_git(repository, "rev-parse", f"{second}^") == first


# -- no checkpoints, and why


def test_no_git_means_no_checkpoints(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(project))
    assert Checkpoints(project, RUN).unavailable_reason == "git is not installed here"
    with pytest.raises(GitError, match="git is not installed here"):
        Checkpoints(project, RUN).list_all()


def test_no_repository_means_no_checkpoints(project: Path) -> None:
    assert Checkpoints(project, RUN).unavailable_reason == "the project is not in a git work tree"


def test_bare_repository_means_no_checkpoints(project: Path) -> None:
    _run_git(project, "init", "-q", "--bare")
    assert (
        Checkpoints(project, RUN).unavailable_reason == "the git repository of the project is bare: it has no work tree"
    )


def test_broken_repository_gives_the_message_of_git(repository: Path) -> None:
    (repository / ".git" / "config").write_text("[core\n")
    assert Checkpoints(repository, RUN).unavailable_reason.startswith("git rev-parse failed: fatal: bad config line 1")


def test_missing_project_is_in_the_message(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "none", RUN).unavailable_reason.endswith("none: No such file or directory")


def test_git_that_hangs_is_killed_at_the_deadline(repository: Path) -> None:
    os.mkfifo(repository / "pipe")
    _run_git(repository, "config", "include.path", str(repository / "pipe"))
    assert (
        Checkpoints(repository, RUN, timeout=0.5).unavailable_reason == "git rev-parse did not end within 0.5 seconds"
    )


@pytest.mark.parametrize("run_id", ["", "../x", "a b", "-x", "a..b", "x.lock", ".x", "x.", "a/b", "a\n", "x~1", "ü"])
def test_run_id_that_cannot_be_part_of_a_ref_is_an_error(project: Path, run_id: str) -> None:
    with pytest.raises(StateError, match="expected letters, digits, dots, hyphens and underscores for a run"):
        Checkpoints(project, run_id)


@pytest.mark.parametrize("run_id", ["a", "guide-20260101-120000", "v1.2_x"])
def test_run_id_is_part_of_a_ref(project: Path, run_id: str) -> None:
    assert (
        subprocess.run(["git", "check-ref-format", f"{Checkpoints(project, run_id).refs}0"], check=False).returncode
        == 0
    )


def test_interrupted_git_leaves_no_process(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def interrupt(self: subprocess.Popen[bytes], *_: object) -> tuple[bytes, bytes]:
        started.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "communicate", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Git.locate(project).run("cat-file", "--batch")
    assert started[0].poll() is not None
