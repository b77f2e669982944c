"""Templates for wrong values: constants, bounds, slices and defaults."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import (
    Hints,
    Template,
    get_operand,
    get_term,
    is_called,
    is_read,
    is_replaceable,
    remove_item,
    substitute,
)
from pytest_loop.repair.text_edits import TextEdits

_MIN_SIMILARITY = 0.7
_MAX_LENGTH = 16


def _vary_value(node: ast.Constant, unit: EditUnit, hints: Hints) -> Iterator[str]:
    value = node.value
    if isinstance(value, bool):
        yield repr(not value)
    elif isinstance(value, int | float):
        yield from _vary_number(value, unit)
    elif isinstance(value, str):
        yield from map(repr, _vary_text(value, unit, hints))
    elif value is None:
        yield from ("0", "''", "[]", "{}", "False", "True")


def _vary_number(value: float, unit: EditUnit) -> Iterator[str]:
    if isinstance(value, int):
        yield from (
            str(number) for number in (value + 1, value - 1, 1 - value, 0, 1, 2, -value, 10, value * 2, value * 10)
        )
    else:
        yield from (
            repr(number) for number in (value + 1, value - 1, 0.0, 1.0, -value, value / 10, value * 10, value / 2)
        )
    for other in unit.nodes:
        if isinstance(other, ast.Constant) and type(other.value) in (int, float):
            yield repr(other.value)
    yield from unit.source.numbers


def _vary_text(value: str, unit: EditUnit, hints: Hints) -> Iterator[str]:
    yield from (word for word in hints.strings if word != value and _is_similar(word, value))
    yield from ("", " ", value.strip(), value.lower(), value.upper(), value.title(), value[:1], f"{value} ")
    if 0 < len(value) < 4 and not value.isalnum():
        yield from (value + sign for sign in hints.signs if sign not in value)
    words = (word for word in unit.source.short_strings if len(word) <= _MAX_LENGTH)
    yield from (word for word in words if len(value) < 3 or len(word) > 1)
    if len(value) <= _MAX_LENGTH:
        yield from (value[:at] + value[at + 1 :] for at in range(len(value)))


def _is_similar(word: str, value: str) -> bool:
    matcher = SequenceMatcher(None, word, value)
    # The quick ratios are upper bounds, and rule out most words.
    ratios = (matcher.real_quick_ratio, matcher.quick_ratio, matcher.ratio)
    return len(value) > 2 and all(ratio() >= _MIN_SIMILARITY for ratio in ratios)


def _replace_constant(node: ast.Constant, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    if isinstance(unit.get_parent(node), ast.Expr | ast.JoinedStr | ast.FormattedValue):
        return  # a docstring, or a part of an f-string
    equal_constants = [
        constant for constant in unit.nodes if isinstance(constant, ast.Constant) and _is_equal(constant, node)
    ]
    for text in dict.fromkeys(_vary_value(node, unit, hints)):
        yield substitute(unit, node, text, is_atom=not text.startswith("-"))
    if len(equal_constants) > 1 and equal_constants[0] is node:
        for text in dict.fromkeys(_vary_value(node, unit, hints)):
            yield tuple(edit for constant in equal_constants for edit in unit.replace_node(constant, text))


def _is_equal(other: ast.Constant, node: ast.Constant) -> bool:
    return type(other.value) is type(node.value) and other.value == node.value


def _can_be_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.BinOp | ast.Attribute | ast.Subscript | ast.UnaryOp) or (
        isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute)
    )


def _shift_by_one(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Add one to a number, or subtract it."""
    parent = unit.get_parent(node)
    if not (_can_be_number(node) and is_read(node) and is_replaceable(unit, node)) or isinstance(parent, ast.Attribute):
        return
    if is_called(unit, node):
        return
    if isinstance(parent, ast.BinOp) and isinstance(node, ast.BinOp):
        return
    for sign in "+-":
        yield substitute(unit, node, f"{get_term(unit, node)} {sign} 1")


def _change_range(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Change start, end or step of a range."""
    if not isinstance(node.func, ast.Name) or node.func.id != "range" or node.keywords:
        return
    parts = [unit.get_code(arg) for arg in node.args]
    if len(parts) == 1:
        starts = ["1", "2", *unit.list_visible_names(node)]
        yield from (unit.replace_node(node, f"range({start}, {parts[0]})") for start in starts)
        yield unit.replace_node(node, f"range(1, {get_term(unit, node.args[0])} + 1)")
        yield unit.replace_node(node, f"range({get_term(unit, node.args[0])} - 1, -1, -1)")
        yield unit.replace_node(node, f"range(0, {parts[0]}, 2)")
    elif len(parts) == 2:
        yield unit.replace_node(node, f"range({parts[1]})")
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]}, -1)")
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]}, 2)")
        yield unit.replace_node(node, f"range({get_term(unit, node.args[0])} + 1, {get_term(unit, node.args[1])} + 1)")
    else:
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]})")
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]}, -{get_operand(unit, node.args[2])})")


def _take_part(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use a part of a sequence instead of the sequence."""
    parent = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node):
        return
    if is_called(unit, node):
        return
    if isinstance(parent, ast.Attribute) and isinstance(unit.find_statement(node), ast.Expr):
        return  # a method call on a copy has no effect
    base = get_operand(unit, node)
    names = [name for name in unit.list_visible_names(node) if name != unit.get_code(node)]
    if isinstance(node, ast.Name):
        for name in names:
            yield from (unit.replace_node(node, f"{base}[{part}]") for part in (f"{name}:", f":{name}", name))
    for part in ("1:", ":-1", "::-1", "0", "-1", "2:", ":1", "1"):
        yield unit.replace_node(node, f"{base}[{part}]")


def _change_subscript(node: ast.Subscript, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Change or drop an index or the bounds of a slice."""
    base = get_operand(unit, node.value)
    if is_read(node):
        yield unit.replace_node(node, base)
    if isinstance(node.slice, ast.Slice):
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        lower, upper, step = (unit.get_code(part) if part else "" for part in parts)
        tail = f":{step}" if step else ""
        for start, stop in ((lower, ""), ("", upper), (upper, lower), (lower, "-1"), ("1", upper), (lower, upper)):
            for end in dict.fromkeys((tail, "", ":-1")):
                yield unit.replace_node(node, f"{base}[{start}:{stop}{end}]")
        for more in (" + 1", " - 1"):
            yield unit.replace_node(node, f"{base}[{lower}{more}:{upper}{tail}]")
            yield unit.replace_node(node, f"{base}[{lower}:{upper}{more}{tail}]")
        for name in unit.list_visible_names(node):
            yield unit.replace_node(node, f"{base}[{lower}:{name}{tail}]")
            yield unit.replace_node(node, f"{base}[{name}:{upper}{tail}]")
    else:
        index = unit.get_code(node.slice)
        for part in ("0", "-1", f"-{index}", f"-{index} - 1", f"{index} - 1", f"{index} + 1", f":{index}", f"{index}:"):
            yield unit.replace_node(node, f"{base}[{part}]")


def _change_default(node: ast.FunctionDef | ast.AsyncFunctionDef, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Change the default of a parameter, or add one."""
    for default in (*node.args.defaults, *(default for default in node.args.kw_defaults if default is not None)):
        if isinstance(default, ast.Constant):
            yield from (unit.replace_node(default, text) for text in dict.fromkeys(_vary_value(default, unit, hints)))
        else:
            yield unit.replace_node(default, "None")
    for arg in node.args.args[-1:]:
        if arg.arg not in ("self", "cls") and not node.args.defaults:
            yield unit.replace_node(
                arg, f"{unit.get_code(arg)}=None" if arg.annotation is None else f"{unit.get_code(arg)} = None"
            )


def _add_default(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    parent = unit.get_parent(node)
    if not is_read(node) or not isinstance(parent, ast.Assign | ast.Return | ast.For | ast.comprehension | ast.Call):
        return
    if is_called(unit, node):
        return
    for default in ("[]", "0", "''", "{}", "None"):
        yield substitute(unit, node, f"{get_operand(unit, node)} or {default}")


def _drop_element(node: ast.Tuple | ast.List | ast.Set, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Drop an element of a literal."""
    if is_read(node) and 2 <= len(node.elts) <= 12:
        yield from (remove_item(unit, node.elts, index) for index in range(len(node.elts)))


_EXPRESSIONS = (ast.Name, ast.BinOp, ast.Attribute, ast.Subscript, ast.Call, ast.UnaryOp)
_SUBSCRIPTABLE = (ast.Name, ast.Attribute, ast.Call, ast.ListComp, ast.Subscript)

TEMPLATES = (
    Template("const", 16, (ast.Constant,), _replace_constant),
    Template("off_by_one", 7, _EXPRESSIONS, _shift_by_one),
    Template("off_by_one", 6, (ast.Call,), _change_range),
    Template("slice_add", 4, _SUBSCRIPTABLE, _take_part),
    Template("slice_add", 6, (ast.Subscript,), _change_subscript),
    Template("default_value", 5, (ast.FunctionDef, ast.AsyncFunctionDef), _change_default),
    Template("default_value", 0.7, (ast.Name, ast.Attribute, ast.Call), _add_default),
    Template("drop_operand", 1.5, (ast.Tuple, ast.List, ast.Set), _drop_element),
)
