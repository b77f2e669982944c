"""Expressions over marks as for pytest's `-m`: names, calls with keywords, and, or, not, parentheses."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest

_NODES = (ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not, ast.Name, ast.Load, ast.Call, ast.keyword, ast.Constant)


class MarkExpression:
    """A parsed expression; raises `ValueError` for any other syntax."""

    def __init__(self, text: str) -> None:
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
            is_valid = all(isinstance(node, _NODES) for node in ast.walk(self._tree))
        except (SyntaxError, ValueError):
            is_valid = False
        if not is_valid:
            raise ValueError(f"expected node ids or an expression over marks, found {text!r}")

    def matches(self, marks: Iterable[pytest.Mark]) -> bool:
        """Return whether the expression is true of an item with these marks."""
        return _is_true(self._tree, list(marks))


def _is_true(node: ast.expr, marks: list[pytest.Mark]) -> bool:
    if isinstance(node, ast.BoolOp):
        combine = all if isinstance(node.op, ast.And) else any
        return combine(_is_true(value, marks) for value in node.values)
    if isinstance(node, ast.UnaryOp):
        return not _is_true(node.operand, marks)
    if isinstance(node, ast.Name):
        return any(mark.name == node.id for mark in marks)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        keywords = {word.arg: word.value.value for word in node.keywords if isinstance(word.value, ast.Constant)}
        candidates = [mark for mark in marks if mark.name == node.func.id]
        return any(keywords.items() <= mark.kwargs.items() for mark in candidates)
    return isinstance(node, ast.Constant) and bool(node.value)
