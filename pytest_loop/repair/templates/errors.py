"""Exceptions that are wrong: raised or caught under another name than the tests know."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.shape import Hints, Template
from pytest_loop.repair.text_edits import TextEdits


def _raised(node: ast.Raise, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Another exception, which the tests know."""
    name = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(name, ast.Name):
        yield from (unit.replace_node(name, other) for other in hints.errors if other != name.id)


def _caught(node: ast.ExceptHandler, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """An exception that is not caught, instead of those that are, or besides them."""
    if node.type is None:
        return
    names = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    known = [unit.get_code(one) for one in names]
    for other in hints.errors:
        if other not in known:
            yield unit.replace_node(node.type, f"({', '.join([*known, other])})")
            yield unit.replace_node(node.type, other)


TEMPLATES = (
    Template("exception", 5, (ast.Raise,), _raised),
    Template("exception", 5, (ast.ExceptHandler,), _caught),
)
