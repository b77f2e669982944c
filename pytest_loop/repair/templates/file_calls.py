"""Templates for calls and values that exist elsewhere in the file and are missing here."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import (
    Hints,
    Template,
    get_operand,
    is_called,
    is_read,
    is_replaceable,
    substitute,
)
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_MAX_LENGTH = 40
_MORE_METHODS = ("casefold()", "capitalize()", "rstrip()", "lstrip()", "title()", "date()", "replace(microsecond=0)")
_VALUES = ("1", "0", "True", "False", "None", "2")
_USUAL_SIGNS = (".", "/", ":", "-", "_", " ")


def _is_complete(node: ast.expr, unit: EditUnit) -> bool:
    parent = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node) or isinstance(parent, ast.Attribute | ast.Starred):
        return False
    return not is_called(unit, node)


def _wrap_in_call(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Pass an expression to a function or method that the file passes one argument to."""
    if _is_complete(node, unit):
        text = unit.get_code(node)
        yield from (unit.replace_node(node, f"{name}({text})") for name in unit.source.single_argument_functions)


def _call_method(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Call a method as the file calls it elsewhere, with the same constant arguments."""
    if _is_complete(node, unit):
        operand = get_operand(unit, node)
        for call in dict.fromkeys((*unit.source.constant_method_calls, *_MORE_METHODS)):
            yield unit.replace_node(node, f"{operand}.{call}")


def _limit_value(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Limit a number from below or above."""
    if not _is_complete(node, unit):
        return
    text = unit.get_code(node)
    others = [unit.get_code(other) for other in unit.expressions if isinstance(other, ast.Attribute | ast.Name)]
    if isinstance(node, ast.Attribute):
        others.sort(key=lambda other: not other.endswith(f".{node.attr}"))
    yield unit.replace_node(node, f"max(0, {text})")
    yield unit.replace_node(node, f"max(1, {text})")
    for other in [other for other in dict.fromkeys(others) if other != text][:12]:
        yield unit.replace_node(node, f"max({other}, {text})")
        yield unit.replace_node(node, f"min({other}, {text})")


def _add_parameter(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Give a value to a parameter whose default was used."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    end = unit.source.get_span(node)[1] - 1
    comma = ", " if node.args or node.keywords else ""
    given = {keyword.arg for keyword in node.keywords}
    for parameter in unit.source.default_parameters.get(name, ()):
        if parameter not in given:
            values = [parameter] if parameter in unit.name_scopes else []
            for value in (*values, *_VALUES, *unit.list_visible_names(node)):
                yield (TextEdit(end, end, f"{comma}{parameter}={value}"),)


def _return_attribute(node: ast.Return, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Return an attribute of the object."""
    if node.value is not None and "self" in unit.name_scopes:
        value = node.value
        yield from (unit.replace_node(value, f"self.{name}") for name in unit.source.list_attributes("self"))


def _prefer_attribute(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Prefer an attribute of the object or another value to an expression."""
    parent = unit.get_parent(node)
    if not _is_complete(node, unit) or not isinstance(parent, ast.Call | ast.Return | ast.Assign | ast.keyword):
        return
    attributes = [f"self.{name}" for name in unit.source.list_attributes("self")] if "self" in unit.name_scopes else []
    for other in (*attributes[:12], *unit.list_visible_names(node)):
        if other not in ("self", unit.get_code(node)):
            yield substitute(unit, node, f"{other} or {get_operand(unit, node)}")


def _add_sign(node: ast.expr, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Put a sign before or after a text."""
    parent = unit.get_parent(node)
    if not _is_complete(node, unit) or not isinstance(parent, ast.Call | ast.Compare):
        return
    text = unit.get_code(node)
    if '"' not in text and "{" not in text:
        for sign in dict.fromkeys((*_USUAL_SIGNS, *(sign for sign in hints.signs if sign not in '"\\{}'))):
            yield unit.replace_node(node, f'f"{sign}{{{text}}}"')
            yield unit.replace_node(node, f'f"{{{text}}}{sign}"')


def _divide_up(node: ast.BinOp, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Round a division up."""
    if isinstance(node.op, ast.FloorDiv):
        left, right = get_operand(unit, node.left), get_operand(unit, node.right)
        yield substitute(unit, node, f"-(-{left} // {right})")


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


_EXPRESSIONS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)

TEMPLATES = (
    Template("file_call", 4, _EXPRESSIONS, _wrap_in_call),
    Template("file_call", 4, (ast.Name, ast.Attribute, ast.Call, ast.Subscript), _call_method),
    Template("limit", 3, _EXPRESSIONS, _limit_value),
    Template("argument", 4, (ast.Call,), _add_parameter),
    Template("return_expr", 1.5, (ast.Return,), _return_attribute),
    Template("default_value", 1, _EXPRESSIONS, _prefer_attribute),
    Template("sign", 1.5, (ast.Name, ast.Attribute), _add_sign),
    Template("bin_op", 3, (ast.BinOp,), _divide_up),
    Template("dict_set", 5, (ast.Assign, ast.Expr), _set_only_once),
    Template("dict_get", 2, (ast.Subscript,), _default_to_text),
)
