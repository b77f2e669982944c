"""Names that are wrong, and expressions that stand elsewhere in the file and are right here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.shape import Hints, Template, instead, is_atom, is_read, is_replaceable, operand, term
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_MODULES = (
    "argparse", "asyncio", "base64", "bisect", "collections", "csv", "dataclasses", "datetime", "decimal", "enum",
    "copy", "fractions", "functools", "hashlib", "heapq", "io", "itertools", "json", "logging", "math", "operator",
    "os", "pathlib", "random", "re", "shutil", "statistics", "string", "struct", "sys", "tempfile",
    "subprocess", "textwrap",
    "threading", "time", "typing", "uuid", "warnings",
)  # fmt: skip
_PAGE = 60
_FEW = 6
_HOMES = {
    "Counter": "collections", "defaultdict": "collections", "deque": "collections", "namedtuple": "collections",
    "OrderedDict": "collections", "dataclass": "dataclasses", "field": "dataclasses", "date": "datetime",
    "timedelta": "datetime", "timezone": "datetime", "Decimal": "decimal", "Enum": "enum", "Fraction": "fractions",
    "lru_cache": "functools", "partial": "functools", "reduce": "functools", "wraps": "functools", "chain": "itertools",
    "combinations": "itertools", "permutations": "itertools", "product": "itertools", "accumulate": "itertools",
    "ceil": "math", "floor": "math", "gcd": "math", "sqrt": "math", "prod": "math", "Path": "pathlib",
    "mean": "statistics", "median": "statistics", "Any": "typing", "Optional": "typing", "List": "typing",
    "Dict": "typing", "heappush": "heapq", "heappop": "heapq", "deepcopy": "copy", "sleep": "time",
}  # fmt: skip


def _var_swap(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Another name that is known here."""
    names = unit.list_visible_names(node)
    if isinstance(node.ctx, ast.Load) and node.id not in names and node.id not in unit.module_names:
        above = unit.get_parent(node)
        if not (isinstance(above, ast.Call) and above.func is not node):
            return
    yield from (unit.replace_node(node, name) for name in names if name != node.id)


def _named(node: ast.Constant, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A name that is known here instead of a value that was written down."""
    if isinstance(node.value, int | float | str) and is_replaceable(unit, node):
        yield from (unit.replace_node(node, name) for name in unit.list_visible_names(node))


def _donor_name(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A name of the module."""
    if isinstance(node.ctx, ast.Load):
        yield from (unit.replace_node(node, name) for name in unit.module_names if name != node.id)


def _rename(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Two names of one statement, exchanged throughout it."""
    if hasattr(node, "body"):
        return
    names = [one for one in ast.walk(node) if isinstance(one, ast.Name) and one in unit.parents]
    ids = list(dict.fromkeys(one.id for one in names))[:5]
    for at, one in enumerate(ids):
        for two in ids[at + 1 :]:
            other = {one: two, two: one}
            yield tuple(
                piece for name in names if name.id in other for piece in unit.replace_node(name, other[name.id])
            )


def _attributes(unit: EditUnit) -> list[str]:
    """The attributes that this file reads or writes."""
    found = (one.attr for one in ast.walk(unit.source.tree) if isinstance(one, ast.Attribute))
    fields = (
        stmt.target.id
        for one in unit.source.tree.body
        if isinstance(one, ast.ClassDef)
        for stmt in one.body
        if isinstance(stmt, ast.AnnAssign) and isinstance(stmt.target, ast.Name)
    )
    return list(dict.fromkeys((*found, *fields)))


def _attr_swap(node: ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    base = unit.get_code(node.value)
    above = unit.get_parent(node)
    if isinstance(above, ast.Call) and above.func is node:
        return
    yield from (unit.replace_node(node, f"{base}.{name}") for name in _attributes(unit) if name != node.attr)


def _drop_attr(node: ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if is_read(node):
        yield unit.replace_node(node, unit.get_code(node.value))


def _self_attr(node: ast.Name | ast.Attribute, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """An attribute of the object, not a name of the function, or the other way round."""
    if "self" not in unit.name_scopes:
        return
    if isinstance(node, ast.Name):
        if node.id != "self" and (f"self.{node.id}" in unit.source.text or node.id not in unit.name_scopes):
            yield unit.replace_node(node, f"self.{node.id}")
    elif isinstance(node.value, ast.Name) and node.value.id == "self" and node.attr in unit.name_scopes:
        yield unit.replace_node(node, node.attr)


def _add_attr(node: ast.Name, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """An attribute of a thing instead of the thing."""
    above = unit.get_parent(node)
    if isinstance(node.ctx, ast.Load) and not isinstance(above, ast.Attribute) and node.id in unit.name_scopes:
        yield from (unit.replace_node(node, f"{node.id}.{name}") for name in _attributes(unit))


def _spelling(node: ast.Name | ast.Attribute | ast.stmt, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """A name that is not there, as the thing that has it spells it."""
    if isinstance(node, ast.Name):
        yield from (unit.replace_node(node, name) for name in hints.missing.get(node.id, ()))
    elif isinstance(node, ast.Attribute):
        end = unit.source.get_span(node)[1]
        yield from ((TextEdit(end - len(node.attr), end, name),) for name in hints.missing.get(node.attr, ()))
    else:
        start, text = unit.source.get_span(node)[0], unit.get_code(node)
        for wrong, names in hints.missing.items():
            for at in (found.start() + start for found in re.finditer(rf"\b{wrong}\b", text)):
                yield from ((TextEdit(at, at + len(wrong), name),) for name in names)


def _add_import(node: ast.Name, unit: EditUnit, hints: Hints) -> Iterator[TextEdits]:
    """A module of the standard library that is used and not imported."""
    if node.id not in hints.missing:
        return
    place = _import_place(unit)
    if node.id in _MODULES:
        yield (place(f"import {node.id}\n"),)
    if node.id in _HOMES:
        yield (place(f"from {_HOMES[node.id]} import {node.id}\n"),)


class _Place:
    """Where an import may stand: after the docstring and the imports from the future."""

    def __init__(self, offset: int) -> None:
        self._offset = offset

    def __call__(self, text: str) -> TextEdit:
        return TextEdit(self._offset, self._offset, text)


def _import_place(unit: EditUnit) -> _Place:
    line = 1
    for at, stmt in enumerate(unit.source.tree.body):
        is_docstring = at == 0 and isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant)
        is_future = isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"
        if not (is_docstring or is_future):
            break
        line = (stmt.end_lineno or stmt.lineno) + 1
    return _Place(unit.source.get_line_start(line))


def _donor_expr(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """An expression that stands elsewhere in the function."""
    above = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node) or isinstance(above, ast.Starred):
        return
    if isinstance(above, ast.Call) and above.func is node:
        return
    own = unit.get_code(node)
    for text, is_whole in _donors(unit).items():
        if text != own:
            yield instead(unit, node, text, is_atom=is_whole)


def _donors(unit: EditUnit) -> dict[str, bool]:
    """The expressions of a function that are more than a name and less than a page, and whether nothing splits them."""
    found = {
        unit.get_code(one): is_atom(one)
        for one in unit.expressions
        if isinstance(one, ast.Call | ast.BinOp | ast.Subscript | ast.Attribute | ast.Compare | ast.ListComp)
        and not (isinstance(up := unit.get_parent(one), ast.Call) and up.func is one)
    }
    return {text: whole for text, whole in found.items() if len(text) <= _PAGE}


def _extend_expr(node: ast.expr, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """One operand more."""
    above = unit.get_parent(node)
    if not is_read(node) or not is_replaceable(unit, node):
        return
    if isinstance(above, ast.Attribute | ast.Starred) or (isinstance(above, ast.Call) and above.func is node):
        return
    attributes = dict.fromkeys(unit.get_code(one) for one in unit.expressions if isinstance(one, ast.Attribute))
    for name in (*unit.list_visible_names(node), "2", *list(attributes)[:_FEW]):
        for sign in ("+", "-", "*", "//", "%"):
            yield instead(unit, node, f"{term(unit, node) if sign in '+-' else operand(unit, node)} {sign} {name}")


_THINGS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Compare, ast.Constant, ast.ListComp)

TEMPLATES = (
    Template("var_swap", 11, (ast.Name,), _var_swap),
    Template("var_swap", 2, (ast.Assign, ast.AugAssign, ast.Return, ast.Expr), _rename),
    Template("var_swap", 4, (ast.Constant,), _named),
    Template("donor_name", 1, (ast.Name,), _donor_name),
    Template("attr_swap", 3, (ast.Attribute,), _attr_swap),
    Template("drop_attr", 1, (ast.Attribute,), _drop_attr),
    Template("self_attr", 4, (ast.Name, ast.Attribute), _self_attr),
    Template("self_attr", 0.7, (ast.Name,), _add_attr),
    Template("spelling", 60, (ast.Name, ast.Attribute, ast.Import, ast.ImportFrom), _spelling),
    Template("add_import", 8, (ast.Name,), _add_import),
    Template("donor_expr", 3, _THINGS, _donor_expr),
    Template("extend_expr", 2, (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp), _extend_expr),
)
