"""Templates for values that may be None, empty or zero, and for keys that may be missing."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from textwrap import indent

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template, get_operand, get_term, is_read
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_VALUES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
_RESULTS = ("None", "[]", "0", "''", "False", "True", "{}")


def _is_branch_condition(node: ast.AST, unit: EditUnit) -> bool:
    parent = unit.get_parent(node)
    if isinstance(parent, ast.BoolOp):
        return True
    return isinstance(parent, ast.If | ast.While | ast.IfExp) and parent.test is node


def _compare_with_none(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Test a value for None instead of for truth, or the other way round."""
    if isinstance(node, ast.UnaryOp):
        if isinstance(node.op, ast.Not) and isinstance(node.operand, _VALUES):
            yield unit.replace_node(node, f"{unit.get_code(node.operand)} is None")
    elif isinstance(node, ast.Compare):
        if isinstance(node.ops[0], ast.Is | ast.IsNot) and _is_none(node.comparators[0]):
            negation = "not " if isinstance(node.ops[0], ast.Is) else ""
            yield unit.replace_node(node, f"{negation}{get_operand(unit, node.left)}")
    elif _is_branch_condition(node, unit):
        yield unit.replace_node(node, f"{unit.get_code(node)} is not None")


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _guard_condition(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Test a value of a condition for None or truth before the condition."""
    if not _is_branch_condition(node, unit):
        return
    code = unit.get_code(node)
    uses = [use for use in ast.walk(node) if isinstance(use, ast.Name | ast.Attribute) and is_read(use)]
    for text in dict.fromkeys(map(unit.get_code, uses)):
        yield unit.replace_node(node, f"{text} is None or {code}")
        yield unit.replace_node(node, f"{text} is not None and {code}")
        yield unit.replace_node(node, f"{text} and {code}")
        yield unit.replace_node(node, f"not {text} or {code}")


def _guard_expression(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use a default instead of an expression if its base is None."""
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
    start = unit.source.get_line_start(node.lineno)
    for test in (f"not {name}", f"{name} is None"):
        for result in (*names, *_RESULTS):
            text = indent(f"if {test}:\n    return {result}\n", unit.get_indent(node))
            yield (TextEdit(start, start, text),)


def _change_default(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use a default for a missing key, change the default, or raise for a missing key."""
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


def _set_only_once(node: ast.Assign | ast.Expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Keep the first value of a key instead of the last, or the other way round."""
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        target = node.targets[0]
        base, key = get_operand(unit, target.value), unit.get_code(target.slice)
        yield unit.replace_node(node, f"{base}.setdefault({key}, {unit.get_code(node.value)})")
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) == 2:
        function, (first, second) = node.value.func, node.value.args
        if isinstance(function, ast.Attribute) and function.attr == "setdefault":
            base = get_operand(unit, function.value)
            yield unit.replace_node(node, f"{base}[{unit.get_code(first)}] = {unit.get_code(second)}")


def _default_to_text(node: ast.Subscript, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Use a text of the failing tests for a missing key."""
    if is_read(node) and not isinstance(node.slice, ast.Slice):
        base, key = get_operand(unit, node.value), unit.get_code(node.slice)
        yield from (unit.replace_node(node, f"{base}.get({key}, {text!r})") for text in hints.strings[:8])


_STATEMENTS = (ast.Assign, ast.Return, ast.If, ast.For, ast.While, ast.Expr, ast.AugAssign)

TEMPLATES = (
    Template("none_guard", 6, (*_VALUES, ast.UnaryOp, ast.Compare), _compare_with_none),
    Template("none_guard", 4, (ast.Compare, ast.Name, ast.Attribute, ast.Call, ast.BoolOp), _guard_condition),
    Template("none_guard", 1, (ast.Attribute, ast.Subscript, ast.Call), _guard_expression),
    Template("none_guard", 3, _STATEMENTS, _return_after_assignment),
    Template("dict_get", 1.5, (ast.Subscript, ast.Call), _change_default),
    Template("dict_get", 1.5, (ast.Attribute,), _set_default),
    Template("dict_get", 2, (ast.Assign, ast.AugAssign), _add_to_default),
    Template("dict_set", 5, (ast.Assign, ast.Expr), _set_only_once),
    Template("dict_get", 2, (ast.Subscript,), _default_to_text),
)
