"""Doctests of product modules: the module may be edited, its examples may not."""

from __future__ import annotations

import ast
import doctest
from collections.abc import Iterator

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def find_changed_doctests(before: str, after: str) -> list[str]:
    """Return the names of definitions that lost or changed an example; examples may be added."""
    remaining = read_examples(after)
    return [
        name or "the module"
        for name, examples in read_examples(before).items()
        if not _is_subsequence(examples, remaining.get(name, []))
    ]


def _is_subsequence(examples: list[tuple[str, str]], others: list[tuple[str, str]]) -> bool:
    remaining = iter(others)
    return all(example in remaining for example in examples)


def read_examples(text: str) -> dict[str, list[tuple[str, str]]]:
    """Return the examples of each definition, as pairs of code and expected output."""
    try:
        return dict(_list_examples(ast.parse(text), ""))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}


def _list_examples(node: ast.AST, name: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    if isinstance(node, _DOCUMENTED):
        examples = doctest.DocTestParser().get_examples(ast.get_docstring(node) or "")
        if examples:
            yield name, [(example.source, example.want) for example in examples]
    for child in ast.iter_child_nodes(node):
        inner = getattr(child, "name", "") if isinstance(child, _DOCUMENTED) else ""
        yield from _list_examples(child, f"{name}.{inner}".strip(".") if inner else name)
