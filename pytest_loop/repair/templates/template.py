"""Define a template of edits, and format the code of an expression within another one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.text_edits import TextEdit, TextEdits


@dataclass(frozen=True)
class Hints:
    """Hints from failing tests: strings, their special characters, exceptions, and missing names with similar ones."""

    strings: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Template:
    """One kind of edit: the nodes it applies to, and how likely such an edit is right (`prior`).

    With `needs_missing_name`, the template applies only if a test fails because a name is missing.
    """

    name: str
    prior: float
    nodes: tuple[type[ast.AST], ...]
    edits: Callable[[Any, EditUnit, Hints], Iterator[TextEdits]]
    needs_missing_name: bool = False


_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Attribute, ast.Await, ast.Starred)
_ATOMS = (
    ast.Name,
    ast.Constant,
    ast.Call,
    ast.Attribute,
    ast.Subscript,
    ast.List,
    ast.Dict,
    ast.Set,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.JoinedStr,
)


def is_read(node: ast.AST) -> bool:
    """Return whether an expression is read, not assigned to."""
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def is_atom(node: ast.expr) -> bool:
    """Return whether an expression needs no brackets beside an operator."""
    return isinstance(node, _ATOMS)


def get_operand(unit: EditUnit, node: ast.expr) -> str:
    """Return the code of an expression, in brackets if an operator beside it would split it."""
    text = unit.get_code(node)
    if isinstance(node, _ATOMS) or (isinstance(node, ast.Tuple | ast.GeneratorExp) and text.startswith("(")):
        return text
    return f"({text})"


def get_term(unit: EditUnit, node: ast.expr) -> str:
    """Return the code of an expression as an operand of plus or minus."""
    arithmetic = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
    is_term = isinstance(node, ast.BinOp) and isinstance(node.op, arithmetic)
    return unit.get_code(node) if is_term else get_operand(unit, node)


def substitute(unit: EditUnit, node: ast.expr, text: str, *, is_atom: bool = False) -> TextEdits:
    """Replace an expression by a text, in brackets if operators around it require them and the text is no atom."""
    return unit.replace_node(node, f"({text})" if not is_atom and _needs_brackets(unit, node) else text)


def _needs_brackets(unit: EditUnit, node: ast.expr) -> bool:
    """Return whether an expression is the operand of an operator, call or attribute, and has no brackets of its own."""
    parent = unit.get_parent(node)
    if not (
        isinstance(parent, _OPERATORS) or (isinstance(parent, ast.Subscript | ast.Call) and _is_head(parent, node))
    ):
        return False
    start, end = unit.source.get_span(node)
    text = unit.source.text
    return not (text[:start].rstrip().endswith("(") and text[end:].lstrip().startswith(")"))


def _is_head(parent: ast.Subscript | ast.Call, node: ast.expr) -> bool:
    return node is (parent.value if isinstance(parent, ast.Subscript) else parent.func)


def remove_item(unit: EditUnit, items: Sequence[ast.expr | ast.keyword], index: int) -> TextEdits:
    """Remove one of several items with the separator after it; for the last item, with the separator before it."""
    start, end = unit.source.get_span(items[index])
    if index + 1 < len(items):
        return (TextEdit(start, unit.source.get_span(items[index + 1])[0], ""),)
    return (TextEdit(unit.source.get_span(items[index - 1])[1], end, ""),)


def is_whole_value(unit: EditUnit, node: ast.expr) -> bool:
    """Return whether an expression is read, and neither called, nor unpacked, nor the base of an attribute."""
    if not is_read(node) or not is_replaceable(unit, node) or is_called(unit, node):
        return False
    return not isinstance(unit.get_parent(node), ast.Attribute | ast.Starred)


def is_called(unit: EditUnit, node: ast.expr) -> bool:
    """Return whether an expression is the function of a call."""
    parent = unit.get_parent(node)
    return isinstance(parent, ast.Call) and parent.func is node


def is_replaceable(unit: EditUnit, node: ast.expr) -> bool:
    """Return whether other text may replace an expression; not so for the bare argument of `f(x for x in y)`."""
    if isinstance(node, ast.Slice | ast.Starred | ast.FormattedValue | ast.JoinedStr):
        return False
    if isinstance(unit.get_parent(node), ast.JoinedStr):
        return False
    return not (isinstance(node, ast.GeneratorExp) and isinstance(unit.get_parent(node), ast.Call))
