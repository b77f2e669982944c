"""Recognize honest edits of sealed files: those that cannot change a verdict."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any

from pytest_loop.core.text.toml import tomllib

# Tables of pyproject.toml that describe the project and its dependencies, not its checks.
_PROJECT_TABLES = ("project", "dependency-groups")
# Packages whose import changes nothing.
_IDLE_PACKAGES = (sys.stdlib_module_names | {"pytest"}) - {"__future__"}


def is_honest_edit(path: str, before: bytes, after: bytes) -> bool:
    """Return whether an edit of a sealed file cannot change a verdict.

    In a Python file, formatting may change, and imports may be sorted, split and joined. In `pyproject.toml`, the
    tables about the project and its dependencies may change.
    """
    pure = PurePosixPath(path)
    if pure.suffix == ".py":
        return _is_equal(before, after, _read_syntax)
    return pure.name == "pyproject.toml" and _is_equal(before, after, _read_settings)


def _is_equal(before: bytes, after: bytes, read: Callable[[bytes], object]) -> bool:
    try:
        return read(before) == read(after)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _read_syntax(data: bytes) -> tuple[list[str], list[str]]:
    """Return the sorted imports and texts at the head of a module, and the rest of it, without positions.

    Unused imports of the standard library are left out: a linter complains about them, and they change nothing.
    """
    body = ast.parse(data).body
    position = 0
    while position < len(body) and _is_head(body[position]):
        position += 1
    rest = body[position:]
    used = {getattr(node, "id", None) or getattr(node, "arg", None) for part in rest for node in ast.walk(part)}
    head = (line for statement in body[:position] for line in _list_head_lines(statement, used))
    return sorted(head), list(map(ast.dump, rest))


def _list_head_lines(statement: ast.stmt, used: set[str | None]) -> Iterator[str]:
    """Yield one line for each name that a statement imports, or one for a text."""
    if not isinstance(statement, (ast.Import, ast.ImportFrom)):
        yield ast.dump(statement)
        return
    origin = f"{'.' * statement.level}{statement.module or ''}" if isinstance(statement, ast.ImportFrom) else ""
    for alias in statement.names:
        name = alias.asname or alias.name.partition(".")[0]
        package = (origin or alias.name).partition(".")[0]
        if name in used or package not in _IDLE_PACKAGES:
            yield f"{origin}:{alias.name}:{alias.asname}"


def _is_head(statement: ast.stmt) -> bool:
    """Return whether a statement is an import or a docstring; the order of others may matter."""
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return is_text or isinstance(statement, (ast.Import, ast.ImportFrom))


def _read_settings(data: bytes) -> dict[str, Any]:
    tables = tomllib.loads(data.decode("utf-8"))
    return {name: table for name, table in tables.items() if name not in _PROJECT_TABLES}
