"""Expressions over marks, as pytest's `-m` takes them: names, calls with keywords, and, or, not, parentheses."""

from __future__ import annotations

import ast
from collections.abc import Iterable

import pytest


class MarkExpression:
    """A compiled expression; `matches` asks it about the marks of an item."""

    def __init__(self, text: str) -> None:
        try:
            self._tree = ast.parse(text.strip(), mode="eval").body
            understood = all(isinstance(node, _ALLOWED) for node in ast.walk(self._tree))
        except (SyntaxError, ValueError):
            understood = False
        if not understood:
            raise ValueError(f"expected node ids or an expression over marks, found {text!r}")

    def matches(self, marks: Iterable[pytest.Mark]) -> bool:
        return _true(self._tree, list(marks))


_ALLOWED = (
    ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.Name, ast.Load, ast.Call, ast.keyword, ast.Constant,
)  # fmt: skip


def _true(node: ast.expr, marks: list[pytest.Mark]) -> bool:
    if isinstance(node, ast.BoolOp):
        combine = all if isinstance(node.op, ast.And) else any
        return combine(_true(value, marks) for value in node.values)
    if isinstance(node, ast.UnaryOp):
        return not _true(node.operand, marks)
    if isinstance(node, ast.Name):
        return any(mark.name == node.id for mark in marks)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        wanted = {
            word.arg: word.value.value for word in node.keywords if word.arg and isinstance(word.value, ast.Constant)
        }
        named = [mark for mark in marks if mark.name == node.func.id]
        return any(all(mark.kwargs.get(key) == value for key, value in wanted.items()) for mark in named)
    return isinstance(node, ast.Constant) and bool(node.value)
