"""Templates for calls around an expression: a missing or superfluous function, method or pair of brackets."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import (
    Hints,
    Template,
    get_operand,
    is_read,
    is_whole_value,
    substitute,
)
from pytest_loop.repair.text_edits import TextEdits

_FUNCTIONS = ("abs", "len", "sum", "sorted", "set", "list", "int", "str", "max", "min", "float", "tuple", "reversed")
_LAST_FUNCTIONS = ("bool", "round", "dict", "repr", "any", "all", "bin", "ord", "chr")
_MORE_METHODS = ("casefold()", "capitalize()", "rstrip()", "lstrip()", "title()", "date()", "replace(microsecond=0)")
_USUAL_SIGNS = (".", "/", ":", "-", "_", " ")
_METHODS = tuple(
    f"{name}()" for name in ["lower", "strip", "upper", "copy", "split", "items", "keys", "values", "encode", "decode"]
)


def _wrap_in_common_call(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Pass an expression to a well-known function or a function of the module, or call a method on it."""
    if not is_whole_value(unit, node):
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
    """Call a name or attribute that is used as a value."""
    if is_whole_value(unit, node):
        yield unit.replace_node(node, f"{unit.get_code(node)}()")


def _remove_characters(node: ast.expr, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Remove a character of the tests from a text."""
    if is_whole_value(unit, node):
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
    """Replace a call by one of its arguments, the object of a method call, or the function itself."""
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
    """Change the value that a sort key returns."""
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


def _wrap_in_call_of_file(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Pass an expression to a function or method that the file calls elsewhere with one argument."""
    if is_whole_value(unit, node):
        text = unit.get_code(node)
        yield from (unit.replace_node(node, f"{name}({text})") for name in unit.source.single_argument_functions)


def _call_method_of_file(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Call a method as the file calls it elsewhere, with the same constant arguments."""
    if is_whole_value(unit, node):
        operand = get_operand(unit, node)
        for call in dict.fromkeys((*unit.source.constant_method_calls, *_MORE_METHODS)):
            yield unit.replace_node(node, f"{operand}.{call}")


def _limit_value(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Limit a number from below or above."""
    if not is_whole_value(unit, node):
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


def _add_sign(node: ast.expr, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Put a sign before or after a text."""
    parent = unit.get_parent(node)
    if not is_whole_value(unit, node) or not isinstance(parent, ast.Call | ast.Compare):
        return
    text = unit.get_code(node)
    if '"' not in text and "{" not in text:
        for sign in dict.fromkeys((*_USUAL_SIGNS, *(sign for sign in hints.signs if sign not in '"\\{}'))):
            yield unit.replace_node(node, f'f"{sign}{{{text}}}"')
            yield unit.replace_node(node, f'f"{{{text}}}{sign}"')


_EXPRESSIONS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
_WRAPPED = (*_EXPRESSIONS, ast.ListComp, ast.GeneratorExp, ast.Tuple)

TEMPLATES = (
    Template("wrap_call", 4, _WRAPPED, _wrap_in_common_call),
    Template("wrap_call", 3, (ast.Compare,), _wrap_both_sides),
    Template("wrap_call", 2, (ast.Subscript,), _aggregate_elements),
    Template("wrap_call", 2, (ast.Name, ast.Attribute), _call_function),
    Template("wrap_call", 4, (ast.Name, ast.Attribute, ast.Subscript, ast.Call), _remove_characters),
    Template("unwrap_call", 5, (ast.Call,), _unwrap_call),
    Template("wrap_call", 2, (ast.Lambda,), _change_sort_key),
    Template("file_call", 4, _EXPRESSIONS, _wrap_in_call_of_file),
    Template("file_call", 4, (ast.Name, ast.Attribute, ast.Call, ast.Subscript), _call_method_of_file),
    Template("limit", 3, _EXPRESSIONS, _limit_value),
    Template("sign", 1.5, (ast.Name, ast.Attribute), _add_sign),
)
