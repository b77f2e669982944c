"""A scan finds every file by its content, and nothing in the project can hide one."""

from __future__ import annotations

import hashlib
import json
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


def _scan_paths(root: Path, scope: ScanScope = SCOPE, before: FileTree | None = None) -> list[str]:
    return sorted(scan_files(root, scope, before).entries)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_entry_is_content_and_executable_bit(project: Path, write: Write) -> None:
    write("a/b.py", "x = 1\n", 0o640)
    write("run", b"", 0o755)
    assert scan_files(project, SCOPE).entries == {
        "a/b.py": FileEntry(FileKind.FILE, _hash(b"x = 1\n")),
        "run": FileEntry(FileKind.FILE, _hash(b""), is_executable=True),
    }
    entry = scan_files(project, SCOPE).entries["a/b.py"]
    assert (entry.mode, entry.size) == (0o640, 6)


def test_any_name_is_found_and_serialized(project: Path, write: Write, odd_name: bytes) -> None:
    write(odd_name)
    write(b"folder " + odd_name + b"/inside")
    tree = scan_files(project, SCOPE)
    assert set(tree.entries) == {os.fsdecode(odd_name), os.fsdecode(b"folder " + odd_name + b"/inside")}
    assert FileTree.from_json(tree.to_json()) == tree
    assert FileTree.from_json(tree.to_json()).digest == tree.digest


def test_serialized_change_holds_only_what_differs_from_its_base(project: Path, write: Write) -> None:
    write("a.py")
    write("same.py")
    write("old/gone.py")
    start = scan_files(project, SCOPE)
    write("a.py", "changed")
    write("new/b.py")
    (project / "old" / "gone.py").unlink()
    (project / "old").rmdir()
    tree = scan_files(project, SCOPE, start)
    data = tree.to_json(start)
    assert sorted(json.loads(data)["entries"]) == ["a.py", "new/b.py"]
    assert FileTree.from_json(data, start) == tree
    with pytest.raises(StateError, match="it belongs to other files"):
        FileTree.from_json(data, tree)


def test_links_are_not_followed(project: Path, write: Write, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    (project / "out").symlink_to(tmp_path / "outside")
    (project / "loop").symlink_to(".")
    (project / "dead").symlink_to(b"nowhere \xff".decode("utf-8", "surrogateescape"))
    entries = scan_files(project, SCOPE).entries
    assert {path: entry.kind for path, entry in entries.items()} == dict.fromkeys(
        ("out", "loop", "dead"), FileKind.LINK
    )
    assert entries["dead"].digest == _hash(b"nowhere \xff")


def test_pipe_and_socket_do_not_block_the_scan(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(project / "pipe")
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
    assert scan_files(project, SCOPE).entries == {
        "pipe": FileEntry(FileKind.OTHER),
        "socket": FileEntry(FileKind.OTHER),
    }


@pytest.mark.parametrize(
    "folder",
    [".git", ".loop", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", "node_modules", ".tox", ".nox", "x.egg-info"],
)  # fmt: skip
def test_folders_of_tools_are_left_out(project: Path, write: Write, folder: str) -> None:
    write(f"{folder}/file")
    write("kept")
    assert _scan_paths(project) == ["kept"]


def test_only_the_configured_folder_of_runs_is_left_out(project: Path, write: Write) -> None:
    write(".ai-factory/evolution/guide/run.json")
    write(".ai-factory/RULES.md")
    write("deep/.loop/file")
    assert _scan_paths(project, ScanScope(".ai-factory/evolution")) == [".ai-factory/RULES.md", "deep/.loop/file"]
    assert ".ai-factory/evolution/guide/run.json" in _scan_paths(project)


def test_git_of_a_submodule_is_left_out_and_its_files_are_not(project: Path, write: Write) -> None:
    write("sub/.git", "gitdir: ../.git/modules/sub")
    write("sub/a.py")
    assert _scan_paths(project) == ["sub/a.py"]


def test_virtual_environment_is_left_out_and_listed(project: Path, write: Write) -> None:
    write("env/pyvenv.cfg")
    write("env/lib/site.py")
    tree = scan_files(project, SCOPE)
    assert not tree.entries
    assert tree.environments == {"env"}


def test_new_pyvenv_cfg_hides_no_scanned_folder(project: Path, write: Write) -> None:
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


def test_files_that_git_ignores_are_ignored(project: Path, write: Write) -> None:
    _run_git(project, "init", "-q")
    write(".gitignore", "\ufeff*.log\r\n!keep.log\r\nbuild/\n/top\n# note\n\n[\n!\n" + "docs/*\n!docs/a\n")
    write("sub/.gitignore", "!b.log\n*.tmp\n")
    write(".git/info/exclude", "private\n")
    for name in ("a.log", "keep.log", "sub/b.log", "sub/c.log", "sub/d.tmp", "d.tmp", "build/x", "deep/build/x", "top",
                 "deep/top", "private", "docs/a/b", "docs/c", "sub/build"):  # fmt: skip
        write(name)
    assert _scan_paths(project) == _list_files_of_git(project)
    assert "sub/b.log" in _scan_paths(project)


def _run_git(folder: Path, *words: str) -> bytes:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x", *words]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True).stdout


def _list_files_of_git(folder: Path) -> list[str]:
    names = _run_git(folder, "ls-files", "-z", "--others", "--exclude-standard").split(b"\0")[:-1]
    return sorted(os.fsdecode(name) for name in names)


def test_gitignore_files_above_the_project_count_up_to_the_repository(
    project: Path, write: Write, tmp_path: Path
) -> None:
    _run_git(project, "init", "-q")
    (tmp_path / ".gitignore").write_text("*.py\n")
    write(".gitignore", "*.log\n/packages/app/out\n/out2\n!keep.log\n")
    write(".git/info/exclude", "private\n")
    write("packages/.gitignore", "*.tmp\napp/gone\n!b.log\n")
    write("packages/app/.gitignore", "!c.tmp\n")
    names = ["a.py", "a.log", "keep.log", "b.log", "out/x", "out2", "gone/x", "d.tmp", "c.tmp", "private", "deep/a.log"]
    for name in names:
        write(f"packages/app/{name}")
    root = project / "packages" / "app"
    assert _scan_paths(root) == _list_files_of_git(root)
    assert _scan_paths(root) == [".gitignore", "a.py", "b.log", "c.tmp", "keep.log", "out2"]
    before = scan_files(root, SCOPE)
    write("packages/.gitignore", "*\n")
    assert FileTree.from_json(before.to_json()) == before
    assert scan_files(root, SCOPE, before) == before


def test_project_that_its_repository_ignores_is_scanned(project: Path, write: Write) -> None:
    _run_git(project, "init", "-q")
    write(".gitignore", "scratch/\n")
    write("scratch/app/a.py")
    assert _scan_paths(project / "scratch" / "app") == ["a.py"]


def test_linked_worktree_uses_info_exclude_of_its_repository(project: Path, write: Write, tmp_path: Path) -> None:
    _run_git(project, "init", "-q")
    _run_git(project, "commit", "-q", "--allow-empty", "-m", "x")
    _run_git(project, "worktree", "add", "-q", "../linked")
    write(".git/info/exclude", "private\n")
    for name in ("private", "public"):
        (tmp_path / "linked" / name).write_text("x")
    assert _scan_paths(tmp_path / "linked") == _list_files_of_git(tmp_path / "linked") == ["public"]


def test_sealed_files_are_found_even_if_git_ignores_them(project: Path, write: Write) -> None:
    write(".gitignore", "out/\n*.json\n")
    write("out/deep/conftest.py")
    write("out/deep/other.py")
    write("golden.json")
    scope = ScanScope(sealed=PathPatterns(["conftest.py", "golden.json"]))
    assert _scan_paths(project, scope) == [".gitignore", "golden.json", "out/deep/conftest.py"]


def test_edited_gitignore_hides_nothing(project: Path, write: Write) -> None:
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


def test_edit_hidden_from_git_is_found(project: Path, write: Write) -> None:
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


def test_edit_with_restored_size_and_times_is_found(project: Path, write: Write) -> None:
    path = write("a.py", "honest")
    status = path.stat()
    before = scan_files(project, SCOPE)
    path.write_text("cheat!")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert compare_trees(before, scan_files(project, SCOPE, before)).modified == ("a.py",)
    assert compare_trees(before, scan_files(project, SCOPE, before, before)).modified == ("a.py",)


def test_scan_that_trusts_stat_reads_an_old_file_only_once(
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

    def count_open(path: str, flags: int) -> int:
        opened.append(path)
        return real(path, flags)

    monkeypatch.setattr(os, "open", count_open)
    assert scan_files(project, SCOPE, before, before) is before
    assert opened == []
    assert scan_files(project, SCOPE, before) == before
    assert len(opened) == 1


def test_executable_bit_is_a_change_and_other_modes_are_not(project: Path, write: Write) -> None:
    path = write("a.py", mode=0o644)
    before = scan_files(project, SCOPE)
    path.chmod(0o600)
    assert compare_trees(before, scan_files(project, SCOPE, before)) == FileChanges()
    path.chmod(0o755)
    assert compare_trees(before, scan_files(project, SCOPE, before)).modified == ("a.py",)


def test_changes_list_each_path_once_and_can_be_filtered(project: Path, write: Write) -> None:
    write("src/old.py")
    write("src/same.py")
    write("tests/test_it.py")
    before = scan_files(project, SCOPE)
    (project / "src" / "old.py").unlink()
    write("src/new.py")
    write("tests/test_it.py", "cheat")
    changes = compare_trees(before, scan_files(project, SCOPE, before))
    assert changes == FileChanges(("src/new.py",), ("src/old.py",), ("tests/test_it.py",))
    assert changes.paths == ("src/new.py", "src/old.py", "tests/test_it.py")
    assert changes.exclude(PathPatterns(["src/"])) == FileChanges(modified=("tests/test_it.py",))
    assert changes.select(PathPatterns(["src/"])) == FileChanges(("src/new.py",), ("src/old.py",))


def test_digest_covers_contents_names_and_kinds(project: Path, write: Write) -> None:
    write("a", "text")
    first = scan_files(project, SCOPE).digest
    write("a", "text")
    assert scan_files(project, SCOPE).digest == first
    (project / "a").rename(project / "b")
    assert scan_files(project, SCOPE).digest != first
    (project / "b").unlink()
    (project / "a").symlink_to("text")
    assert scan_files(project, SCOPE).digest != first


def test_too_many_files_are_an_error(project: Path, write: Write) -> None:
    for name in "abc":
        write(name)
    assert len(scan_files(project, ScanScope(max_files=3)).entries) == 3
    with pytest.raises(
        StateError, match=r"expected at most 2 files in the project .*, found more: remove them, or name"
    ):
        scan_files(project, ScanScope(max_files=2))


def test_missing_project_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"cannot look at the project .*none: No such file or directory"):
        scan_files(tmp_path / "none", SCOPE)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"entries": {"a": ["nothing"]}}', b'{"entries": {"a": []}}', b"\xff"]
)
def test_serialized_tree_that_is_damaged_is_an_error(data: bytes) -> None:
    with pytest.raises(StateError, match="expected the files of a project as they were, found something else"):
        FileTree.from_json(data)


def test_unreadable_files_and_folders_have_no_content(own_folder: Path) -> None:
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


def test_file_that_vanishes_during_the_scan_is_left_out(
    project: Path, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        write(f"in/{name}")
    real = os.open

    def open_and_remove(path: str, *others: int) -> int:
        if Path(path).parent == project / "in":
            for file in (project / "in").iterdir():
                file.unlink()
        return real(path, *others)

    monkeypatch.setattr(os, "open", open_and_remove)
    assert not scan_files(project, SCOPE).entries


def test_file_with_a_read_error_has_no_content(project: Path, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a")

    def fail(*_: object) -> bytes:
        raise OSError(5, os.strerror(5))

    monkeypatch.setattr(os, "read", fail)
    assert scan_files(project, SCOPE).entries == {"a": FileEntry(FileKind.FILE)}


def test_entry_is_read_only_if_unchanged(project: Path, write: Write) -> None:
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
