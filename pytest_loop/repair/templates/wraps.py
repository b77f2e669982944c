"""A call too few or too many around an expression: a well-known function, a method, or just the brackets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.pieces import Pieces
from pytest_loop.repair.templates.calls import callables
from pytest_loop.repair.templates.shape import Hints, Template, instead, is_read, is_replaceable, operand
from pytest_loop.repair.unit import Unit

_FUNCTIONS = ("abs", "len", "sum", "sorted", "set", "list", "int", "str", "max", "min", "float", "tuple", "reversed")
_LAST_FUNCTIONS = ("bool", "round", "dict", "repr", "any", "all", "bin", "ord", "chr")
_METHODS = tuple(
    f"{name}()" for name in ["lower", "strip", "upper", "copy", "split", "items", "keys", "values", "encode", "decode"]
)


def _is_whole(node: ast.expr, unit: Unit) -> bool:
    """Whether an expression is read as a whole: neither called, nor asked for an attribute, nor unpacked."""
    above = unit.parent(node)
    if not is_read(node) or not is_replaceable(unit, node) or isinstance(above, ast.Attribute | ast.Starred):
        return False
    return not (isinstance(above, ast.Call) and above.func is node)


def _wrap_call(node: ast.expr, unit: Unit, _: Hints) -> Iterator[Pieces]:
    """The result of a well-known function, or of one of this module, instead of the thing itself."""
    if not _is_whole(node, unit):
        return
    text = unit.code(node)
    is_tuple = isinstance(node, ast.Tuple) and not text.startswith("(")
    inner = f"({text})" if is_tuple else text
    own = [name for name in unit.globals if name in callables(unit)]
    for name in (*_FUNCTIONS, *own, *_LAST_FUNCTIONS):
        yield unit.put(node, f"{name}{inner}" if isinstance(node, ast.GeneratorExp) else f"{name}({inner})")
    for method in _METHODS:
        yield unit.put(node, f"{operand(unit, node)}.{method}")
    yield unit.put(node, f"dict(sorted({operand(unit, node)}.items()))")


def _wrap_both(node: ast.Compare, unit: Unit, _: Hints) -> Iterator[Pieces]:
    """The same on both sides of a comparison: as if of one type, of one case, in one order."""
    if len(node.comparators) == 1:
        sides = (node.left, node.comparators[0])
        for name in _FUNCTIONS:
            yield tuple(piece for one in sides for piece in unit.put(one, f"{name}({unit.code(one)})"))
        for method in _METHODS[:3]:
            yield tuple(piece for one in sides for piece in unit.put(one, f"{operand(unit, one)}.{method}"))


def _fold(node: ast.Subscript, unit: Unit, _: Hints) -> Iterator[Pieces]:
    """Something about all elements instead of one of them."""
    if is_read(node):
        yield from (unit.put(node, f"{name}({unit.code(node.value)})") for name in ("sum", "max", "min", "len"))


def _called(node: ast.Name | ast.Attribute, unit: Unit, _: Hints) -> Iterator[Pieces]:
    """What a function gives, not the function."""
    if _is_whole(node, unit):
        yield unit.put(node, f"{unit.code(node)}()")


def _without_signs(node: ast.expr, unit: Unit, hints: Hints) -> Iterator[Pieces]:
    """A text without a sign that the tests put into it."""
    if _is_whole(node, unit):
        yield from (unit.put(node, f"{operand(unit, node)}.replace({sign!r}, '')") for sign in hints.signs)
        yield from (unit.put(node, f"{operand(unit, node)}.strip({sign!r})") for sign in hints.signs if sign != " ")


def _unwrap_call(node: ast.Call, unit: Unit, _: Hints) -> Iterator[Pieces]:
    """An argument, or what a method was called on, instead of the result of the call."""
    for arg in node.args:
        if not isinstance(arg, ast.Starred | ast.GeneratorExp):
            yield instead(unit, node, unit.code(arg), is_atom=isinstance(arg, ast.Name | ast.Call | ast.Subscript))
    if isinstance(node.func, ast.Attribute):
        yield unit.put(node, unit.code(node.func.value))
    if not node.args and not node.keywords:
        yield unit.put(node, unit.code(node.func))


def _key_abs(node: ast.Lambda, unit: Unit, _: Hints) -> Iterator[Pieces]:
    """What a sort key compares, the other way round or with its sign taken away."""
    body = unit.code(node.body)
    for text in (f"-{operand(unit, node.body)}", f"abs({body})", f"len({body})", f"{operand(unit, node.body)}.lower()"):
        yield unit.put(node.body, text)
    for arg in node.args.args:
        yield unit.put(node.body, f"({body}, {arg.arg})")
        yield unit.put(node.body, arg.arg)


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
