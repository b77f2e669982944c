"""Keys that may be missing, or must not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.shape import Hints, Template, is_read, operand, term
from pytest_loop.repair.text_edits import TextEdits


def _dict_get(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """What is under a key, or something else where there is none."""
    if isinstance(node, ast.Subscript) and is_read(node) and not isinstance(node.slice, ast.Slice):
        base, key = operand(unit, node.value), unit.get_code(node.slice)
        for default in (", 0", "", ", []", ", ''", ", {}", ", False", f", {key}"):
            yield unit.replace_node(node, f"{base}.get({key}{default})")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        base, args = operand(unit, node.func.value), [unit.get_code(one) for one in node.args]
        if node.func.attr == "get":
            yield unit.replace_node(node, f"{base}[{args[0]}]")
        if node.func.attr in ("get", "pop", "setdefault"):
            for default in ("0", "None", "''", "[]", "{}", "1", *unit.list_visible_names(node)):
                yield unit.replace_node(node, f"{base}.{node.func.attr}({args[0]}, {default})")


def _first_of_many(node: ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Something empty under a key, so that a method of it can be called."""
    if isinstance(node.value, ast.Subscript) and not isinstance(node.value.slice, ast.Slice):
        base, key = operand(unit, node.value.value), unit.get_code(node.value.slice)
        for default in ("[]", "set()", "{}"):
            yield unit.replace_node(node.value, f"{base}.setdefault({key}, {default})")


def _collect(node: ast.Assign | ast.AugAssign, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """What is under a key, and what comes to it, which may be the first."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
        base, key = operand(unit, target.value), unit.get_code(target.slice)
        for default in ("0", "''", "[]"):
            value = f"{base}.get({key}, {default}) + {term(unit, node.value)}"
            yield unit.replace_node(node, f"{unit.get_code(target)} = {value}")


TEMPLATES = (
    Template("dict_get", 1.5, (ast.Subscript, ast.Call), _dict_get),
    Template("dict_get", 1.5, (ast.Attribute,), _first_of_many),
    Template("dict_get", 2, (ast.Assign, ast.AugAssign), _collect),
)
