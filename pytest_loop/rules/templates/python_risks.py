"""Functions of the code template for error handling and untrusted input in a Python file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pytest_loop.rules.templates.artifact_reader import fail_with, read_document
from pytest_loop.rules.templates.python_names import ParsedModule, is_ellipsis, is_python, parse_python

CATCH_ALL = ("Exception", "BaseException")
UNSAFE_LOADERS = ("Loader", "UnsafeLoader")
_SQL = re.compile(r"(?i)\b(select|insert|update|delete|create|alter|drop)\b")


def _parse_if_python(artifact: Path, workspace: Path) -> ParsedModule | None:
    """Parse the artifact; return None for another language, which a sentence of the template covers."""
    read_document(artifact, workspace)
    return parse_python(artifact, workspace) if is_python(artifact) else None


def check_error_handling(artifact: Path, workspace: Path) -> None:
    """Fail if an error is caught blindly or dropped."""
    source = _parse_if_python(artifact, workspace)
    if source is None:
        return
    problems = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and (problem := _find_blind_handler(node)):
            problems.append(source.describe(node, problem))
        if isinstance(node, ast.Call) and _suppresses_all(node):
            problems.append(source.describe(node, "expected named exceptions, found all of them suppressed"))
    fail_with(problems)


def _suppresses_all(call: ast.Call) -> bool:
    is_suppress = ast.unparse(call.func) in ("suppress", "contextlib.suppress")
    return is_suppress and any(map(_catches_all, call.args))


def _catches_all(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(map(_catches_all, node.elts))
    return node is None or ast.unparse(node) in CATCH_ALL


def _find_blind_handler(handler: ast.ExceptHandler) -> str | None:
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
    if handler.type is None and not raises:
        return "expected a named exception, found a bare `except`"
    if _catches_all(handler.type) and all(_drops_error(node) for node in handler.body):
        return "expected the error to be handled, found every error dropped"
    return None


def _drops_error(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Pass, ast.Continue)) or is_ellipsis(node)


def check_input_handling(artifact: Path, workspace: Path) -> None:
    """Fail if input may be run as code, as a command or as SQL."""
    source = _parse_if_python(artifact, workspace)
    if source is None:
        return
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    fail_with(source.describe(call, problem) for call in calls if (problem := _find_unsafe_call(call)))


def _find_unsafe_call(call: ast.Call) -> str | None:
    name = ast.unparse(call.func)
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    is_literal = bool(call.args) and isinstance(call.args[0], ast.Constant)
    if name in ("eval", "exec") and not is_literal:
        return f"expected no code from outside, found {name} of something that is not fixed"
    if name in ("os.system", "os.popen") and not is_literal:
        return f"expected a command without a shell, found {name} of something that is not fixed"
    shell = keywords.get("shell")
    if isinstance(shell, ast.Constant) and shell.value and not is_literal:
        return "expected a command without a shell, found shell=True for one that is not fixed"
    if name == "yaml.load" and _get_loader(call, keywords) in ("", *UNSAFE_LOADERS):
        return "expected yaml.safe_load, found a loader that makes objects"
    if name.endswith((".execute", ".executemany")) and len(call.args) == 1 and _is_composed_sql(call.args[0]):
        return "expected parameters for the SQL statement, found values written into it"
    return None


def _get_loader(call: ast.Call, keywords: dict[str | None, ast.expr]) -> str:
    loader = keywords.get("Loader") or (call.args[1] if len(call.args) > 1 else None)
    return ast.unparse(loader).rpartition(".")[2] if loader else ""


def _is_composed_sql(node: ast.expr) -> bool:
    """Return whether SQL is composed with variables: by an f-string, `%`, `+` or format()."""
    if not isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Call)):
        return False
    parts = list(ast.walk(node))
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    varies = any(isinstance(part, ast.Name) and not part.id.isupper() for part in parts)
    return varies and any(map(_SQL.search, texts))
