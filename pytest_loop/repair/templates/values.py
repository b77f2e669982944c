"""Values that are wrong: constants, bounds one too far, slices, defaults."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from difflib import SequenceMatcher

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.shape import Hints, Template, instead, is_read, is_replaceable, operand, term
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_NEAR = 0.7
_SHORT = 16


def _docstring(node: ast.Constant, unit: EditUnit) -> bool:
    return isinstance(unit.get_parent(node), ast.Expr)


def _other_values(node: ast.Constant, unit: EditUnit, hints: Hints) -> Iterator[str]:
    value = node.value
    if isinstance(value, bool):
        yield repr(not value)
    elif isinstance(value, int | float):
        yield from _other_numbers(value, unit)
    elif isinstance(value, str):
        yield from map(repr, _other_texts(value, unit, hints))
    elif value is None:
        yield from ("0", "''", "[]", "{}", "False", "True")


def _other_numbers(value: float, unit: EditUnit) -> Iterator[str]:
    if isinstance(value, int):
        yield from (str(one) for one in (value + 1, value - 1, 1 - value, 0, 1, 2, -value, 10, value * 2, value * 10))
    else:
        yield from (repr(one) for one in (value + 1, value - 1, 0.0, 1.0, -value, value / 10, value * 10, value / 2))
    for other in (*unit.nodes, *ast.walk(unit.source.tree)):
        if isinstance(other, ast.Constant) and type(other.value) in (int, float):
            yield repr(other.value)


def _other_texts(value: str, unit: EditUnit, hints: Hints) -> Iterator[str]:
    yield from (word for word in hints.strings if word != value and _is_near(word, value))
    yield from ("", " ", value.strip(), value.lower(), value.upper(), value.title(), value[:1], f"{value} ")
    yield from (word for word in unit.module_strings if len(word) <= _SHORT and (len(value) < 3 or len(word) > 1))
    if len(value) <= _SHORT:
        yield from (value[:at] + value[at + 1 :] for at in range(len(value)))


def _is_near(word: str, value: str) -> bool:
    return len(value) > 2 and SequenceMatcher(None, word, value).ratio() >= _NEAR


def _const(node: ast.Constant, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    if _docstring(node, unit) or isinstance(unit.get_parent(node), ast.JoinedStr | ast.FormattedValue):
        return
    everywhere = [one for one in unit.nodes if isinstance(one, ast.Constant) and _is_same(one, node)]
    for text in dict.fromkeys(_other_values(node, unit, hints)):
        yield instead(unit, node, text, is_atom=not text.startswith("-"))
    if len(everywhere) > 1 and everywhere[0] is node:
        for text in dict.fromkeys(_other_values(node, unit, hints)):
            yield tuple(piece for one in everywhere for piece in unit.replace_node(one, text))


def _is_same(one: ast.Constant, node: ast.Constant) -> bool:
    return type(one.value) is type(node.value) and one.value == node.value


def _is_countable(node: ast.expr) -> bool:
    return isinstance(node, ast.Name | ast.BinOp | ast.Attribute | ast.Subscript | ast.UnaryOp) or (
        isinstance(node, ast.Call) and not isinstance(node.func, ast.Attribute)
    )


def _off_by_one(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """An amount, one more and one less, wherever amounts are used."""
    above = unit.get_parent(node)
    if not (_is_countable(node) and is_read(node) and is_replaceable(unit, node)) or isinstance(above, ast.Attribute):
        return
    if isinstance(above, ast.Call) and above.func is node:
        return
    if isinstance(above, ast.BinOp) and isinstance(node, ast.BinOp):
        return
    for sign in "+-":
        yield instead(unit, node, f"{term(unit, node)} {sign} 1")


def _range(node: ast.Call, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Another start, end or step of a range."""
    if not isinstance(node.func, ast.Name) or node.func.id != "range" or node.keywords:
        return
    parts = [unit.get_code(one) for one in node.args]
    if len(parts) == 1:
        starts = ["1", "2", *unit.list_visible_names(node)]
        yield from (unit.replace_node(node, f"range({start}, {parts[0]})") for start in starts)
        yield unit.replace_node(node, f"range(1, {term(unit, node.args[0])} + 1)")
        yield unit.replace_node(node, f"range({term(unit, node.args[0])} - 1, -1, -1)")
        yield unit.replace_node(node, f"range(0, {parts[0]}, 2)")
    elif len(parts) == 2:
        yield unit.replace_node(node, f"range({parts[1]})")
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]}, -1)")
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]}, 2)")
        yield unit.replace_node(node, f"range({term(unit, node.args[0])} + 1, {term(unit, node.args[1])} + 1)")
    else:
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]})")
        yield unit.replace_node(node, f"range({parts[0]}, {parts[1]}, -{operand(unit, node.args[2])})")


def _slice_add(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A part of something instead of the whole."""
    above = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node):
        return
    if isinstance(above, ast.Call) and above.func is node:
        return
    if isinstance(above, ast.Attribute) and isinstance(unit.find_statement(node), ast.Expr):
        return  # a change of a copy changes nothing
    base = operand(unit, node)
    names = [name for name in unit.list_visible_names(node) if name != unit.get_code(node)]
    if isinstance(node, ast.Name):
        for name in names:
            yield from (unit.replace_node(node, f"{base}[{part}]") for part in (f"{name}:", f":{name}", name))
    for part in ("1:", ":-1", "::-1", "0", "-1", "2:", ":1", "1"):
        yield unit.replace_node(node, f"{base}[{part}]")


def _subscript(node: ast.Subscript, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Other bounds, another index, or none."""
    base = operand(unit, node.value)
    if is_read(node):
        yield unit.replace_node(node, base)
    if isinstance(node.slice, ast.Slice):
        parts = (node.slice.lower, node.slice.upper, node.slice.step)
        lower, upper, step = (unit.get_code(one) if one else "" for one in parts)
        tail = f":{step}" if step else ""
        for one, two in ((lower, ""), ("", upper), (upper, lower), (lower, "-1"), ("1", upper), (lower, upper)):
            for end in dict.fromkeys((tail, "", ":-1")):
                yield unit.replace_node(node, f"{base}[{one}:{two}{end}]")
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


def _default_value(node: ast.FunctionDef | ast.AsyncFunctionDef, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """The default of a parameter, or of a value that is empty."""
    for default in (*node.args.defaults, *(one for one in node.args.kw_defaults if one is not None)):
        if isinstance(default, ast.Constant):
            yield from (unit.replace_node(default, text) for text in dict.fromkeys(_other_values(default, unit, hints)))
        else:
            yield unit.replace_node(default, "None")
    for arg in node.args.args[-1:]:
        if arg.arg not in ("self", "cls") and not node.args.defaults:
            yield unit.replace_node(
                arg, f"{unit.get_code(arg)}=None" if arg.annotation is None else f"{unit.get_code(arg)} = None"
            )


def _or_default(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    above = unit.get_parent(node)
    if not is_read(node) or not isinstance(above, ast.Assign | ast.Return | ast.For | ast.comprehension | ast.Call):
        return
    if isinstance(above, ast.Call) and above.func is node:
        return
    for default in ("[]", "0", "''", "{}", "None"):
        yield instead(unit, node, f"{operand(unit, node)} or {default}")


def _element(node: ast.Tuple | ast.List | ast.Set, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A literal list without one of its elements, or with two of them exchanged."""
    if not is_read(node) or not 2 <= len(node.elts) <= 12:
        return
    for at, one in enumerate(node.elts):
        start, end = unit.source.get_span(one)
        if at + 1 < len(node.elts):
            end = unit.source.get_span(node.elts[at + 1])[0]
        else:
            start = unit.source.get_span(node.elts[at - 1])[1]
        yield (TextEdit(start, end, ""),)


_EXPRESSIONS = (ast.Name, ast.BinOp, ast.Attribute, ast.Subscript, ast.Call, ast.UnaryOp)
_THINGS = (ast.Name, ast.Attribute, ast.Call, ast.ListComp, ast.Subscript)

TEMPLATES = (
    Template("const", 16, (ast.Constant,), _const),
    Template("off_by_one", 7, _EXPRESSIONS, _off_by_one),
    Template("off_by_one", 6, (ast.Call,), _range),
    Template("slice_add", 4, _THINGS, _slice_add),
    Template("slice_add", 6, (ast.Subscript,), _subscript),
    Template("default_value", 5, (ast.FunctionDef, ast.AsyncFunctionDef), _default_value),
    Template("default_value", 0.7, (ast.Name, ast.Attribute, ast.Call), _or_default),
    Template("drop_operand", 1.5, (ast.Tuple, ast.List, ast.Set), _element),
)
