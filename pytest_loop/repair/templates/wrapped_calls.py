"""Templates for calls around an expression: a missing or superfluous function, method or pair of brackets."""

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
from pytest_loop.repair.text_edits import TextEdits

_FUNCTIONS = ("abs", "len", "sum", "sorted", "set", "list", "int", "str", "max", "min", "float", "tuple", "reversed")
_LAST_FUNCTIONS = ("bool", "round", "dict", "repr", "any", "all", "bin", "ord", "chr")
_METHODS = tuple(
    f"{name}()" for name in ["lower", "strip", "upper", "copy", "split", "items", "keys", "values", "encode", "decode"]
)


def _is_complete(node: ast.expr, unit: EditUnit) -> bool:
    """Return whether an expression is read, and neither called, nor unpacked, nor the base of an attribute."""
    parent = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node) or isinstance(parent, ast.Attribute | ast.Starred):
        return False
    return not is_called(unit, node)


def _wrap_call(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Pass an expression to a well-known function or one of this module, or call a method of it."""
    if not _is_complete(node, unit):
        return
    text = unit.get_code(node)
    is_tuple = isinstance(node, ast.Tuple) and not text.startswith("(")
    inner = f"({text})" if is_tuple else text
    module_functions = [name for name in unit.module_names if name in unit.source.callables]
    for name in (*_FUNCTIONS, *module_functions, *_LAST_FUNCTIONS):
        yield unit.replace_node(node, f"{name}{inner}" if isinstance(node, ast.GeneratorExp) else f"{name}({inner})")
    for method in _METHODS:
        yield unit.replace_node(node, f"{get_operand(unit, node)}.{method}")
    yield unit.replace_node(node, f"dict(sorted({get_operand(unit, node)}.items()))")


def _wrap_both_sides(node: ast.Compare, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Call the same function or method on both sides of a comparison."""
    if len(node.comparators) == 1:
        sides = (node.left, node.comparators[0])
        for name in _FUNCTIONS:
            yield tuple(piece for side in sides for piece in unit.replace_node(side, f"{name}({unit.get_code(side)})"))
        for method in _METHODS[:3]:
            yield tuple(
                piece for side in sides for piece in unit.replace_node(side, f"{get_operand(unit, side)}.{method}")
            )


def _aggregate_elements(node: ast.Subscript, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Aggregate all elements instead of taking one."""
    if is_read(node):
        yield from (
            unit.replace_node(node, f"{name}({unit.get_code(node.value)})") for name in ("sum", "max", "min", "len")
        )


def _call_function(node: ast.Name | ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Call a function instead of using the function itself."""
    if _is_complete(node, unit):
        yield unit.replace_node(node, f"{unit.get_code(node)}()")


def _remove_characters(node: ast.expr, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Remove a character from a text that the tests put into it."""
    if _is_complete(node, unit):
        yield from (
            unit.replace_node(node, f"{get_operand(unit, node)}.replace({character!r}, '')")
            for character in hints.signs
        )
        yield from (
            unit.replace_node(node, f"{get_operand(unit, node)}.strip({character!r})")
            for character in hints.signs
            if character != " "
        )


def _unwrap_call(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use an argument, the base of a method or the function itself instead of a call."""
    for arg in node.args:
        if not isinstance(arg, ast.Starred | ast.GeneratorExp):
            yield substitute(
                unit, node, unit.get_code(arg), is_atom=isinstance(arg, ast.Name | ast.Call | ast.Subscript)
            )
    if isinstance(node.func, ast.Attribute):
        yield unit.replace_node(node, unit.get_code(node.func.value))
    if not node.args and not node.keywords:
        yield unit.replace_node(node, unit.get_code(node.func))


def _change_sort_key(node: ast.Lambda, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Change what a sort key compares."""
    body = unit.get_code(node.body)
    for text in (
        f"-{get_operand(unit, node.body)}",
        f"abs({body})",
        f"len({body})",
        f"{get_operand(unit, node.body)}.lower()",
    ):
        yield unit.replace_node(node.body, text)
    for arg in node.args.args:
        yield unit.replace_node(node.body, f"({body}, {arg.arg})")
        yield unit.replace_node(node.body, arg.arg)


_EXPRESSIONS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.ListComp, ast.GeneratorExp, ast.Tuple)

TEMPLATES = (
    Template("wrap_call", 4, _EXPRESSIONS, _wrap_call),
    Template("wrap_call", 3, (ast.Compare,), _wrap_both_sides),
    Template("wrap_call", 2, (ast.Subscript,), _aggregate_elements),
    Template("wrap_call", 2, (ast.Name, ast.Attribute), _call_function),
    Template("wrap_call", 4, (ast.Name, ast.Attribute, ast.Subscript, ast.Call), _remove_characters),
    Template("unwrap_call", 5, (ast.Call,), _unwrap_call),
    Template("wrap_call", 2, (ast.Lambda,), _change_sort_key),
)
