"""What a template is, and how the text of an expression is set into another one."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.text_edits import TextEdits


@dataclass(frozen=True)
class Hints:
    """What is known besides the code: words of the tests, signs in the texts they use, and exceptions they know; and
    names that were missing, with those that come close."""

    strings: tuple[str, ...] = ()
    signs: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    missing: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Template:
    """One kind of edit: the nodes it looks at, and how often such an edit was the right one."""

    name: str
    prior: float
    nodes: tuple[type[ast.AST], ...]
    edits: Callable[[Any, EditUnit, Hints], Iterator[TextEdits]]


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
    """Whether an expression is read, not written to."""
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def is_atom(node: ast.expr) -> bool:
    """Whether no operator can tear it apart."""
    return isinstance(node, _ATOMS)


def operand(unit: EditUnit, node: ast.expr) -> str:
    """The text of an expression, in brackets where an operator next to it would tear it apart."""
    text = unit.get_code(node)
    if isinstance(node, _ATOMS) or (isinstance(node, ast.Tuple | ast.GeneratorExp) and text.startswith("(")):
        return text
    return f"({text})"


def term(unit: EditUnit, node: ast.expr) -> str:
    """The text of an expression before or after plus and minus."""
    return unit.get_code(node) if isinstance(node, ast.BinOp) and _is_strong(node.op) else operand(unit, node)


def _is_strong(op: ast.operator) -> bool:
    return isinstance(op, ast.Add | ast.Sub | ast.Mult | ast.Div | ast.FloorDiv | ast.Mod | ast.Pow)


def instead(unit: EditUnit, node: ast.expr, text: str, *, is_atom: bool = False) -> TextEdits:
    """A whole expression in the place of another, in brackets where its surroundings ask for them."""
    return unit.replace_node(node, f"({text})" if not is_atom and needs_brackets(unit, node) else text)


def needs_brackets(unit: EditUnit, node: ast.expr) -> bool:
    """Whether an operator stands around an expression, and its own brackets do not."""
    above = unit.get_parent(node)
    if not (isinstance(above, _OPERATORS) or (isinstance(above, ast.Subscript | ast.Call) and _is_head(above, node))):
        return False
    start, end = unit.source.get_span(node)
    text = unit.source.text
    return not (text[:start].rstrip().endswith("(") and text[end:].lstrip().startswith(")"))


def _is_head(above: ast.Subscript | ast.Call, node: ast.expr) -> bool:
    return node is (above.value if isinstance(above, ast.Subscript) else above.func)


def is_replaceable(unit: EditUnit, node: ast.expr) -> bool:
    """Whether other text may stand in the place of an expression: not so for the bare argument `f(x for x in y)`."""
    if isinstance(node, ast.Slice | ast.Starred | ast.FormattedValue | ast.JoinedStr):
        return False
    if isinstance(unit.get_parent(node), ast.JoinedStr):
        return False
    return not (isinstance(node, ast.GeneratorExp) and isinstance(unit.get_parent(node), ast.Call))
