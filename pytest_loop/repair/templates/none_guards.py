"""Templates for values that may be None, empty or zero."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from textwrap import indent

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template, get_operand, is_read
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_VALUES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_RESULTS = ("None", "[]", "0", "''", "False", "True", "{}")


def _is_test(node: ast.AST, unit: EditUnit) -> bool:
    parent = unit.get_parent(node)
    if isinstance(parent, ast.BoolOp):
        return True
    return isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is node


def _compare_with_none(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Ask whether a value is None instead of whether it is empty or zero, or the other way round."""
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not) and isinstance(node.operand, _VALUES):
            yield unit.replace_node(node, f"{unit.get_code(node.operand)} is None")
    elif isinstance(node, ast.Compare):
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and _is_none(node.comparators[0]):
            negation = "not " if isinstance(node.ops[0], ast.Is) else ""
            yield unit.replace_node(node, f"{negation}{get_operand(unit, node.left)}")
    elif _is_test(node, unit):
        yield unit.replace_node(node, f"{unit.get_code(node)} is not None")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _guard_condition(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Ask first whether a value of a condition is None."""
    if not _is_test(node, unit):
        return
    code = unit.get_code(node)
    uses = [use for use in ast.walk(node) if isinstance(use, ast.Name | ast.Attribute) and is_read(use)]
    for text in dict.fromkeys(map(unit.get_code, uses)):
        yield unit.replace_node(node, f"{text} is None or {code}")
        yield unit.replace_node(node, f"{text} is not None and {code}")
        yield unit.replace_node(node, f"{text} and {code}")
        yield unit.replace_node(node, f"not {text} or {code}")


def _guard_expression(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use a default instead of an expression whose base is None."""
    base = node.value if isinstance(node, ast.Attribute | ast.Subscript) else None
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        base = node.func.value
    parent = unit.get_parent(node)
    if not isinstance(base, ast.Name) or not isinstance(parent, ast.Assign | ast.Return | ast.keyword | ast.Call):
        return
    if is_read(node) and getattr(parent, "func", None) is not node:
        for default in ("None", "''", "0", "[]"):
            yield unit.replace_node(node, f"({unit.get_code(node)} if {base.id} is not None else {default})")


def _return_after_assignment(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Return early if the value that was just assigned is empty or None."""
    body = unit.find_body(node) or []
    assigned = next((first for first, second in pairwise(body) if second is node), None)
    if not isinstance(assigned, ast.Assign) or not isinstance(assigned.targets[0], ast.Name):
        return
    if unit.function is None or not unit.is_alone_on_lines(node):
        return
    name = assigned.targets[0].id
    names = [other for other in unit.list_visible_names(node) if other not in ("self", "cls")]
    at = unit.source.get_line_start(node.lineno)
    for test in (f"not {name}", f"{name} is None"):
        for result in (*names, *_RESULTS):
            text = indent(f"if {test}:\n    return {result}\n", unit.get_indent(node))
            yield (TextEdit(at, at, text),)


_SIMPLE = (ast.Assign, ast.Return, ast.If, ast.For, ast.While, ast.Expr, ast.AugAssign)

TEMPLATES = (
    Template("none_guard", 6, (*_VALUES, ast.UnaryOp, ast.Compare), _compare_with_none),
    Template("none_guard", 4, (ast.Compare, ast.Name, ast.Attribute, ast.Call, ast.BoolOp), _guard_condition),
    Template("none_guard", 1, (ast.Attribute, ast.Subscript, ast.Call), _guard_expression),
    Template("none_guard", 3, _SIMPLE, _return_after_assignment),
)
