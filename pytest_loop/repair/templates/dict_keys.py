"""Templates for keys that may be missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template, get_operand, get_term, is_read
from pytest_loop.repair.text_edits import TextEdits


def _change_default(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use a default for a missing key, another default, or none."""
    if isinstance(node, ast.Subscript) and is_read(node) and not isinstance(node.slice, ast.Slice):
        base, key = get_operand(unit, node.value), unit.get_code(node.slice)
        for default in (", 0", "", ", []", ", ''", ", {}", ", False", f", {key}"):
            yield unit.replace_node(node, f"{base}.get({key}{default})")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
        base, args = get_operand(unit, node.func.value), [unit.get_code(arg) for arg in node.args]
        if node.func.attr == "get":
            yield unit.replace_node(node, f"{base}[{args[0]}]")
        if node.func.attr in ("get", "pop", "setdefault"):
            for default in ("0", "None", "''", "[]", "{}", "1", *unit.list_visible_names(node)):
                yield unit.replace_node(node, f"{base}.{node.func.attr}({args[0]}, {default})")


def _set_default(node: ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Set an empty collection for a missing key, so that its method can be called."""
    if isinstance(node.value, ast.Subscript) and not isinstance(node.value.slice, ast.Slice):
        base, key = get_operand(unit, node.value.value), unit.get_code(node.value.slice)
        for default in ("[]", "set()", "{}"):
            yield unit.replace_node(node.value, f"{base}.setdefault({key}, {default})")


def _add_to_default(node: ast.Assign | ast.AugAssign, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Add to the value of a key that may be missing."""
    target = node.target if isinstance(node, ast.AugAssign) else node.targets[0]
    if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
        base, key = get_operand(unit, target.value), unit.get_code(target.slice)
        for default in ("0", "''", "[]"):
            value = f"{base}.get({key}, {default}) + {get_term(unit, node.value)}"
            yield unit.replace_node(node, f"{unit.get_code(target)} = {value}")


TEMPLATES = (
    Template("dict_get", 1.5, (ast.Subscript, ast.Call), _change_default),
    Template("dict_get", 1.5, (ast.Attribute,), _set_default),
    Template("dict_get", 2, (ast.Assign, ast.AugAssign), _add_to_default),
)
