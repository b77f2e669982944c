"""Templates for wrong names, and for expressions that exist elsewhere in the file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import combinations

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import (
    Hints,
    Template,
    get_operand,
    get_term,
    is_atom,
    is_called,
    is_read,
    is_replaceable,
    is_whole_value,
    substitute,
)
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_MODULES = (
    "argparse", "asyncio", "base64", "bisect", "collections", "csv", "dataclasses", "datetime", "decimal", "enum",
    "copy", "fractions", "functools", "hashlib", "heapq", "io", "itertools", "json", "logging", "math", "operator",
    "os", "pathlib", "random", "re", "shutil", "statistics", "string", "struct", "sys", "tempfile",
    "subprocess", "textwrap",
    "threading", "time", "typing", "uuid", "warnings",
)  # fmt: skip
_MAX_LENGTH = 60
_MAX_ATTRIBUTES = 6
_MODULES_OF_NAMES = {
    "Counter": "collections", "defaultdict": "collections", "deque": "collections", "namedtuple": "collections",
    "OrderedDict": "collections", "dataclass": "dataclasses", "field": "dataclasses", "date": "datetime",
    "timedelta": "datetime", "timezone": "datetime", "Decimal": "decimal", "Enum": "enum", "Fraction": "fractions",
    "lru_cache": "functools", "partial": "functools", "reduce": "functools", "wraps": "functools", "chain": "itertools",
    "combinations": "itertools", "permutations": "itertools", "product": "itertools", "accumulate": "itertools",
    "ceil": "math", "floor": "math", "gcd": "math", "sqrt": "math", "prod": "math", "Path": "pathlib",
    "mean": "statistics", "median": "statistics", "Any": "typing", "Optional": "typing", "List": "typing",
    "Dict": "typing", "heappush": "heapq", "heappop": "heapq", "deepcopy": "copy", "sleep": "time",
}  # fmt: skip


def _replace_name(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use another visible name."""
    names = unit.list_visible_names(node)
    if isinstance(node.ctx, ast.Load) and node.id not in names and node.id not in unit.module_names:
        parent = unit.get_parent(node)
        if not (isinstance(parent, ast.Call) and parent.func is not node):
            return
    yield from (unit.replace_node(node, name) for name in names if name != node.id)


def _replace_constant(node: ast.Constant, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use a visible name instead of a constant."""
    if isinstance(node.value, int | float | str) and is_replaceable(unit, node):
        yield from (unit.replace_node(node, name) for name in unit.list_visible_names(node))


def _use_module_name(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use another name that the module defines."""
    if isinstance(node.ctx, ast.Load):
        yield from (unit.replace_node(node, name) for name in unit.module_names if name != node.id)


def _swap_names(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Swap two names throughout a statement."""
    if hasattr(node, "body"):
        return
    names = [use for use in ast.walk(node) if isinstance(use, ast.Name) and use in unit.parents]
    ids = list(dict.fromkeys(use.id for use in names))[:5]
    for first, second in combinations(ids, 2):
        swapped = {first: second, second: first}
        yield tuple(edit for name in names if name.id in swapped for edit in unit.replace_node(name, swapped[name.id]))


def _replace_attribute(node: ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    base = unit.get_code(node.value)
    if is_called(unit, node):
        return
    names = (name for name in unit.source.list_attributes(base) if name != node.attr)
    yield from (unit.replace_node(node, f"{base}.{name}") for name in names)


def _drop_attribute(node: ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if is_read(node):
        yield unit.replace_node(node, unit.get_code(node.value))


def _toggle_self(node: ast.Name | ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use an attribute of `self` instead of a local name, or the other way round."""
    if "self" not in unit.name_scopes:
        return
    if isinstance(node, ast.Name):
        if node.id != "self" and (f"self.{node.id}" in unit.source.text or node.id not in unit.name_scopes):
            yield unit.replace_node(node, f"self.{node.id}")
    elif isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in unit.name_scopes:
        yield unit.replace_node(node, node.attr)


def _add_attribute(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use an attribute of a value instead of the value."""
    parent = unit.get_parent(node)
    if isinstance(node.ctx, ast.Load) and not isinstance(parent, ast.Attribute) and node.id in unit.name_scopes:
        yield from (unit.replace_node(node, f"{node.id}.{name}") for name in unit.source.list_attributes(node.id))


def _fix_spelling(node: ast.Name | ast.Attribute | ast.stmt, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Replace a missing name by a similar one."""
    if isinstance(node, ast.Name):
        yield from (unit.replace_node(node, name) for name in hints.missing.get(node.id, ()))
    elif isinstance(node, ast.Attribute):
        end = unit.source.get_span(node)[1]
        yield from ((TextEdit(end - len(node.attr), end, name),) for name in hints.missing.get(node.attr, ()))
    else:
        start, text = unit.source.get_span(node)[0], unit.get_code(node)
        for wrong, names in hints.missing.items():
            for at in (match.start() + start for match in re.finditer(rf"\b{wrong}\b", text)):
                yield from ((TextEdit(at, at + len(wrong), name),) for name in names)


def _add_import(node: ast.Name, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """Import a missing name from the standard library."""
    if node.id not in hints.missing:
        return
    offset = _find_import_offset(unit)
    if node.id in _MODULES:
        yield (TextEdit(offset, offset, f"import {node.id}\n"),)
    if node.id in _MODULES_OF_NAMES:
        yield (TextEdit(offset, offset, f"from {_MODULES_OF_NAMES[node.id]} import {node.id}\n"),)


def _find_import_offset(unit: EditUnit) -> int:
    """Return the offset after the docstring and the imports from `__future__`."""
    line = 1
    for index, stmt in enumerate(unit.source.tree.body):
        is_docstring = index == 0 and isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
        is_future = isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"
        if not (is_docstring or is_future):
            break
        line = (stmt.end_lineno or stmt.lineno) + 1
    return unit.source.get_line_start(line)


def _use_other_expression(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use another expression of the function."""
    parent = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node) or isinstance(parent, ast.Starred) or is_called(unit, node):
        return
    code = unit.get_code(node)
    for text, is_single in _list_expressions(unit).items():
        if text != code:
            yield substitute(unit, node, text, is_atom=is_single)


def _list_expressions(unit: EditUnit) -> dict[str, bool]:
    """Return the short expressions of a unit, each with whether it is an atom."""
    expressions = {
        unit.get_code(node): is_atom(node)
        for node in unit.expressions
        if isinstance(node, ast.Call | ast.BinOp | ast.Subscript | ast.Attribute | ast.Compare | ast.ListComp)
        and not is_called(unit, node)
    }
    return {text: is_single for text, is_single in expressions.items() if len(text) <= _MAX_LENGTH}


def _add_operand(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Combine a value with a visible name, `2` or an attribute by an arithmetic operator."""
    if not is_whole_value(unit, node):
        return
    attributes = dict.fromkeys(
        unit.get_code(expression) for expression in unit.expressions if isinstance(expression, ast.Attribute)
    )
    for name in (*unit.list_visible_names(node), "2", *list(attributes)[:_MAX_ATTRIBUTES]):
        for sign in ("+", "-", "*", "//", "%"):
            code = get_term(unit, node) if sign in "+-" else get_operand(unit, node)
            yield substitute(unit, node, f"{code} {sign} {name}")


def _return_attribute(node: ast.Return, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Return an attribute of `self` instead of the value."""
    if node.value is not None and "self" in unit.name_scopes:
        value = node.value
        yield from (unit.replace_node(value, f"self.{name}") for name in unit.source.list_attributes("self"))


def _prefer_attribute(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Use an attribute of `self` or another value, and the expression only if that is empty."""
    if not is_whole_value(unit, node) or not isinstance(
        unit.get_parent(node), ast.Call | ast.Return | ast.Assign | ast.keyword
    ):
        return
    attributes = [f"self.{name}" for name in unit.source.list_attributes("self")] if "self" in unit.name_scopes else []
    for other in (*attributes[:12], *unit.list_visible_names(node)):
        if other not in ("self", unit.get_code(node)):
            yield substitute(unit, node, f"{other} or {get_operand(unit, node)}")


_EXPRESSIONS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.Constant, ast.ListComp)

TEMPLATES = (
    Template("var_swap", 11, (ast.Name,), _replace_name),
    Template("var_swap", 2, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr), _swap_names),
    Template("var_swap", 4, (ast.Constant,), _replace_constant),
    Template("donor_name", 1, (ast.Name,), _use_module_name),
    Template("attr_swap", 3, (ast.Attribute,), _replace_attribute),
    Template("drop_attr", 1, (ast.Attribute,), _drop_attribute),
    Template("self_attr", 4, (ast.Name, ast.Attribute), _toggle_self),
    Template("self_attr", 0.7, (ast.Name,), _add_attribute),
    Template(
        "spelling", 60, (ast.Name, ast.Attribute, ast.Import, ast.ImportFrom), _fix_spelling, needs_missing_name=True
    ),
    Template("add_import", 8, (ast.Name,), _add_import, needs_missing_name=True),
    Template("donor_expr", 3, _EXPRESSIONS, _use_other_expression),
    Template("return_expr", 1.5, (ast.Return,), _return_attribute),
    Template("default_value", 1, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp), _prefer_attribute),
    Template("extend_expr", 2, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp), _add_operand),
)
