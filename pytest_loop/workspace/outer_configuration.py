"""Configuration of tools outside of the project: above its root, and in the home folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_loop.store import disk

_ABOVE = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml"),
    *("ruff.toml", ".ruff.toml", "mypy.ini", ".mypy.ini", ".flake8", ".pylintrc", "pylintrc", ".coveragerc"),
    *("package.json", ".npmrc", "tsconfig.json", ".eslintrc", ".eslintrc.json", ".eslintrc.js", "eslint.config.js"),
)
_IN_HOME = (
    *(".config/ruff/ruff.toml", ".config/ruff/.ruff.toml", ".config/ruff/pyproject.toml", ".config/mypy/config"),
    *(".mypy.ini", ".config/flake8", ".flake8", ".config/pylintrc", ".pylintrc", ".npmrc", ".config/git/ignore"),
)


def hash_outer_configuration(root: Path) -> dict[str, str]:
    """Return the hashes of the configuration files outside of a project, by their paths."""
    return {str(path): disk.hash_file(path) for path in _list_paths(root.resolve()) if path.is_file()}


def _list_paths(root: Path) -> Iterator[Path]:
    for folder in root.parents:
        yield from (folder / name for name in _ABOVE)
    yield from (Path.home() / name for name in _IN_HOME)
