"""A call too few or too many around an expression: a well-known function, a method, or just the brackets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.calls import callables
from pytest_loop.repair.templates.shape import Hints, Template, instead, is_read, is_replaceable, operand
from pytest_loop.repair.text_edits import TextEdits

_FUNCTIONS = ("abs", "len", "sum", "sorted", "set", "list", "int", "str", "max", "min", "float", "tuple", "reversed")
_LAST_FUNCTIONS = ("bool", "round", "dict", "repr", "any", "all", "bin", "ord", "chr")
_METHODS = tuple(
    f"{name}()" for name in ["lower", "strip", "upper", "copy", "split", "items", "keys", "values", "encode", "decode"]
)


def _is_whole(node: ast.expr, unit: EditUnit) -> bool:
    """Whether an expression is read as a whole: neither called, nor asked for an attribute, nor unpacked."""
    above = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node) or isinstance(above, ast.Attribute | ast.Starred):
        return False
    return not (isinstance(above, ast.Call) and above.func is node)


def _wrap_call(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """The result of a well-known function, or of one of this module, instead of the thing itself."""
    if not _is_whole(node, unit):
        return
    text = unit.get_code(node)
    is_tuple = isinstance(node, ast.Tuple) and not text.startswith("(")
    inner = f"({text})" if is_tuple else text
    own = [name for name in unit.module_names if name in callables(unit)]
    for name in (*_FUNCTIONS, *own, *_LAST_FUNCTIONS):
        yield unit.replace_node(node, f"{name}{inner}" if isinstance(node, ast.GeneratorExp) else f"{name}({inner})")
    for method in _METHODS:
        yield unit.replace_node(node, f"{operand(unit, node)}.{method}")
    yield unit.replace_node(node, f"dict(sorted({operand(unit, node)}.items()))")


def _wrap_both(node: ast.Compare, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """The same on both sides of a comparison: as if of one type, of one case, in one order."""
    if len(node.comparators) == 1:
        sides = (node.left, node.comparators[0])
        for name in _FUNCTIONS:
            yield tuple(piece for one in sides for piece in unit.replace_node(one, f"{name}({unit.get_code(one)})"))
        for method in _METHODS[:3]:
            yield tuple(piece for one in sides for piece in unit.replace_node(one, f"{operand(unit, one)}.{method}"))


def _fold(node: ast.Subscript, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Something about all elements instead of one of them."""
    if is_read(node):
        yield from (
            unit.replace_node(node, f"{name}({unit.get_code(node.value)})") for name in ("sum", "max", "min", "len")
        )


def _called(node: ast.Name | ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """What a function gives, not the function."""
    if _is_whole(node, unit):
        yield unit.replace_node(node, f"{unit.get_code(node)}()")


def _without_signs(node: ast.expr, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """A text without a sign that the tests put into it."""
    if _is_whole(node, unit):
        yield from (unit.replace_node(node, f"{operand(unit, node)}.replace({sign!r}, '')") for sign in hints.signs)
        yield from (
            unit.replace_node(node, f"{operand(unit, node)}.strip({sign!r})") for sign in hints.signs if sign != " "
        )


def _unwrap_call(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """An argument, or what a method was called on, instead of the result of the call."""
    for arg in node.args:
        if not isinstance(arg, ast.Starred | ast.GeneratorExp):
            yield instead(unit, node, unit.get_code(arg), is_atom=isinstance(arg, ast.Name | ast.Call | ast.Subscript))
    if isinstance(node.func, ast.Attribute):
        yield unit.replace_node(node, unit.get_code(node.func.value))
    if not node.args and not node.keywords:
        yield unit.replace_node(node, unit.get_code(node.func))


def _key_abs(node: ast.Lambda, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """What a sort key compares, the other way round or with its sign taken away."""
    body = unit.get_code(node.body)
    for text in (f"-{operand(unit, node.body)}", f"abs({body})", f"len({body})", f"{operand(unit, node.body)}.lower()"):
        yield unit.replace_node(node.body, text)
    for arg in node.args.args:
        yield unit.replace_node(node.body, f"({body}, {arg.arg})")
        yield unit.replace_node(node.body, arg.arg)


_THINGS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.ListComp, ast.GeneratorExp, ast.Tuple)

TEMPLATES = (
    Template("wrap_call", 4, _THINGS, _wrap_call),
    Template("wrap_call", 3, (ast.Compare,), _wrap_both),
    Template("wrap_call", 2, (ast.Subscript,), _fold),
    Template("wrap_call", 2, (ast.Name, ast.Attribute), _called),
    Template("wrap_call", 4, (ast.Name, ast.Attribute, ast.Subscript, ast.Call), _without_signs),
    Template("unwrap_call", 5, (ast.Call,), _unwrap_call),
    Template("wrap_call", 2, (ast.Lambda,), _key_abs),
)
