"""Values that are set when a module is imported: no test executes those lines, those that read them give them away."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from pytest_loop.repair.source import Source
from pytest_loop.repair.suspicion import Line

_PART = 0.6


def with_definitions(sources: Iterable[Source], scores: Mapping[Line, float]) -> dict[Line, float]:
    """The scores, and a part of them for the lines that set what suspicious lines read by name."""
    known = list(sources)
    places: dict[str, list[Line]] = {}
    for source in known:
        for name, line in _set_by(source.tree.body):
            places.setdefault(name, []).append((str(source.path), line))
    found = dict(scores)
    for source in known:
        for node in ast.walk(source.tree):
            if name := _read(node):
                score = scores.get((str(source.path), getattr(node, "lineno", 0)), 0.0) * _PART
                for place in places.get(name, ()):
                    if score > found.get(place, 0.0):
                        found[place] = score
    return found


def _set_by(body: Iterable[ast.stmt]) -> Iterator[tuple[str, int]]:
    """The names that statements of a module or a class set."""
    for stmt in body:
        if isinstance(stmt, ast.ClassDef):
            yield from _set_by(stmt.body)
        elif isinstance(stmt, ast.Assign | ast.AnnAssign):
            targets = stmt.targets if isinstance(stmt, ast.Assign) else [stmt.target]
            yield from ((one.id, stmt.lineno) for one in targets if isinstance(one, ast.Name))


def _read(node: ast.AST) -> str:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""
