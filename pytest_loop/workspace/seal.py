"""The seal: which files an agent must not change."""

from __future__ import annotations

import hashlib
import site
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder, all_suffixes
from pathlib import Path, PurePosixPath

from pytest_loop.store import disk
from pytest_loop.workspace.file_tree import FileChanges, FileTree

TEST_FOLDERS = ("tests", "test", "testing")
# Files that configure how tests are found and run, and other checks.
CONFIGURATION_FILES = (
    "conftest.py",
    "*.rules.yaml",
    "*.rules.yml",
    "*.rules.json",
    "*.rules.toml",
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "setup.cfg",
    "pyproject.toml",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    ".coveragerc",
    "mypy.ini",
    ".mypy.ini",
    "ruff.toml",
    ".ruff.toml",
    ".flake8",
    ".pylintrc",
    ".pre-commit-config.yaml",
    "/.github/",
    "/.gitlab-ci.yml",
    "/.circleci/",
    "*.pth",
    "*.pyc",  # git ignores it, but Python imports it in place of a source file
)
# Configuration of other tools, sealed if a rule runs a command.
BUILD_FILES = (
    "[mM]akefile",
    "GNUmakefile",
    "[jJ]ustfile",
    ".justfile",
    "mise.toml",
    "Rakefile",
    "package.json",
    "jest.config.*",
    "vitest.config.*",
    ".mocharc*",
    ".eslintrc*",
    "eslint.config.*",
    "tsconfig*.json",
    "Cargo.toml",
    "go.mod",
    "pom.xml",
    "build.gradle*",
)
NEW_TESTS = ("!test_*.py", "!*_test.py")
_MODULE_SUFFIXES = sorted(all_suffixes(), key=len, reverse=True)
_PACKAGE = "__init__"


def build_seal_patterns(
    tests: Iterable[str], seal: Iterable[str] = (), unseal: Iterable[str] = (), *, are_tests_added: bool = False
) -> tuple[str, ...]:
    """Return the patterns of sealed files: tests, their folders, configuration, and what the options add and remove.

    With `are_tests_added`, new test files are allowed; existing ones and the files beside them stay sealed.
    """
    paths = sorted(set(tests))
    places = dict.fromkeys(map(_find_test_place, paths))
    exceptions = (*NEW_TESTS, *(f"/{_escape(path)}" for path in paths)) if are_tests_added else ()
    return (*CONFIGURATION_FILES, *places, *exceptions, *seal, *(f"!{pattern}" for pattern in unseal))


def _find_test_place(path: str) -> str:
    """Return the pattern of the outermost test folder that holds a test file, or of the file itself."""
    parts = PurePosixPath(path).parts
    for depth, part in enumerate(parts[:-1], start=1):
        if part in TEST_FOLDERS:
            return f"/{_escape('/'.join(parts[:depth]))}/"
    return f"/{_escape(path)}"


def _escape(path: str) -> str:
    return "".join(f"\\{char}" if char in "*?[]\\! #" else char for char in path)


def hash_site_files() -> str:
    """Hash the files that every interpreter of this environment loads at startup."""
    digest = hashlib.sha256()
    for folder in sorted({*site.getsitepackages(), site.getusersitepackages()}):
        for path in sorted(Path(folder).glob("*")) if Path(folder).is_dir() else ():
            if path.suffix == ".pth" or path.name in ("sitecustomize.py", "usercustomize.py"):
                digest.update(f"{path}\0{disk.hash_file(path)}\0".encode())
    return digest.hexdigest()


def select_shadowing_files(root: Path, start: FileTree, changes: FileChanges) -> FileChanges:
    """Return the added files that an interpreter started beside them would import instead of an installed module.

    Modules inside a package shadow nothing, and no interpreter is started in a folder that is new.
    """
    search_path = [path for path in sys.path if path and not _is_in_project(Path(path).resolve(), root.resolve())]
    return FileChanges(added=tuple(path for path in changes.added if _is_shadowing(path, start, search_path)))


def _is_shadowing(path: str, start: FileTree, search_path: list[str]) -> bool:
    folder, _, file = path.rpartition("/")
    suffix = next((suffix for suffix in _MODULE_SUFFIXES if file.endswith(suffix)), None)
    if suffix is None:
        return False
    name = file.removesuffix(suffix)
    if name == _PACKAGE:
        folder, _, name = folder.rpartition("/")
    is_new_folder = folder and folder not in start.folders
    if is_new_folder or any(f"{folder}/{_PACKAGE}{suffix}" in start.entries for suffix in _MODULE_SUFFIXES):
        return False
    spec = PathFinder.find_spec(name, search_path)
    return name in sys.stdlib_module_names or (spec is not None and spec.origin is not None)


def _is_in_project(path: Path, root: Path) -> bool:
    """Return whether a folder holds modules of the project; its environment may lie inside of it, or around it."""
    prefixes = [Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)]
    inner_prefixes = [prefix for prefix in prefixes if not root.is_relative_to(prefix)]
    return path.is_relative_to(root) and not any(path.is_relative_to(prefix) for prefix in inner_prefixes)
