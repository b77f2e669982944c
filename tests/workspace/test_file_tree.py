"""A look finds every file by its content, and nobody can talk it out of one."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.workspace.file_scan import ScanScope, read_entry, scan_files
from pytest_loop.workspace.file_tree import FileChanges, FileEntry, FileKind, FileTree, compare_trees
from pytest_loop.workspace.path_patterns import PathPatterns

Write = Callable[..., Path]
SCOPE = ScanScope()


def _paths(root: Path, scope: ScanScope = SCOPE, before: FileTree | None = None) -> list[str]:
    return sorted(scan_files(root, scope, before).entries)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_file_is_its_content_and_the_right_to_run_it(project: Path, write: Write) -> None:
    write("a/b.py", "x = 1\n", 0o640)
    write("run", b"", 0o755)
    assert scan_files(project, SCOPE).entries == {
        "a/b.py": FileEntry(FileKind.FILE, _sha(b"x = 1\n")),
        "run": FileEntry(FileKind.FILE, _sha(b""), is_executable=True),
    }
    found = scan_files(project, SCOPE).entries["a/b.py"]
    assert (found.mode, found.size) == (0o640, 6)


def test_any_name_is_found_and_survives_being_saved(project: Path, write: Write, odd_name: bytes) -> None:
    write(odd_name)
    write(b"folder " + odd_name + b"/inside")
    tree = scan_files(project, SCOPE)
    assert set(tree.entries) == {os.fsdecode(odd_name), os.fsdecode(b"folder " + odd_name + b"/inside")}
    assert FileTree.from_json(tree.to_json()) == tree
    assert FileTree.from_json(tree.to_json()).digest == tree.digest


def test_links_are_not_followed(project: Path, write: Write, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "loop").symlink_to(".")
    (project / "dead").symlink_to(b"nowhere \xff".decode("utf-8", "surrogateescape"))
    entries = scan_files(project, SCOPE).entries
    assert {path: one.kind for path, one in entries.items()} == dict.fromkeys(("out", "loop", "dead"), FileKind.LINK)
    assert entries["dead"].digest == _sha(b"nowhere \xff")


def test_pipe_and_socket_make_nobody_wait(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(project / "pipe")
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("socket")
    assert scan_files(project, SCOPE).entries == {
        "pipe": FileEntry(FileKind.OTHER),
        "socket": FileEntry(FileKind.OTHER),
    }


@pytest.mark.parametrize(
    "folder",
    [".git", ".loop", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".tox", ".nox", "x.egg-info"],
)  # fmt: skip
def test_what_tools_leave_behind_is_left_out(project: Path, write: Write, folder: str) -> None:
    write(f"{folder}/file")
    write("kept")
    assert _paths(project) == ["kept"]


def test_only_the_configured_folder_of_runs_is_left_out(project: Path, write: Write) -> None:
    write(".ai-factory/evolution/guide/run.json")
    write(".ai-factory/RULES.md")
    write("deep/.loop/file")
    assert _paths(project, ScanScope(".ai-factory/evolution")) == [".ai-factory/RULES.md", "deep/.loop/file"]
    assert ".ai-factory/evolution/guide/run.json" in _paths(project)


def test_git_of_a_submodule_is_left_out_and_its_files_are_not(project: Path, write: Write) -> None:
    write("sub/.git", "gitdir: ../.git/modules/sub")
    write("sub/a.py")
    assert _paths(project) == ["sub/a.py"]


def test_virtual_environment_is_left_out_and_named(project: Path, write: Write) -> None:
    write("env/pyvenv.cfg")
    write("env/lib/site.py")
    tree = scan_files(project, SCOPE)
    assert not tree.entries
    assert tree.environments == {"env"}


def test_pyvenv_cfg_hides_no_folder_that_was_seen_before(project: Path, write: Write) -> None:
    write("src/a.py")
    before = scan_files(project, SCOPE)
    write("src/pyvenv.cfg")
    write("src/evil.py")
    write("new/pyvenv.cfg")
    after = scan_files(project, SCOPE, before)
    assert compare_trees(before, after) == FileChanges(added=("src/evil.py", "src/pyvenv.cfg"))
    assert after.environments == {"new"}


def test_environment_stays_left_out_without_its_pyvenv_cfg(project: Path, write: Write) -> None:
    write("env/pyvenv.cfg")
    write("env/lib/site.py")
    before = scan_files(project, SCOPE)
    (project / "env" / "pyvenv.cfg").unlink()
    assert compare_trees(before, scan_files(project, SCOPE, before)) == FileChanges()


def test_ignored_is_what_git_ignores(project: Path, write: Write) -> None:
    _git(project, "init", "-q")
    write(".gitignore", "\ufeff*.log\r\n!keep.log\r\nbuild/\n/top\n# note\n\n[\n!\n" + "docs/*\n!docs/a\n")
    write("sub/.gitignore", "!b.log\n*.tmp\n")
    write(".git/info/exclude", "private\n")
    for name in ("a.log", "keep.log", "sub/b.log", "sub/c.log", "sub/d.tmp", "d.tmp", "build/x", "deep/build/x", "top",
                 "deep/top", "private", "docs/a/b", "docs/c", "sub/build"):  # fmt: skip
        write(name)
    assert _paths(project) == _known_to_git(project)
    assert "sub/b.log" in _paths(project)


def _git(folder: Path, *words: str) -> bytes:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout


def _known_to_git(folder: Path) -> list[str]:
    names = _git(folder, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")[:-1]
    return sorted(os.fsdecode(one) for one in names)


def test_lines_above_the_project_count_as_far_as_its_repository_reaches(
    project: Path, write: Write, tmp_path: Path
) -> None:
    _git(project, "init", "-q")
    (tmp_path / ".gitignore").write_text("*.py\n")
    write(".gitignore", "*.log\n/packages/app/out\n/out2\n!keep.log\n")
    write(".git/info/exclude", "private\n")
    write("packages/.gitignore", "*.tmp\napp/gone\n!b.log\n")
    write("packages/app/.gitignore", "!c.tmp\n")
    names = ["a.py", "a.log", "keep.log", "b.log", "out/x", "out2", "gone/x", "d.tmp", "c.tmp", "private", "deep/a.log"]
    for name in names:
        write(f"packages/app/{name}")
    root = project / "packages" / "app"
    assert _paths(root) == _known_to_git(root)
    assert _paths(root) == [".gitignore", "a.py", "b.log", "c.tmp", "keep.log", "out2"]
    before = scan_files(root, SCOPE)
    write("packages/.gitignore", "*\n")
    assert FileTree.from_json(before.to_json()) == before
    assert scan_files(root, SCOPE, before) == before


def test_project_that_its_repository_ignores_is_looked_at_nevertheless(project: Path, write: Write) -> None:
    _git(project, "init", "-q")
    write(".gitignore", "scratch/\n")
    write("scratch/app/a.py")
    assert _paths(project / "scratch" / "app") == ["a.py"]


def test_linked_work_tree_has_the_lines_of_its_repository(project: Path, write: Write, tmp_path: Path) -> None:
    _git(project, "init", "-q")
    _git(project, "commit", "-q", "--allow-empty", "-m", "x")
    _git(project, "worktree", "add", "-q", "../linked")
    write(".git/info/exclude", "private\n")
    for name in ("private", "public"):
        (tmp_path / "linked" / name).write_text("x")
    assert _paths(tmp_path / "linked") == _known_to_git(tmp_path / "linked") == ["public"]


def test_sealed_files_are_found_where_git_ignores_them(project: Path, write: Write) -> None:
    write(".gitignore", "out/\n*.json\n")
    write("out/deep/conftest.py")
    write("out/deep/other.py")
    write("golden.json")
    scope = ScanScope(sealed=PathPatterns(["conftest.py", "golden.json"]))
    assert _paths(project, scope) == [".gitignore", "golden.json", "out/deep/conftest.py"]


def test_line_in_gitignore_hides_nothing_once_the_run_has_begun(project: Path, write: Write) -> None:
    write("src/a.py", "honest")
    write(".gitignore", "*.log\n")
    before = scan_files(project, SCOPE)
    write(".gitignore", "*\n")
    write("src/.gitignore", "*\n")
    write("src/a.py", "cheat!")
    write("b.log")
    after = scan_files(project, SCOPE, before)
    assert compare_trees(before, after) == FileChanges(added=("src/.gitignore",), modified=(".gitignore", "src/a.py"))
    assert after.ignored == before.ignored


def test_edit_that_git_was_told_not_to_see_is_seen(project: Path, write: Write) -> None:
    write("a.py", "honest")
    write("b.py", "honest")
    run = ["git", "-c", "user.name=x", "-c", "user.email=x"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*run, *words], cwd=project, check=True)
    before = scan_files(project, SCOPE)
    subprocess.run(["git", "update-index", "--assume-unchanged", "a.py"], cwd=project, check=True)
    subprocess.run(["git", "update-index", "--skip-worktree", "b.py"], cwd=project, check=True)
    write("a.py", "cheat!")
    write("b.py", "cheat!")
    status = subprocess.run(["git", "status", "--porcelain"], cwd=project, check=True, capture_output=True)
    assert status.stdout == b""
    assert compare_trees(before, scan_files(project, SCOPE, before)).modified == ("a.py", "b.py")


def test_content_is_read_even_where_size_and_times_are_put_back(project: Path, write: Write) -> None:
    path = write("a.py", "honest")
    found = path.stat()
    before = scan_files(project, SCOPE)
    path.write_text("cheat!")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    assert compare_trees(before, scan_files(project, SCOPE, before)).modified == ("a.py",)
    assert compare_trees(before, scan_files(project, SCOPE, before, trust_stat=True)).modified == ("a.py",)


def test_trusting_look_reads_an_old_file_only_once(
    project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("a.py", "honest")
    assert scan_files(project, SCOPE).entries["a.py"].stamp is None, "it is too young to be trusted"
    later = time.time_ns() + 10_000_000_000
    monkeypatch.setattr(time, "time_ns", lambda: later)
    before = scan_files(project, SCOPE)
    assert before.entries["a.py"].stamp is not None
    opened: list[str] = []
    real = os.open

    def counting(path: str, flags: int) -> int:
        opened.append(path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", counting)
    assert scan_files(project, SCOPE, before, trust_stat=True) == before
    assert opened == []
    assert scan_files(project, SCOPE, before) == before
    assert len(opened) == 1


def test_right_to_run_is_a_change_and_other_rights_are_not(project: Path, write: Write) -> None:
    path = write("a.py", mode=0o644)
    before = scan_files(project, SCOPE)
    path.chmod(0o600)
    assert compare_trees(before, scan_files(project, SCOPE, before)) == FileChanges()
    path.chmod(0o755)
    assert compare_trees(before, scan_files(project, SCOPE, before)).modified == ("a.py",)


def test_difference_names_each_path_once_and_can_be_narrowed(project: Path, write: Write) -> None:
    write("src/old.py")
    write("src/same.py")
    write("tests/test_it.py")
    before = scan_files(project, SCOPE)
    (project / "src" / "old.py").unlink()
    write("src/new.py")
    write("tests/test_it.py", "cheat")
    found = compare_trees(before, scan_files(project, SCOPE, before))
    assert found == FileChanges(("src/new.py",), ("src/old.py",), ("tests/test_it.py",))
    assert found.paths == ("src/new.py", "src/old.py", "tests/test_it.py")
    assert found.exclude(PathPatterns(["src/"])) == FileChanges(modified=("tests/test_it.py",))
    assert found.select(PathPatterns(["src/"])) == FileChanges(("src/new.py",), ("src/old.py",))


def test_digest_is_that_of_content_names_and_kinds(project: Path, write: Write) -> None:
    write("a", "text")
    first = scan_files(project, SCOPE).digest
    write("a", "text")
    assert scan_files(project, SCOPE).digest == first
    (project / "a").rename(project / "b")
    assert scan_files(project, SCOPE).digest != first
    (project / "b").unlink()
    (project / "a").symlink_to("text")
    assert scan_files(project, SCOPE).digest != first


def test_more_files_than_memory_is_there_for_are_an_error(project: Path, write: Write) -> None:
    for name in "abc":
        write(name)
    assert len(scan_files(project, ScanScope(max_files=3)).entries) == 3
    with pytest.raises(
        StateError, match=r"expected at most 2 files in the project .*, found more: remove them, or name"
    ):
        scan_files(project, ScanScope(max_files=2))


def test_missing_project_is_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot look at the project .*none: No such file or directory"):
        scan_files(tmp_path / "none", SCOPE)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"entries": {"a": ["nothing"]}}', b'{"entries": {"a": []}}', b"\xff"]
)
def test_saved_tree_that_is_none_is_an_error(data: bytes) -> None:
    with pytest.raises(StateError, match="expected the files of a project as they were, found something else"):
        FileTree.from_json(data)


def test_what_nobody_may_read_is_there_without_a_content(own_folder: Path) -> None:
    (own_folder / "closed").mkdir()
    (own_folder / "closed" / "a.py").write_text("x")
    (own_folder / "secret").write_text("x")
    (own_folder / "secret").chmod(0)
    (own_folder / "closed").chmod(0)
    assert scan_files(own_folder, SCOPE).entries == {
        "closed": FileEntry(FileKind.CLOSED),
        "secret": FileEntry(FileKind.FILE),
    }
    (own_folder / "closed").chmod(0o700)


def test_file_that_vanishes_under_the_look_is_not_there(
    project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        write(f"in/{name}")
    real = os.open

    def vanishing(path: str, *others: int) -> int:
        if Path(path).parent == project / "in":
            for one in (project / "in").iterdir():
                one.unlink()
        return real(path, *others)

    monkeypatch.setattr(os, "open", vanishing)
    assert not scan_files(project, SCOPE).entries


def test_file_whose_disk_fails_has_no_content(project: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a")

    def failing(*_: object) -> bytes:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(os, "read", failing)
    assert scan_files(project, SCOPE).entries == {"a": FileEntry(FileKind.FILE)}


def test_content_is_read_only_as_it_was_seen(project: Path, write: Write) -> None:
    path = write("a", "text")
    entry = scan_files(project, SCOPE).entries["a"]
    assert read_entry(project, "a", entry, 4) == b"text"
    assert read_entry(project, "a", entry, 3) is None
    write("a", "text and more")
    assert read_entry(project, "a", entry, 100) is None
    path.unlink()
    assert read_entry(project, "a", entry, 100) is None
    path.symlink_to("b")
    write("b", "text")
    assert read_entry(project, "a", entry, 100) is None
    assert read_entry(project, "a", scan_files(project, SCOPE).entries["a"], 100) == b"b"
