"""The parts of a module that are edited and parsed as one: functions, assignments, the rest of classes and of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from pytest_loop.repair.python_source import PythonSource
from pytest_loop.repair.text_edits import TextEdit, TextEdits, apply_edits

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Assignment: TypeAlias = ast.Assign | ast.AnnAssign
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def split_units(source: PythonSource) -> Iterator[EditUnit]:
    """Split a module into functions and methods, top-level assignments, the rest of each class, and the last rest."""
    parts: list[FunctionNode | Assignment] = list(_find_outermost_functions(source.tree))
    parts += [
        stmt
        for stmt in source.tree.body
        if isinstance(stmt, ast.Assign | ast.AnnAssign) and source.is_alone_on_lines(stmt)
    ]
    for node in parts:
        yield EditUnit(source, node)
    classes = [stmt for stmt in source.tree.body if isinstance(stmt, ast.ClassDef) and source.is_alone_on_lines(stmt)]
    for stmt in classes:
        yield EditUnit(source, stmt, frozenset(parts))
    yield EditUnit(source, source.tree, frozenset((*parts, *classes)))


def _find_outermost_functions(tree: ast.AST) -> Iterator[FunctionNode]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from _find_outermost_functions(node)


class EditUnit:
    """A function, a top-level assignment, or the rest of a class or module."""

    def __init__(
        self,
        source: PythonSource,
        node: FunctionNode | Assignment | ast.ClassDef | ast.Module,
        excluded: frozenset[ast.AST] = frozenset(),
    ) -> None:
        self.source = source
        self.node = node
        self._excluded = excluded
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes = list(self._walk(node))

    def _walk(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            if child in self._excluded or not self._has_position(node, child):
                continue
            if isinstance(node, FunctionNode) and child is node.returns:
                continue
            if isinstance(child, ast.arg) or (isinstance(node, ast.AnnAssign) and child is node.annotation):
                self.parents[child] = node
                continue
            self.parents[child] = node
            yield from self._walk(child)

    def _has_position(self, node: ast.AST, child: ast.AST) -> bool:
        """Return whether `child` of `node` has a usable position: in f-strings, only values; before 3.12, not all."""
        if isinstance(node, ast.JoinedStr):
            return isinstance(child, ast.FormattedValue)
        if isinstance(node, ast.FormattedValue):
            return child is node.value and self.source.has_right_position(node.value)
        return True

    @property
    def function(self) -> FunctionNode | None:
        return self.node if isinstance(self.node, ast.FunctionDef | ast.AsyncFunctionDef) else None

    @cached_property
    def span(self) -> tuple[int, int]:
        """The start and end offset of the unit's lines, decorators included."""
        if isinstance(self.node, ast.Module):
            return 0, len(self.source.text)
        decorators: list[ast.expr] = getattr(self.node, "decorator_list", [])
        first = min([self.node.lineno, *(decorator.lineno for decorator in decorators)])
        return self.source.get_line_start(first), self.source.get_line_start((self.node.end_lineno or first) + 1)

    @cached_property
    def first_line(self) -> int:
        return self.source.get_line_number(self.span[0])

    @cached_property
    def lines(self) -> frozenset[int]:
        """The numbers of the lines that belong to the unit."""
        end = len(self.source.lines) if isinstance(self.node, ast.Module) else self.node.end_lineno or self.first_line
        excluded = {
            line
            for node in self._excluded
            if isinstance(node, ast.stmt)
            for line in range(getattr(node, "body", [node])[0].lineno, (node.end_lineno or node.lineno) + 1)
        }
        return frozenset(range(self.first_line, end + 1)) - excluded

    def parse_edited(self, edits: TextEdits) -> ast.stmt | ast.Module | None:
        """Return the tree of the edited unit with line numbers of the file; None if it is no longer a valid unit."""
        start, end = self.span
        inner = tuple(TextEdit(edit.start - start, edit.end - start, edit.text) for edit in edits)
        text = apply_edits(self.source.text[start:end], inner)
        try:
            if isinstance(self.node, ast.Module):
                return ast.parse(text)
            is_nested = text[:1].isspace()
            body = ast.parse(f"if 1:\n{text}" if is_nested else text).body
            outer = body[0]
            if isinstance(outer, ast.If):
                body = outer.body
        except (SyntaxError, ValueError, RecursionError):
            return None
        groups = ((ast.Assign, ast.AnnAssign), (ast.FunctionDef, ast.AsyncFunctionDef), (ast.ClassDef,))
        if len(body) != 1 or not any(isinstance(body[0], kinds) and isinstance(self.node, kinds) for kinds in groups):
            return None
        return ast.increment_lineno(body[0], self.first_line - 1 - is_nested)

    # -- positions, for templates

    def get_parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(node)

    def iterate_ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def find_statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement that contains a node."""
        if isinstance(node, ast.stmt):
            return node
        return next((parent for parent in self.iterate_ancestors(node) if isinstance(parent, ast.stmt)), None)

    def get_code(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> str:
        return self.source.get_code(node)

    def replace_node(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword, text: str) -> TextEdits:
        return (TextEdit(*self.source.get_span(node), text),)

    def find_body(self, stmt: ast.stmt) -> list[ast.stmt] | None:
        """Return the list of statements that contains a statement."""
        parent = self.parents.get(stmt)
        for _, value in ast.iter_fields(parent) if parent is not None else ():
            if isinstance(value, list) and stmt in value:
                return value
        return None

    def get_indent(self, stmt: ast.stmt) -> str:
        row = self.source.lines[stmt.lineno - 1]
        return row[: len(row) - len(row.lstrip())]

    def is_alone_on_lines(self, stmt: ast.stmt) -> bool:
        """Return whether only a comment shares the lines of a statement, so that lines may be added around it."""
        return self.source.is_alone_on_lines(stmt)

    @cached_property
    def name_scopes(self) -> dict[str, list[ast.AST | None]]:
        """The assigned names, each with the comprehensions or lambdas that limit its scope; None is the whole unit."""
        scopes: dict[str, list[ast.AST | None]] = {}
        for node in self.nodes:
            for name in _find_assigned_names(node):
                scopes.setdefault(name, []).append(self._find_scope(node))
        return scopes

    def _find_scope(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Lambda):
            return node
        scopes = (*COMPREHENSIONS, ast.Lambda)
        return next((parent for parent in self.iterate_ancestors(node) if isinstance(parent, scopes)), None)

    def list_visible_names(self, node: ast.AST) -> list[str]:
        """List the local names that are visible at a node."""
        enclosing = {node, *self.iterate_ancestors(node)}
        return [
            name
            for name, scopes in self.name_scopes.items()
            if any(scope is None or scope in enclosing for scope in scopes)
        ]

    @cached_property
    def module_names(self) -> list[str]:
        """The names that the module defines, without its imports."""
        names: dict[str, None] = {}
        for stmt in self.source.tree.body:
            if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names[stmt.name] = None
            elif isinstance(stmt, ast.Assign | ast.AnnAssign):
                for node in ast.walk(stmt):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        names[node.id] = None
        return list(names)

    @cached_property
    def expressions(self) -> list[ast.expr]:
        """Every expression that is read, not assigned."""
        return [
            node
            for node in self.nodes
            if isinstance(node, ast.expr)
            and isinstance(getattr(node, "ctx", ast.Load()), ast.Load)
            and not isinstance(node, ast.FormattedValue | ast.Slice | ast.Starred)
        ]

    @cached_property
    def conditions(self) -> list[ast.expr]:
        conditions: dict[str, ast.expr] = {}
        for node in self.nodes:
            for test in _find_conditions(node):
                conditions.setdefault(self.get_code(test), test)
        return list(conditions.values())


def _find_assigned_names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = node.args
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if arg is not None:
                yield arg.arg


def _find_conditions(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        yield node.test
    elif isinstance(node, ast.comprehension):
        yield from node.ifs
    elif isinstance(node, ast.BoolOp):
        yield from node.values
