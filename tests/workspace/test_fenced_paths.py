"""The paths that a fence keeps read-only, and those that sessions must be able to write."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import pytest

from pytest_loop.workspace.fenced_paths import (
    WriteWatch,
    list_cache_folders,
    list_environment_paths,
    list_git_paths,
    select_read_only_paths,
)
from pytest_loop.workspace.sealed_files import SealedFiles

FILES = (
    "shop.py",
    "conftest.py",
    "pyproject.toml",
    "tests/test_a.py",
    "tests/data/a.txt",
    "src/conftest.py",
    "src/b.py",
)
Seal = Callable[..., SealedFiles]


@pytest.fixture
def seal(project: Path) -> Iterator[Seal]:
    """Seal a project with these files by patterns."""
    opened: list[SealedFiles] = []

    def seal(*patterns: str, files: Collection[str] = FILES, **fields: Collection[str]) -> SealedFiles:
        for name in files:
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text\n")
        sealed = SealedFiles(project, project / ".loop" / "run", patterns or ("/tests/", "conftest.py"), **fields)
        sealed.record_start()
        opened.append(sealed)
        return sealed

    yield seal
    for sealed in opened:
        sealed.close()


@pytest.mark.parametrize(
    ("patterns", "written", "expected"),
    [
        ((), (), ("tests/data/", "conftest.py", "src/conftest.py", "tests/test_a.py")),
        ((), None, ("conftest.py", "src/conftest.py", "tests/test_a.py", "tests/data/a.txt")),
        ((), ("tests/data/",), ("conftest.py", "src/conftest.py", "tests/test_a.py", "tests/data/a.txt")),
        ((), ("tests/data/a.txt",), ("conftest.py", "src/conftest.py", "tests/test_a.py")),
        ((), ("tests/test_a.py",), ("tests/data/", "conftest.py", "src/conftest.py")),
        (("/tests/", "!test_*.py", "/tests/test_a.py"), (), ("tests/test_a.py", "tests/data/a.txt")),
        (("/tests/test_a.py", "pyproject.toml"), (), ("tests/test_a.py",)),
        (("/tests/", "pyproject.toml"), (), ("tests/data/", "tests/test_a.py")),
    ],
    ids=[
        "folders without tests",
        "unknown writes",
        "a folder is written",
        "a file is written",
        "a file beside a folder is written",
        "tests are unsealed",
        "settings are compared",
        "settings beside tests",
    ],
)
def test_sealed_paths(
    seal: Seal, patterns: tuple[str, ...], written: tuple[str, ...] | None, expected: tuple[str, ...]
) -> None:
    sealed = select_read_only_paths(seal(*patterns), written)
    assert (sealed.paths, sealed.omitted_count) == (expected, 0)


def test_python_files_stay_writable_for_a_formatter(seal: Seal) -> None:
    assert select_read_only_paths(seal(), (), are_sources_open=True).paths == ("tests/data/",)


def test_outputs_and_links_are_not_read_only(seal: Seal, project: Path) -> None:
    (project / "tests").mkdir()
    (project / "tests" / "link.txt").symlink_to("test_a.py")
    (project / "conftest.py").symlink_to("shop.py")
    sealed = seal(files=("shop.py", "tests/test_a.py", "tests/out/x.txt"), outputs=("tests/out/",))
    assert select_read_only_paths(sealed, ()).paths == ("tests/test_a.py",)


def test_number_of_paths_is_limited_and_folders_come_first(seal: Seal) -> None:
    files = [*(f"src/p{number}/conftest.py" for number in range(5)), "src/p1/code.py", "tests/data.txt", "conftest.py"]
    sealed = select_read_only_paths(seal(files=files), (), limit=3)
    assert sealed.paths == ("tests/", "conftest.py", "src/p0/conftest.py")
    assert sealed.omitted_count == 4


def test_caches_of_tools_are_found_in_sealed_folders(project: Path) -> None:
    for name in ("tests/.pytest_cache/v", "tests/web/node_modules/x/node_modules", "tests/__pycache__", "tests/data"):
        (project / name).mkdir(parents=True)
    expected = [project / "tests" / ".pytest_cache", project / "tests" / "web" / "node_modules"]
    assert sorted(list_cache_folders(project / "tests")) == [str(path) for path in expected]


def test_environment_has_interpreter_library_and_packages(tmp_path: Path) -> None:
    paths = list_environment_paths(tmp_path.resolve())
    assert os.path.realpath(sys.executable) in paths
    assert os.path.realpath(os.__file__.rpartition("/")[0]) in paths
    for module in (pytest, sys.modules["pytest_loop"]):
        assert any(Path(module.__file__ or "").resolve().is_relative_to(path) for path in paths)


def test_environment_leaves_the_project_writable() -> None:
    package = Path(sys.modules["pytest_loop"].__file__ or "").resolve().parent
    assert not any(package.is_relative_to(path) for path in list_environment_paths(package))
    assert not any(
        Path(sys.prefix, "project").is_relative_to(path) for path in list_environment_paths(Path(sys.prefix))
    )


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


def test_git_paths_are_hooks_and_configuration(project: Path) -> None:
    assert list_git_paths(project) == ()
    git(project, "init")
    (project / ".git" / "hooks").mkdir(exist_ok=True)
    (project / "inner").mkdir()
    expected = tuple(str(project.resolve() / ".git" / name) for name in ("hooks", "config"))
    assert list_git_paths(project) == list_git_paths(project / "inner") == expected


def test_git_paths_of_a_work_tree_are_those_of_its_repository(project: Path, tmp_path: Path) -> None:
    git(project, "init")
    git(project, "commit", "--allow-empty", "-m", "first")
    git(project, "worktree", "add", str(tmp_path / "tree"))
    assert str(project.resolve() / ".git" / "config") in list_git_paths(tmp_path / "tree")


def test_broken_git_file_names_nothing(project: Path) -> None:
    (project / ".git").write_bytes(b"\xff")
    assert list_git_paths(project) == ()


WRITES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "nothing": (lambda project: None, ()),
    "a product": (lambda project: (project / "shop.py").write_text("other"), ()),
    "a sealed file": (lambda project: (project / "tests/data/a.txt").write_text("other"), ("tests/data/a.txt",)),
    "the same content": (lambda project: (project / "tests/data/a.txt").write_text("text\n"), ("tests/data/a.txt",)),
    "a new file": (lambda project: (project / "tests/data/new").touch(), ("tests/data/",)),
    "a removed file": (lambda project: (project / "conftest.py").unlink(), ("conftest.py",)),
}


@pytest.mark.parametrize("name", WRITES)
def test_written_paths_are_found(seal: Seal, project: Path, name: str) -> None:
    write, expected = WRITES[name]
    watch = WriteWatch(seal())
    write(project)
    assert watch.find_written_paths() == expected


def test_temporary_file_in_a_sealed_folder_is_a_write(seal: Seal, project: Path) -> None:
    watch = WriteWatch(seal())
    (project / "tests" / "scratch.db").touch()
    (project / "tests" / "scratch.db").unlink()
    assert watch.find_written_paths() == ("tests/",)
