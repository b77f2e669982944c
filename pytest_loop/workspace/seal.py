"""The seal: which files an agent must not change."""

from __future__ import annotations

import hashlib
import site
import sys
from collections.abc import Container, Iterable
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from pytest_loop.store import disk

TEST_FOLDERS = ("tests", "test")
# A folder of tests, or a package of the product that helps to test others.
_TESTING = "testing"
_METADATA = (".egg-info", ".dist-info")
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
    "*.dist-info/",
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
    ".npmrc",
    ".yarnrc*",
    "bunfig.toml",
    "*.mk",
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
# Instructions that clients give every agent of a project; sealed if an agent judges.
GUIDANCE_FILES = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
TEST_MODULES = ("test_*.py", "*_test.py")
# Files that an agent may add before the work begins, if it writes the tests for a task.
ACCEPTANCE_FILES = (*TEST_MODULES, "*.rules.yaml", "*.rules.yml", "*.rules.json", "*.rules.toml")


def build_seal_patterns(
    tests: Iterable[str], seal: Iterable[str] = (), unseal: Iterable[str] = (), packages: Container[str] = ()
) -> tuple[str, ...]:
    """Return the patterns of sealed files: tests, their folders, configuration, and what the options add and remove.

    `packages` are folders of Python packages: one called `testing` is product, and its tests alone are sealed.
    """
    places = dict.fromkeys(_find_test_place(path, packages) for path in sorted(set(tests)))
    return (*CONFIGURATION_FILES, *places, *seal, *(f"!{pattern}" for pattern in unseal))


def open_for_new_tests(patterns: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Return patterns that leave new tests and rules unsealed; those among the existing `paths` stay sealed."""
    existing = (path for path in paths if any(fnmatch(PurePosixPath(path).name, name) for name in ACCEPTANCE_FILES))
    return (*patterns, *(f"!{name}" for name in ACCEPTANCE_FILES), *map(format_path_pattern, existing))


def _find_test_place(path: str, packages: Container[str]) -> str:
    """Return the pattern of the outermost test folder that holds a test file, or of the file itself."""
    folders = [str(folder) for folder in reversed(PurePosixPath(path).parents)][1:]
    for folder in folders:
        name = PurePosixPath(folder).name
        if name in TEST_FOLDERS or (name == _TESTING and folder not in packages):
            return f"{format_path_pattern(folder)}/"
    return format_path_pattern(path)


def format_path_pattern(path: str) -> str:
    """Return the pattern that matches exactly this path of the project."""
    return "/" + "".join(f"\\{char}" if char in "*?[]\\! #" else char for char in path)


def is_test_module(name: str) -> bool:
    """Return whether a file has a name that pytest collects."""
    return any(fnmatch(name, pattern) for pattern in TEST_MODULES)


def list_site_folders() -> list[str]:
    """Return the folders of this environment in which every interpreter looks for files to load at startup."""
    return sorted({*site.getsitepackages(), site.getusersitepackages()})


def find_opened_site_folders(opened: Iterable[str]) -> list[str]:
    """Return the folders of packages that lie below opened paths, in which agents may install."""
    paths = [*opened]
    return [
        folder for folder in list_site_folders() if any(Path(folder).resolve().is_relative_to(path) for path in paths)
    ]


def is_path_file_of_project(path: Path, root: Path) -> bool:
    """Return whether a file in site-packages only adds folders of the project to the path: an editable install."""
    if path.suffix not in (".pth", ".egg-link"):
        return False
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError):
        return False
    folders = [line for line in lines if line and not line.startswith("#")]
    return all(Path(line).is_absolute() and Path(line).resolve().is_relative_to(root.resolve()) for line in folders)


def hash_site_files(opened: Iterable[str] = (), root: Path | None = None) -> str:
    """Hash the files that every interpreter of this environment loads at startup, except below opened paths.

    Editable installs of the project at `root` are left out too; its metadata that names plugins of pytest is included.
    """
    digest = hashlib.sha256()
    excluded = find_opened_site_folders(opened)
    for folder in (folder for folder in list_site_folders() if folder not in excluded):
        for path in sorted(Path(folder).glob("*")) if Path(folder).is_dir() else ():
            is_loaded = path.suffix == ".pth" or path.name in ("sitecustomize.py", "usercustomize.py")
            if is_loaded and not (root and is_path_file_of_project(path, root)):
                digest.update(f"{path}\0{disk.hash_file(path)}\0".encode())
    for path in _list_plugin_metadata(root) if root else ():
        digest.update(f"{path}\0{disk.hash_file(path)}\0".encode())
    return digest.hexdigest()


def _list_plugin_metadata(root: Path) -> list[Path]:
    """Return the metadata in the project that names plugins of pytest; scans leave out some of its folders."""
    folders = [folder for pattern in ("", "*/") for suffix in _METADATA for folder in root.glob(f"{pattern}*{suffix}")]
    paths = sorted(folder / "entry_points.txt" for folder in folders)
    return [path for path in paths if b"pytest11" in (disk.read_file(path) or b"")]


def is_in_project(path: Path, root: Path) -> bool:
    """Return whether a folder holds modules of the project; its environment may lie inside of it, or around it."""
    prefixes = [Path(prefix).resolve() for prefix in (sys.prefix, sys.base_prefix)]
    inner_prefixes = [prefix for prefix in prefixes if not root.is_relative_to(prefix)]
    return path.is_relative_to(root) and not any(path.is_relative_to(prefix) for prefix in inner_prefixes)
