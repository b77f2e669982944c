"""What is edited, parsed and swapped as one, and what templates ask about its places."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from typing import TypeAlias

from pytest_loop.repair.pieces import Piece, Pieces, edited
from pytest_loop.repair.source import Source

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def units(source: Source) -> Iterator[Unit]:
    """The functions that are in no other function, methods included, and what stands outside of them."""
    functions = list(_outermost(source.tree))
    for node in functions:
        yield Unit(source, node)
    yield Unit(source, source.tree, frozenset(functions))


def _outermost(tree: ast.AST) -> Iterator[FunctionNode]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node
        elif isinstance(node, ast.stmt | ast.ExceptHandler):
            yield from _outermost(node)


class Unit:
    """A function, or the rest of a module."""

    def __init__(self, source: Source, node: FunctionNode | ast.Module, without: frozenset[ast.AST] = frozenset()):
        self.source = source
        self.node = node
        self._without = without
        self.parents: dict[ast.AST, ast.AST] = {}
        self.nodes = list(self._walk(node))

    def _walk(self, node: ast.AST) -> Iterator[ast.AST]:
        yield node
        for child in ast.iter_child_nodes(node):
            if child in self._without or not self._has_place(node, child):
                continue
            if isinstance(node, FunctionNode) and child is node.returns:
                continue
            if isinstance(child, ast.arg) or (isinstance(node, ast.AnnAssign) and child is node.annotation):
                self.parents[child] = node
                continue
            self.parents[child] = node
            yield from self._walk(child)

    def _has_place(self, node: ast.AST, child: ast.AST) -> bool:
        """Whether a part of an f-string is an expression of its own; all else is."""
        if isinstance(node, ast.JoinedStr):
            return node in self.source.placed and isinstance(child, ast.FormattedValue)
        return not (isinstance(node, ast.FormattedValue) and child is node.format_spec)

    @property
    def function(self) -> FunctionNode | None:
        return None if isinstance(self.node, ast.Module) else self.node

    @cached_property
    def span(self) -> tuple[int, int]:
        """Whole lines, decorators included."""
        if isinstance(self.node, ast.Module):
            return 0, len(self.source.text)
        first = min([self.node.lineno, *(one.lineno for one in self.node.decorator_list)])
        return self.source.start_of(first), self.source.start_of((self.node.end_lineno or first) + 1)

    @cached_property
    def first_line(self) -> int:
        return self.source.line(self.span[0])

    @cached_property
    def lines(self) -> frozenset[int]:
        """The lines that belong to it."""
        if isinstance(self.node, ast.Module):
            taken = {
                line
                for one in self._without
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)
                for line in range(one.body[0].lineno, (one.end_lineno or one.lineno) + 1)
            }
            return frozenset(range(1, len(self.source.lines) + 1)) - taken
        return frozenset(range(self.first_line, (self.node.end_lineno or self.first_line) + 1))

    def parsed(self, pieces: Pieces) -> ast.stmt | ast.Module | None:
        """The tree after an edit, with the line numbers of the file; None where it does not parse."""
        start, end = self.span
        inner = tuple(Piece(one.start - start, one.end - start, one.text) for one in pieces)
        text = edited(self.source.text[start:end], inner)
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
        if len(body) != 1 or not isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef):
            return None
        return ast.increment_lineno(body[0], self.first_line - 1 - is_nested)

    # What templates ask about places.

    def parent(self, node: ast.AST) -> ast.AST | None:
        return self.parents.get(node)

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        while (above := self.parents.get(node)) is not None:
            yield above
            node = above

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node is in."""
        if isinstance(node, ast.stmt):
            return node
        return next((one for one in self.ancestors(node) if isinstance(one, ast.stmt)), None)

    def code(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> str:
        return self.source.code(node)

    def put(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword, text: str) -> Pieces:
        return (Piece(*self.source.span(node), text),)

    def body_of(self, stmt: ast.stmt) -> list[ast.stmt] | None:
        """The list of statements that one stands in."""
        above = self.parents.get(stmt)
        for _, value in ast.iter_fields(above) if above is not None else ():
            if isinstance(value, list) and stmt in value:
                return value
        return None

    def indent(self, stmt: ast.stmt) -> str:
        row = self.source.lines[stmt.lineno - 1]
        return row[: len(row) - len(row.lstrip())]

    def stands_alone(self, stmt: ast.stmt) -> bool:
        """Whether nothing else is on its lines, so that lines may come and go around it."""
        start, end = self.source.span(stmt)
        text = self.source.text
        before = text[self.source.start_of(stmt.lineno) : start]
        after = text[end : self.source.start_of(self.source.line(end - 1) + 1)].strip()
        return not before.strip() and (not after or after.startswith("#"))

    @cached_property
    def owners(self) -> dict[str, list[ast.AST | None]]:
        """The names that are set here, and the comprehension or lambda in which each is known; None is everywhere."""
        found: dict[str, list[ast.AST | None]] = {}
        for node in self.nodes:
            for name in _names_set(node):
                found.setdefault(name, []).append(self._owner(node))
        return found

    def _owner(self, node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Lambda):
            return node
        return next((one for one in self.ancestors(node) if isinstance(one, (*COMPREHENSIONS, ast.Lambda))), None)

    def visible(self, node: ast.AST) -> list[str]:
        """The local names that are known at a node."""
        above = {node, *self.ancestors(node)}
        return [name for name, owners in self.owners.items() if any(one is None or one in above for one in owners)]

    @cached_property
    def globals(self) -> list[str]:
        """The names that the module sets, its imports left out."""
        found: dict[str, None] = {}
        for stmt in self.source.tree.body:
            if isinstance(stmt, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[stmt.name] = None
            elif isinstance(stmt, ast.Assign | ast.AnnAssign):
                for node in ast.walk(stmt):
                    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                        found[node.id] = None
        return list(found)

    @cached_property
    def expressions(self) -> list[ast.expr]:
        """Every expression that is read here."""
        return [
            one
            for one in self.nodes
            if isinstance(one, ast.expr) and isinstance(getattr(one, "ctx", ast.Load()), ast.Load) and _is_real(one)
        ]

    @cached_property
    def conditions(self) -> list[ast.expr]:
        found: dict[str, ast.expr] = {}
        for node in self.nodes:
            for test in _tests(node):
                found.setdefault(self.code(test), test)
        return list(found.values())

    @cached_property
    def module_strings(self) -> list[str]:
        return list(
            dict.fromkeys(
                node.value
                for node in ast.walk(self.source.tree)
                if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 40
            )
        )


def _names_set(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        arguments = node.args
        for arg in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
            if arg is not None:
                yield arg.arg


def _is_real(node: ast.expr) -> bool:
    return not isinstance(node, ast.FormattedValue | ast.Slice | ast.Starred)


def _tests(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        yield node.test
    elif isinstance(node, ast.comprehension):
        yield from node.ifs
    elif isinstance(node, ast.BoolOp):
        yield from node.values
