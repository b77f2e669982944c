"""Find annotations that a change takes away: a type checker that sees fewer types complains less."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_ANY = ("Any", "typing.Any", "t.Any")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def find_lost_annotations(before: str, after: str) -> list[str]:
    """Return the functions of a module with an argument or a result whose type is gone or became Any."""
    types = _read_types(after)
    return sorted(
        {
            name.partition(":")[0]
            for name, text in _read_types(before).items()
            if text not in ("", *_ANY) and types.get(name, text) in ("", *_ANY)
        }
    )


def _read_types(text: str) -> dict[str, str]:
    """Return the annotations by `function:argument`, or `function:` for a result; empty where there is none."""
    try:
        return dict(_list_types(ast.parse(text), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _list_types(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        inner = f"{name}.{child.name}".lstrip(".") if isinstance(child, (*_FUNCTIONS, ast.ClassDef)) else name
        if isinstance(child, _FUNCTIONS):
            yield f"{inner}:", _render(child.returns)
            for argument in (*child.args.posonlyargs, *child.args.args, *child.args.kwonlyargs):
                yield f"{inner}:{argument.arg}", _render(argument.annotation)
        yield from _list_types(child, inner)


def _render(annotation: ast.expr | None) -> str:
    return ast.unparse(annotation) if annotation else ""
