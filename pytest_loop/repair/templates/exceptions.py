"""Templates for the wrong exception in a `raise` or `except`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template
from pytest_loop.repair.text_edits import TextEdits


def _list_errors(unit: EditUnit, hints: Hints) -> list[str]:
    """Return the exceptions of the tests, and those that the module defines."""
    defined = [name for name in unit.source.callables if name.endswith(("Error", "Exception"))]
    return list(dict.fromkeys((*hints.errors, *defined)))


def _replace_raised_exception(node: ast.Raise, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Raise another exception that the tests name or the module defines."""
    name = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    if isinstance(name, ast.Name):
        yield from (unit.replace_node(name, other) for other in _list_errors(unit, hints) if other != name.id)


def _replace_caught_exception(node: ast.ExceptHandler, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Catch an exception that the tests name or the module defines, in addition to the caught one or instead of it."""
    if node.type is None:
        return
    names = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
    caught = [unit.get_code(name) for name in names]
    for other in _list_errors(unit, hints):
        if other not in caught:
            yield unit.replace_node(node.type, f"({', '.join([*caught, other])})")
            yield unit.replace_node(node.type, other)


TEMPLATES = (
    Template("exception", 5, (ast.Raise,), _replace_raised_exception),
    Template("exception", 5, (ast.ExceptHandler,), _replace_caught_exception),
)
