"""Statements that are missing, too many, or in the wrong place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent, indent

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.shape import Hints, Template
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Break, ast.Continue, ast.AnnAssign)
_EMPTY = ("None", "[]", "0", "''", "False", "True", "{}", "1", "-1")
_FEW = 5


def _line(unit: EditUnit, stmt: ast.stmt, text: str, *, is_after: bool = False, step: str = "") -> TextEdits:
    """A new line before or after a statement, as deep as it, or deeper."""
    line = (stmt.end_lineno or stmt.lineno) + 1 if is_after else _first_line(stmt)
    at = unit.source.get_line_start(line)
    newline = "" if at == 0 or unit.source.text[at - 1] == "\n" else "\n"
    return (TextEdit(at, at, newline + indent(text, unit.get_indent(stmt) + step) + "\n"),)


def _first_line(stmt: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(stmt, "decorator_list", [])
    return min([stmt.lineno, *(one.lineno for one in decorators)])


def _lines(unit: EditUnit, stmt: ast.stmt) -> tuple[int, int]:
    """The span of its lines."""
    return unit.source.get_line_start(_first_line(stmt)), unit.source.get_line_start(
        (stmt.end_lineno or stmt.lineno) + 1
    )


def _is_movable(unit: EditUnit, stmt: ast.AST) -> bool:
    if not isinstance(stmt, ast.stmt) or stmt is unit.node or not unit.is_alone_on_lines(stmt):
        return False
    return not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))


def _simple_lines(unit: EditUnit) -> list[str]:
    """The simple statements of a function, each once."""
    found = (one for one in unit.nodes if isinstance(one, _SIMPLE) and _is_movable(unit, one))
    return [text for text in dict.fromkeys(map(unit.get_code, found)) if "\n" not in text]


def _state_update(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """An assignment that is missing next to others of its kind: a counter not counted, a name not moved on."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    updates = [one for one in unit.nodes if isinstance(one, ast.AugAssign) and isinstance(one.target, ast.Name)]
    names = [name for name, owners in unit.name_scopes.items() if None in owners and name not in ("self", "cls")]
    lines = [f"{name} {sign} 1" for name in names for sign in ("+=", "-=")]
    lines += [unit.get_code(one) for one in updates]
    lines += [f"{one} = {two}" for one in names for two in names if one != two]
    for text in dict.fromkeys(lines):
        yield _line(unit, node, text, is_after=True)
        yield _line(unit, node, text)


def _stmt_copy(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A statement of the function, once more in another place."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    for text in _simple_lines(unit):
        yield _line(unit, node, text)
        if text != unit.get_code(node):
            yield _line(unit, node, text, is_after=True)
            if isinstance(node, _SIMPLE):
                yield unit.replace_node(node, text)


def _stmt_move(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A statement before its neighbour, or one level out or in."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    body = unit.find_body(node) or []
    start, end = _lines(unit, node)
    text = unit.source.text[start:end]
    for one, two in pairwise(body):
        if one is node and _is_movable(unit, two):
            first, last = _lines(unit, two)
            yield (TextEdit(start, end, unit.source.text[first:last]), TextEdit(first, last, text))
        if two is node and isinstance(one, ast.If | ast.For | ast.While | ast.With) and _is_movable(unit, one):
            yield (TextEdit(start, end, indent(text, "    ")),)
    above = unit.get_parent(node)
    if body and body[-1] is node and isinstance(above, ast.stmt) and above is not unit.node:
        outer = unit.get_indent(above)
        moved = indent(dedent(text), outer)
        yield (TextEdit(start, end, moved if len(body) > 1 else f"{unit.get_indent(node)}pass\n{moved}"),)
        if len(body) > 1:
            first, _last = _lines(unit, above)
            yield (TextEdit(first, first, moved), TextEdit(start, end, ""))


def _stmt_delete(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if not _is_movable(unit, node) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    body = unit.find_body(node) or [node]
    start, end = _lines(unit, node)
    yield (TextEdit(start, end, ""),) if len(body) > 1 else unit.replace_node(node, "pass")
    if isinstance(node, ast.If | ast.While | ast.With | ast.Try) and not getattr(node, "orelse", ()):
        inner = unit.source.text[_lines(unit, node.body[0])[0] : _lines(unit, node.body[-1])[1]]
        if unit.is_alone_on_lines(node.body[0]):
            yield (TextEdit(start, end, indent(dedent(inner), unit.get_indent(node))),)


def _results(unit: EditUnit, node: ast.stmt) -> list[str]:
    names = [name for name in unit.list_visible_names(node) if name not in ("self", "cls")]
    used = [unit.get_code(one.value) for one in unit.nodes if isinstance(one, ast.Return) and one.value is not None]
    return list(dict.fromkeys((*_EMPTY, *(text for text in used if "\n" not in text), *names)))


def _early_exit(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A base case that is missing: nothing to do for what is empty, absent, zero or negative."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    body = unit.find_body(node)
    if body is None or (body is unit.function.body and node is not _first_real(body)):
        return
    attributes = dict.fromkeys(unit.get_code(one) for one in unit.expressions if _is_own(one))
    names = [*(name for name in unit.list_visible_names(node) if name not in ("self", "cls")), *attributes][:_FEW]
    tests = [f"not {name}" for name in names] + [f"{name} is None" for name in names]
    tests += [f"{name} {rest}" for name in names for rest in ("<= 0", "== 0", "<= 1", "< 0")]
    for test in tests:
        yield from (_line(unit, node, f"if {test}:\n    return {result}") for result in _results(unit, node))
    if any(isinstance(one, ast.For | ast.While) for one in unit.iterate_ancestors(node)):
        for test in (*tests, *(unit.get_code(one) for one in unit.conditions)):
            yield _line(unit, node, f"if {test}:\n    continue")
            yield _line(unit, node, f"if {test}:\n    break")


def _is_own(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _first_real(body: list[ast.stmt]) -> ast.stmt:
    """The first statement after the docstring."""
    is_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1] if is_docstring and len(body) > 1 else body[0]


def _guard_stmt(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A statement that should happen only sometimes."""
    if not isinstance(node, _SIMPLE) or not _is_movable(unit, node) or unit.function is None:
        return
    names = [name for name in unit.list_visible_names(node) if name not in ("self", "cls")]
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    tests = [unit.get_code(one) for one in unit.conditions]
    tests += [f"{one} {sign} {two}" for sign in ("==", "!=", "<", ">") for one in names for two in names if one < two]
    tests += [f"{one} not in {two}" for one in names for two in names if one in used and one != two]
    tests += [text for name in names for text in (name, f"not {name}", f"{name} is not None")]
    start, end = _lines(unit, node)
    depth = unit.get_indent(node)
    for test in dict.fromkeys(text for text in tests if "\n" not in text):
        yield (TextEdit(start, end, f"{depth}if {test}:\n{indent(unit.source.text[start:end], '    ')}"),)


def _guard_exit(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Leave early where a condition of the function, or its opposite, holds."""
    if not isinstance(node, ast.Return | ast.For | ast.While | ast.Assign) or not _is_movable(unit, node):
        return
    if unit.function is None:
        return
    for one in unit.conditions:
        text = unit.get_code(one)
        if "\n" not in text:
            for result in _results(unit, node):
                yield _line(unit, node, f"if {text}:\n    return {result}")


def _if_while(node: ast.If | ast.While | ast.For, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Once or as long as; and `elif` or `if`."""
    at = unit.source.get_span(node)[0]
    text = unit.source.text
    if isinstance(node, ast.While):
        yield (TextEdit(at, at + 5, "if"),)
    elif isinstance(node, ast.If) and text.startswith("elif", at):
        yield (TextEdit(at, at + 4, "if"),)
    elif isinstance(node, ast.If):
        yield (TextEdit(at, at + 2, "while"),)
        body = unit.find_body(node) or []
        if any(two is node and isinstance(one, ast.If) for one, two in pairwise(body)):
            yield (TextEdit(at, at + 2, "elif"),)


def _jump(node: ast.Break | ast.Continue | ast.Pass, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Out of the loop, on to its next round, or neither."""
    yield from (unit.replace_node(node, word) for word in ("break", "continue", "pass") if word != unit.get_code(node))


def _branches(node: ast.If, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """The two branches exchanged."""
    if not node.orelse or isinstance(node.orelse[0], ast.If):
        return
    if not (unit.is_alone_on_lines(node.body[0]) and unit.is_alone_on_lines(node.orelse[0])):
        return
    spans = [(_lines(unit, part[0])[0], _lines(unit, part[-1])[1]) for part in (node.body, node.orelse)]
    texts = [unit.source.text[start:end] for start, end in spans]
    yield (TextEdit(*spans[0], texts[1]), TextEdit(*spans[1], texts[0]))


def _return_expr(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Another result: a name, an empty value, or what was computed and thrown away."""
    if isinstance(node, ast.Return) and node.value is not None:
        own = unit.get_code(node.value)
        yield from (unit.replace_node(node.value, text) for text in _results(unit, node) if text != own)
        opposite = {"True": "False", "False": "True"}
        truths = [one.value for one in unit.nodes if isinstance(one, ast.Return) and _is_truth(one.value)]
        if len(truths) > 1 and node.value is truths[0]:
            yield tuple(
                piece
                for one in truths
                if one is not None
                for piece in unit.replace_node(one, opposite[unit.get_code(one)])
            )
    elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield unit.replace_node(node, f"return {unit.get_code(node)}")
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            base = node.value.func.value
            if isinstance(base, ast.Name):
                yield unit.replace_node(node, f"{base.id} = {unit.get_code(node)}")
    elif isinstance(node, ast.Assign) and node is (unit.find_body(node) or [node])[-1]:
        yield _line(unit, node, f"return {unit.get_code(node.targets[0])}", is_after=True)


def _is_truth(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _last_return(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """A result that is forgotten at the end of the function."""
    if unit.function is None or node not in unit.function.body or node is not unit.function.body[-1]:
        return
    if not isinstance(node, ast.Return | ast.Raise) and unit.is_alone_on_lines(node):
        yield from (_line(unit, node, f"return {text}", is_after=True) for text in reversed(_results(unit, node)))


_STATEMENTS = (*_SIMPLE, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Raise, ast.Assert)

TEMPLATES = (
    Template("state_update", 3, (*_SIMPLE, ast.Pass, ast.If, ast.For, ast.While), _state_update),
    Template("stmt_copy", 1.5, _STATEMENTS, _stmt_copy),
    Template("stmt_move", 3, _STATEMENTS, _stmt_move),
    Template("stmt_delete", 1.5, _STATEMENTS, _stmt_delete),
    Template("early_exit", 2, _STATEMENTS, _early_exit),
    Template("guard_stmt", 2, _SIMPLE, _guard_stmt),
    Template("guard_stmt", 1, (ast.Return, ast.For, ast.While, ast.Assign), _guard_exit),
    Template("if_while", 3, (ast.If, ast.While), _if_while),
    Template("if_while", 3, (ast.Break, ast.Continue, ast.Pass), _jump),
    Template("negate", 2, (ast.If,), _branches),
    Template("return_expr", 3, (ast.Return, ast.Expr, ast.Assign), _return_expr),
    Template("return_expr", 2, _STATEMENTS, _last_return),
)
