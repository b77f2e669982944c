"""Collect hints for templates from failures: exceptions, missing names, and strings of the tests."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pytest_loop.repair.failure import Failure
from pytest_loop.repair.templates.template import Hints

_MIN_STRING_LENGTH, _MAX_STRING_LENGTH = 2, 39
_MAX_SIGNS = 4
_QUOTED = re.compile(r"'([^']*)'")


def list_exceptions(failures: Iterable[Failure]) -> tuple[str, ...]:
    """List the exception types, each once."""
    return tuple(dict.fromkeys(failure.error for failure in failures))


def collect_hints(failures: Collection[Failure], node_ids: Iterable[str], files: Iterable[Path]) -> Hints:
    """Collect hints from failures, and from the node ids and source files of the failing tests."""
    node_ids = list(node_ids)
    trees = [tree for path in dict.fromkeys(files) if (tree := _parse_file(path)) is not None]
    functions = {name.partition("[")[0].rpartition("::")[2] for name in node_ids}
    near = [
        string
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name in functions
        for string in _find_strings(node)
    ]
    strings = [*near, *(string for tree in trees for string in _find_strings(tree))]
    parameters = [name.partition("[")[2].rstrip("]") for name in node_ids]
    quoted = [string for failure in failures for string in _QUOTED.findall(failure.message)]
    names = [node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)]
    errors = [*(failure.error for failure in failures), *names]
    return Hints(
        strings=tuple(
            dict.fromkeys(string for string in strings if _MIN_STRING_LENGTH <= len(string) <= _MAX_STRING_LENGTH)
        ),
        signs=_count_signs([quoted, parameters, strings]),
        errors=tuple(dict.fromkeys(name for name in errors if _is_exception(name))),
        missing={failure.missing: failure.similar for failure in failures if failure.missing},
    )


def _count_signs(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the most frequent characters of each group that are neither letters nor digits, first group first."""
    signs: dict[str, None] = {}
    for strings in groups:
        counts = Counter(sign for string in strings for sign in string if not sign.isalnum() and sign.isprintable())
        signs |= dict.fromkeys(sign for sign, _ in counts.most_common(_MAX_SIGNS))
    return tuple(signs)[:_MAX_SIGNS]


def _parse_file(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _find_strings(tree: ast.AST) -> Iterator[str]:
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_exception(name: str) -> bool:
    value = getattr(builtins, name, None)
    return isinstance(value, type) and issubclass(value, Exception) and value is not AssertionError
