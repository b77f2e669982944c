"""Check tests that an agent writes for a task: they must assert behaviour, and fail because it does not exist yet."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator

_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")
_MISSING_NAME = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
_UNDEFINED = re.compile(r"NameError: name '(\w+)' is not defined")
_MISSING_FIXTURE = re.compile(r"fixture '(\w+)' not found")
_TEST_PREFIX = "test"
_ASSERTING_BLOCKS = ("raises", "warns")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def check_test_source(source: str) -> str:
    """Return why a test module cannot serve as an acceptance test; empty if it can."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{line}it cannot be parsed ({getattr(error, 'msg', error)})"
    tests = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS) and node.name.startswith(_TEST_PREFIX)]
    if not tests:
        return "it has no test function"
    imported = set(_list_imported_names(tree))
    if not any(_asserts_behaviour(test, imported) for test in tests):
        return "it asserts nothing about behaviour: compare what the code of the project returns or does"
    return ""


def _list_imported_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that imports bind, except pytest itself."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = ((alias.asname or alias.name).partition(".")[0] for alias in node.names)
            yield from (name for name in names if name != "pytest")


def _asserts_behaviour(test: ast.FunctionDef | ast.AsyncFunctionDef, imported: Collection[str]) -> bool:
    """Return whether a test asserts something, and uses an imported name or a fixture."""
    arguments = {argument.arg for argument in (*test.args.posonlyargs, *test.args.args, *test.args.kwonlyargs)}
    used = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    return any(map(_is_assertion, ast.walk(test))) and bool(used & {*imported, *arguments})


def _is_assertion(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr.startswith("assert") or node.func.attr in _ASSERTING_BLOCKS
    return False


def explain_wrong_failure(output: str, source: str, expected_modules: Collection[str]) -> str:
    """Return why a test fails for another reason than the missing work; empty if it fails for the right one.

    A failed import counts as missing work if the module is in `expected_modules`: modules of the project, and words
    of the task, in lower case.
    """
    if fixture := _MISSING_FIXTURE.search(output):
        return f"there is no fixture {fixture[1]!r}"
    if (undefined := _UNDEFINED.search(output)) and re.search(rf"\b{undefined[1]}\b", source):
        return f"it uses {undefined[1]} without an import"
    if (missing := _MISSING_NAME.search(output)) and not _is_expected(missing[2], expected_modules):
        return f"it imports {missing[1]} from {missing[2]}, which is not a module of this project and has no such name"
    if (module := _MISSING_MODULE.search(output)) and not _is_expected(module[1], expected_modules):
        return f"it needs {module[1]}, which is not installed, and which the task does not name"
    return ""


def _is_expected(module: str, expected_modules: Collection[str]) -> bool:
    return module.partition(".")[0].lower() in expected_modules
