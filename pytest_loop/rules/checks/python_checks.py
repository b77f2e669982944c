"""Checks by Python code: a function, or tests that are bound to a rule."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, LoopError
from pytest_loop.rules.checks.check import Check, Context, TextList, format_value
from pytest_loop.rules.mark_expressions import MarkExpression


def _validate_reference(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
        raise ValueError(f"expected module:function, found {format_value(text)}")
    return text


class Python(Check):
    """`function(artifact, workspace)` returns true or nothing; false or an exception fails, with its text."""

    is_slow: ClassVar[bool] = True
    proof: ClassVar[Proof] = Proof.EXECUTION

    python: Annotated[str, AfterValidator(_validate_reference)]

    def run(self, context: Context) -> Iterable[Finding]:
        try:
            function = self._import_function(context)
        except BrokenImportError as error:
            yield Finding(expected=f"{self.python} to be importable", found=str(error), where=error.where)
            return
        artifact = context.resolve_artifact() if context.artifact else None
        try:
            answer = function(artifact, context.workspace)
        except LoopError:
            raise
        except Exception as error:  # a failed assertion, or a crash
            yield from self._parse_findings(error)
            return
        if answer is not None and answer is not True:
            yield Finding(expected=f"True or None from {self.python}", found=format_value(answer))

    def find_obstacle(self, context: Context) -> str:
        """Return a message if the module's top-level package does not exist, without importing it; else return ""."""
        package = self.python.partition(":")[0].partition(".")[0]
        with _extend_sys_path(str(context.folder), str(context.root)):
            is_missing = package not in sys.modules and importlib.util.find_spec(package) is None
        return f"cannot import {package}: there is no such module" if is_missing else ""

    def find_file(self, *folders: Path) -> Path | None:
        """Return the file of the function, if it is in one of these folders."""
        module = self.python.partition(":")[0].replace(".", "/")
        names = (f"{module}.py", f"{module}/__init__.py")
        return next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)

    def _parse_findings(self, error: Exception) -> Iterator[Finding]:
        """Split the message of an error into findings, at `;` and a new line.

        A problem may begin with `file:line: `, and may say "expected ..., found ..." itself.
        """
        has_text = isinstance(error, AssertionError) and str(error)
        message = str(error) if has_text else f"{type(error).__name__}: {error}"
        for problem in message.split(";\n"):
            where = re.match(r"([^\s:]+:\d+): ", problem)
            text = problem[where.end() :] if where else problem
            expected = "" if re.search(r"\bexpected .*, found ", text) else f"{self.python} to pass"
            yield Finding(expected=expected, found=text, where=where[1] if where else "")

    def _import_function(self, context: Context) -> Callable[..., Any]:
        module, _, name = self.python.partition(":")
        try:
            with _extend_sys_path(str(context.folder), str(context.root)):
                function: Callable[..., Any] | None = getattr(importlib.import_module(module), name, None)
        except Exception as error:  # importing a module may raise anything
            if where := _locate_broken_import(error, self.find_file(context.folder, context.root), context):
                raise BrokenImportError(where, f"{type(error).__name__}: {error}") from error
            raise CheckError(f"cannot import {module}: {type(error).__name__}: {error}") from error
        if not callable(function):
            raise CheckError(f"{module} has no function {name}")
        return function


class BrokenImportError(Exception):
    """The function cannot be imported because a file of the project is broken: a finding, not an error."""

    def __init__(self, where: str, text: str) -> None:
        self.where = where
        super().__init__(text)


def _locate_broken_import(error: Exception, check_file: Path | None, context: Context) -> str:
    """Return `file:line` of the project's code that broke an import, except the check's own file; empty without one."""
    places = [(frame.filename, frame.lineno or 1) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError):
        places.append((error.filename or "", error.lineno or 1))
    if isinstance(error, ImportError) and error.path:  # the module that lacks a name
        places.append((error.path, 1))
    files = [
        (Path(name), line)
        for name, line in places
        if name not in (__file__, str(check_file)) and Path(name).is_relative_to(context.root)
    ]
    path, line = next(((path, line) for path, line in reversed(files) if "site-packages" not in path.parts), (None, 0))
    return f"{context.documents.display_path(path)}:{line}" if path else ""


@contextmanager
def _extend_sys_path(*folders: str) -> Iterator[None]:
    """Put folders at the start of `sys.path` inside the block, so that their modules can be imported as in tests."""
    before = list(sys.path)
    sys.path[:0] = [folder for folder in folders if folder not in before]
    try:
        yield
    finally:
        sys.path[:] = before


def _validate_selectors(selectors: list[str]) -> list[str]:
    for selector in selectors:
        if not is_node_id(selector):
            MarkExpression(selector)
    return selectors


def is_node_id(selector: str) -> bool:
    """Return whether a selector is a path or a node id; else it is an expression over marks."""
    return "::" in selector or "/" in selector or selector.endswith(".py")


class Tests(Check):
    """The Python tests named, by node id or by an expression as `-m` takes it, ran and passed."""

    __test__: ClassVar[bool] = False
    proof: ClassVar[Proof] = Proof.EXECUTION

    tests: Annotated[TextList, AfterValidator(_validate_selectors)]

    def run(self, context: Context) -> Iterable[Finding]:  # noqa: ARG002 - the verdict is that of the tests
        return ()
