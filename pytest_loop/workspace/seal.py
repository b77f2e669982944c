"""The seal: which files an agent must not change."""

from __future__ import annotations

from collections.abc import Container, Iterable
from fnmatch import fnmatch
from pathlib import PurePosixPath

TEST_FOLDERS = ("tests", "test")
# A folder of tests, or a package of the product that helps to test others.
_TESTING = "testing"
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


def exempt_new_tests(patterns: Iterable[str], paths: Iterable[str]) -> tuple[str, ...]:
    """Add patterns that unseal tests and rules, except those among the existing `paths`."""
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


def is_test_module(path: str) -> bool:
    """Return whether pytest collects a file because of its name."""
    name = path.rpartition("/")[2]
    return any(fnmatch(name, pattern) for pattern in TEST_MODULES)
