"""What the code template asks of a Python file about failures and input from outside; its syntax tree decides."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from pytest_loop.rules.templates import artifact_reader
from pytest_loop.rules.templates.python_names import Source, is_ellipsis, is_python, parsed

CATCH_ALL = ("Exception", "BaseException")
UNSAFE_LOADERS = ("Loader", "UnsafeLoader")
_SQL = re.compile(r"(?i)\b(select|insert|update|delete|create|alter|drop)\b")


def _python(artifact: Path, workspace: Path) -> Source | None:
    """The artifact, unless it is another language: then the sentence beside the check decides alone."""
    artifact_reader.read_document(artifact, workspace)
    return parsed(artifact, workspace) if is_python(artifact) else None


def check_error_handling(artifact: Path, workspace: Path) -> None:
    """No error is caught blindly or dropped."""
    source = _python(artifact, workspace)
    if source is None:
        return
    problems = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and (problem := _blind(node)):
            problems.append(source.at(node, problem))
        if isinstance(node, ast.Call) and _suppresses_all(node):
            problems.append(source.at(node, "expected named exceptions, found all of them suppressed"))
    artifact_reader.fail_with(problems)


def _suppresses_all(call: ast.Call) -> bool:
    is_suppress = ast.unparse(call.func) in ("suppress", "contextlib.suppress")
    return is_suppress and any(_catches_all(argument) for argument in call.args)


def _catches_all(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(_catches_all(one) for one in node.elts)
    return node is None or ast.unparse(node) in CATCH_ALL


def _blind(handler: ast.ExceptHandler) -> str | None:
    raises = any(isinstance(node, ast.Raise) for node in ast.walk(handler))
    if handler.type is None and not raises:
        return "expected a named exception, found a bare `except`"
    if _catches_all(handler.type) and all(_drops(node) for node in handler.body):
        return "expected the error to be handled, found every error dropped"
    return None


def _drops(node: ast.stmt) -> bool:
    return isinstance(node, (ast.Pass, ast.Continue)) or is_ellipsis(node)


def check_input_handling(artifact: Path, workspace: Path) -> None:
    """Nothing from outside is run as code, as a command or as SQL."""
    source = _python(artifact, workspace)
    if source is None:
        return
    calls = [node for node in ast.walk(source.tree) if isinstance(node, ast.Call)]
    artifact_reader.fail_with(source.at(call, problem) for call in calls if (problem := _unsafe(call)))


def _unsafe(call: ast.Call) -> str | None:
    name = ast.unparse(call.func)
    words = {word.arg: word.value for word in call.keywords}
    fixed = bool(call.args) and isinstance(call.args[0], ast.Constant)
    if name in ("eval", "exec") and not fixed:
        return f"expected no code from outside, found {name} of something that is not fixed"
    if name in ("os.system", "os.popen") and not fixed:
        return f"expected a command without a shell, found {name} of something that is not fixed"
    shell = words.get("shell")
    if isinstance(shell, ast.Constant) and shell.value and not fixed:
        return "expected a command without a shell, found shell=True for one that is not fixed"
    if name == "yaml.load" and _loader(call, words) in ("", *UNSAFE_LOADERS):
        return "expected yaml.safe_load, found a loader that makes objects"
    if name.endswith((".execute", ".executemany")) and len(call.args) == 1 and _is_composed(call.args[0]):
        return "expected parameters for the SQL statement, found values written into it"
    return None


def _loader(call: ast.Call, words: dict[str | None, ast.expr]) -> str:
    given = words.get("Loader") or (call.args[1] if len(call.args) > 1 else None)
    return ast.unparse(given).rpartition(".")[2] if given else ""


def _is_composed(node: ast.expr) -> bool:
    """SQL made from a text and something that is not a constant: an f-string, `%`, `+` or format()."""
    if not isinstance(node, (ast.JoinedStr, ast.BinOp, ast.Call)):
        return False
    parts = list(ast.walk(node))
    texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    varies = any(isinstance(part, ast.Name) and not part.id.isupper() for part in parts)
    return varies and any(_SQL.search(text) for text in texts)
