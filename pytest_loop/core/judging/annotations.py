"""Find annotations that an edit removes: a type checker that sees fewer types complains less."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_UNTYPED = ("", "Any", "typing.Any", "t.Any")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def find_lost_annotations(before: str, after: str) -> list[str]:
    """Return the functions of a module with an argument or a result whose type is gone or became Any."""
    annotations = _read_annotations(after)
    return sorted(
        {
            place.partition(":")[0]
            for place, annotation in _read_annotations(before).items()
            if annotation not in _UNTYPED and annotations.get(place, annotation) in _UNTYPED
        }
    )


def _read_annotations(source: str) -> dict[str, str]:
    """Return the annotations by `function:argument`, or `function:` for a result; empty where there is none."""
    try:
        return dict(_list_annotations(ast.parse(source), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _list_annotations(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        inner = f"{name}.{child.name}".lstrip(".") if isinstance(child, (*_FUNCTIONS, ast.ClassDef)) else name
        if isinstance(child, _FUNCTIONS):
            yield f"{inner}:", _unparse(child.returns)
            for argument in (*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs):
                yield f"{inner}:{argument.arg}", _unparse(argument.annotation)
        yield from _list_annotations(child, inner)


def _unparse(annotation: ast.expr | None) -> str:
    return ast.unparse(annotation) if annotation else ""
