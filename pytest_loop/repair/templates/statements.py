"""Templates for statements that are missing, superfluous or misplaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import pairwise
from textwrap import dedent, indent

from pytest_loop.repair.edit_unit import EditUnit
from pytest_loop.repair.templates.template import Hints, Template
from pytest_loop.repair.text_edits import TextEdit, TextEdits

_SIMPLE = (ast.Assign, ast.AugAssign, ast.Expr, ast.Return, ast.Break, ast.Continue, ast.AnnAssign)
_DEFAULT_RESULTS = ("None", "[]", "0", "''", "False", "True", "{}", "1", "-1")
_MAX_NAMES = 5


def _insert_line(unit: EditUnit, stmt: ast.stmt, text: str, *, is_after: bool = False) -> TextEdits:
    """Insert a line before or after a statement, with its indentation."""
    line = (stmt.end_lineno or stmt.lineno) + 1 if is_after else _get_first_line(stmt)
    at = unit.source.get_line_start(line)
    newline = "" if at == 0 or unit.source.text[at - 1] == "\n" else "\n"
    return (TextEdit(at, at, newline + indent(text, unit.get_indent(stmt)) + "\n"),)


def _get_first_line(stmt: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(stmt, "decorator_list", [])
    return min([stmt.lineno, *(decorator.lineno for decorator in decorators)])


def _get_line_span(unit: EditUnit, stmt: ast.stmt) -> tuple[int, int]:
    """Return the span of the lines of a statement."""
    last_line = stmt.end_lineno or stmt.lineno
    return unit.source.get_line_start(_get_first_line(stmt)), unit.source.get_line_start(last_line + 1)


def _is_movable(unit: EditUnit, stmt: ast.AST) -> bool:
    if not isinstance(stmt, ast.stmt) or stmt is unit.node or not unit.is_alone_on_lines(stmt):
        return False
    return not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))


def _list_simple_lines(unit: EditUnit) -> list[str]:
    """Return the code of the simple statements of a unit, without duplicates."""
    statements = (node for node in unit.nodes if isinstance(node, _SIMPLE) and _is_movable(unit, node))
    return [text for text in dict.fromkeys(map(unit.get_code, statements)) if "\n" not in text]


def _insert_update(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Insert an assignment that counts a name up or down, or assigns another name's value to it."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    updates = [stmt for stmt in unit.nodes if isinstance(stmt, ast.AugAssign) and isinstance(stmt.target, ast.Name)]
    names = [name for name, owners in unit.name_scopes.items() if None in owners and name not in ("self", "cls")]
    lines = [f"{name} {sign} 1" for name in names for sign in ("+=", "-=")]
    lines += [unit.get_code(stmt) for stmt in updates]
    lines += [f"{name} = {other}" for name in names for other in names if name != other]
    for text in dict.fromkeys(lines):
        yield _insert_line(unit, node, text, is_after=True)
        yield _insert_line(unit, node, text)


def _copy_statement(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Insert a statement of the function at another place."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    for text in _list_simple_lines(unit):
        yield _insert_line(unit, node, text)
        if text != unit.get_code(node):
            yield _insert_line(unit, node, text, is_after=True)
            if isinstance(node, _SIMPLE):
                yield unit.replace_node(node, text)


def _move_statement(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Move a statement before its neighbour, or one level out or in."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    body = unit.find_body(node) or []
    start, end = _get_line_span(unit, node)
    text = unit.source.text[start:end]
    for first, second in pairwise(body):
        if first is node and _is_movable(unit, second):
            next_start, next_end = _get_line_span(unit, second)
            yield (TextEdit(start, end, unit.source.text[next_start:next_end]), TextEdit(next_start, next_end, text))
        if second is node and isinstance(first, ast.If | ast.For | ast.While | ast.With) and _is_movable(unit, first):
            yield (TextEdit(start, end, indent(text, "    ")),)
    parent = unit.get_parent(node)
    if body and body[-1] is node and isinstance(parent, ast.stmt) and parent is not unit.node:
        outer = unit.get_indent(parent)
        moved = indent(dedent(text), outer)
        yield (TextEdit(start, end, moved if len(body) > 1 else f"{unit.get_indent(node)}pass\n{moved}"),)
        if len(body) > 1:
            parent_start, _parent_end = _get_line_span(unit, parent)
            yield (TextEdit(parent_start, parent_start, moved), TextEdit(start, end, ""))


def _delete_statement(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    if not _is_movable(unit, node) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    body = unit.find_body(node) or [node]
    start, end = _get_line_span(unit, node)
    yield (TextEdit(start, end, ""),) if len(body) > 1 else unit.replace_node(node, "pass")
    if isinstance(node, ast.If | ast.While | ast.With | ast.Try) and not getattr(node, "orelse", ()):
        inner = unit.source.text[_get_line_span(unit, node.body[0])[0] : _get_line_span(unit, node.body[-1])[1]]
        if unit.is_alone_on_lines(node.body[0]):
            yield (TextEdit(start, end, indent(dedent(inner), unit.get_indent(node))),)


def _list_results(unit: EditUnit, node: ast.stmt) -> list[str]:
    names = [name for name in unit.list_visible_names(node) if name not in ("self", "cls")]
    used = [unit.get_code(node.value) for node in unit.nodes if isinstance(node, ast.Return) and node.value is not None]
    return list(dict.fromkeys((*_DEFAULT_RESULTS, *(text for text in used if "\n" not in text), *names)))


def _insert_base_case(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Insert a base case for an empty, missing, zero or negative value."""
    if not _is_movable(unit, node) or unit.function is None:
        return
    body = unit.find_body(node)
    if body is None or (body is unit.function.body and node is not _find_first_after_docstring(body)):
        return
    attributes = dict.fromkeys(unit.get_code(other) for other in unit.expressions if _is_self_attribute(other))
    names = [*(name for name in unit.list_visible_names(node) if name not in ("self", "cls")), *attributes][:_MAX_NAMES]
    conditions = [f"not {name}" for name in names] + [f"{name} is None" for name in names]
    conditions += [f"{name} {rest}" for name in names for rest in ("<= 0", "== 0", "<= 1", "< 0")]
    for condition in conditions:
        yield from (
            _insert_line(unit, node, f"if {condition}:\n    return {result}") for result in _list_results(unit, node)
        )
    if any(isinstance(other, ast.For | ast.While) for other in unit.iterate_ancestors(node)):
        for condition in (*conditions, *(unit.get_code(other) for other in unit.conditions)):
            yield _insert_line(unit, node, f"if {condition}:\n    continue")
            yield _insert_line(unit, node, f"if {condition}:\n    break")


def _is_self_attribute(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _find_first_after_docstring(body: list[ast.stmt]) -> ast.stmt:
    """Return the first statement after the docstring."""
    is_docstring = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return body[1] if is_docstring and len(body) > 1 else body[0]


def _insert_guard(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Execute a statement only under a condition."""
    if not isinstance(node, _SIMPLE) or not _is_movable(unit, node) or unit.function is None:
        return
    names = [name for name in unit.list_visible_names(node) if name not in ("self", "cls")]
    used = {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    conditions = [unit.get_code(condition) for condition in unit.conditions]
    conditions += [
        f"{name} {sign} {other}" for sign in ("==", "!=", "<", ">") for name in names for other in names if name < other
    ]
    conditions += [f"{name} not in {other}" for name in names for other in names if name in used and name != other]
    conditions += [text for name in names for text in (name, f"not {name}", f"{name} is not None")]
    start, end = _get_line_span(unit, node)
    depth = unit.get_indent(node)
    for condition in dict.fromkeys(text for text in conditions if "\n" not in text):
        yield (TextEdit(start, end, f"{depth}if {condition}:\n{indent(unit.source.text[start:end], '    ')}"),)


def _insert_early_return(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Return early under a condition of the function."""
    if not isinstance(node, ast.Return | ast.For | ast.While | ast.Assign) or not _is_movable(unit, node):
        return
    if unit.function is None:
        return
    for condition in unit.conditions:
        text = unit.get_code(condition)
        if "\n" not in text:
            for result in _list_results(unit, node):
                yield _insert_line(unit, node, f"if {text}:\n    return {result}")


def _change_keyword(node: ast.If | ast.While | ast.For, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Swap `if` with `while`, or `if` with `elif`."""
    at = unit.source.get_span(node)[0]
    text = unit.source.text
    if isinstance(node, ast.While):
        yield (TextEdit(at, at + 5, "if"),)
    elif isinstance(node, ast.If) and text.startswith("elif", at):
        yield (TextEdit(at, at + 4, "if"),)
    elif isinstance(node, ast.If):
        yield (TextEdit(at, at + 2, "while"),)
        body = unit.find_body(node) or []
        if any(second is node and isinstance(first, ast.If) for first, second in pairwise(body)):
            yield (TextEdit(at, at + 2, "elif"),)


def _change_jump(node: ast.Break | ast.Continue | ast.Pass, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Swap `break`, `continue` and `pass`."""
    yield from (unit.replace_node(node, word) for word in ("break", "continue", "pass") if word != unit.get_code(node))


def _swap_branches(node: ast.If, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Swap the two branches."""
    if not node.orelse or isinstance(node.orelse[0], ast.If):
        return
    if not (unit.is_alone_on_lines(node.body[0]) and unit.is_alone_on_lines(node.orelse[0])):
        return
    spans = [(_get_line_span(unit, part[0])[0], _get_line_span(unit, part[-1])[1]) for part in (node.body, node.orelse)]
    texts = [unit.source.text[start:end] for start, end in spans]
    yield (TextEdit(*spans[0], texts[1]), TextEdit(*spans[1], texts[0]))


def _change_result(node: ast.AST, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Return another name, an empty value, or a computed value that the function discards."""
    if isinstance(node, ast.Return) and node.value is not None:
        code = unit.get_code(node.value)
        yield from (unit.replace_node(node.value, text) for text in _list_results(unit, node) if text != code)
        opposite = {"True": "False", "False": "True"}
        truths = [stmt.value for stmt in unit.nodes if isinstance(stmt, ast.Return) and _is_truth(stmt.value)]
        if len(truths) > 1 and node.value is truths[0]:
            yield tuple(
                edit
                for truth in truths
                if truth is not None
                for edit in unit.replace_node(truth, opposite[unit.get_code(truth)])
            )
    elif isinstance(node, ast.Expr) and not isinstance(node.value, ast.Constant):
        yield unit.replace_node(node, f"return {unit.get_code(node)}")
        if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
            base = node.value.func.value
            if isinstance(base, ast.Name):
                yield unit.replace_node(node, f"{base.id} = {unit.get_code(node)}")
    elif isinstance(node, ast.Assign) and node is (unit.find_body(node) or [node])[-1]:
        yield _insert_line(unit, node, f"return {unit.get_code(node.targets[0])}", is_after=True)


def _is_truth(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


def _append_return(node: ast.stmt, unit: EditUnit, _: Hints) -> Iterator[TextEdits]:
    """Insert a missing return at the end of the function."""
    if unit.function is None or node not in unit.function.body or node is not unit.function.body[-1]:
        return
    if not isinstance(node, ast.Return | ast.Raise) and unit.is_alone_on_lines(node):
        yield from (
            _insert_line(unit, node, f"return {text}", is_after=True) for text in reversed(_list_results(unit, node))
        )


_STATEMENTS = (*_SIMPLE, ast.If, ast.For, ast.While, ast.With, ast.Try, ast.Raise, ast.Assert)

TEMPLATES = (
    Template("state_update", 3, (*_SIMPLE, ast.Pass, ast.If, ast.For, ast.While), _insert_update),
    Template("stmt_copy", 1.5, _STATEMENTS, _copy_statement),
    Template("stmt_move", 3, _STATEMENTS, _move_statement),
    Template("stmt_delete", 1.5, _STATEMENTS, _delete_statement),
    Template("early_exit", 2, _STATEMENTS, _insert_base_case),
    Template("guard_stmt", 2, _SIMPLE, _insert_guard),
    Template("guard_stmt", 1, (ast.Return, ast.For, ast.While, ast.Assign), _insert_early_return),
    Template("if_while", 3, (ast.If, ast.While), _change_keyword),
    Template("if_while", 3, (ast.Break, ast.Continue, ast.Pass), _change_jump),
    Template("negate", 2, (ast.If,), _swap_branches),
    Template("return_expr", 3, (ast.Return, ast.Expr, ast.Assign), _change_result),
    Template("return_expr", 2, _STATEMENTS, _append_return),
)
