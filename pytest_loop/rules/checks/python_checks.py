"""Python as a judge: a function that is called, and tests that are bound to a rule."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator

from pytest_loop.core.model.rules import Finding, Proof
from pytest_loop.errors import CheckError, LoopError
from pytest_loop.rules.checks.check import Check, Context, TextList, format_value
from pytest_loop.rules.mark_expressions import MarkExpression


def _reference(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", text):
        raise ValueError(f"expected module:function, found {format_value(text)}")
    return text


class Python(Check):
    """`function(artifact, workspace)` returns true or nothing; false or an exception fails, with its text."""

    is_slow: ClassVar[bool] = True
    proof: ClassVar[Proof] = Proof.EXECUTION

    python: Annotated[str, AfterValidator(_reference)]

    def run(self, context: Context) -> Iterable[Finding]:
        function = self._function(context)
        artifact = context.inside(context.artifact) if context.artifact else None
        try:
            answer = function(artifact, context.workspace)
        except LoopError:
            raise
        except Exception as error:  # the function's way to say no
            yield from self._said(error)
            return
        if answer is not None and answer is not True:
            yield Finding(expected=f"True or None from {self.python}", found=format_value(answer))

    def file(self, *folders: Path) -> Path | None:
        """Where its function stands, if that is in one of these folders."""
        place = self.python.partition(":")[0].replace(".", "/")
        names = (f"{place}.py", f"{place}/__init__.py")
        return next((folder / name for folder in folders for name in names if (folder / name).is_file()), None)

    def _said(self, error: Exception) -> Iterator[Finding]:
        """What the function says is wrong: several problems are separated by `;` and a new line.

        One that begins with `file:line: ` says where, and one that says what was expected and found is left as it is.
        """
        text = str(error) if isinstance(error, AssertionError) and str(error) else f"{type(error).__name__}: {error}"
        for problem in text.split(";\n"):
            where = re.match(r"([^\s:]+:\d+): ", problem)
            found = problem[where.end() :] if where else problem
            expected = "" if re.search(r"\bexpected .*, found ", found) else f"{self.python} to pass"
            yield Finding(expected=expected, found=found, where=where[1] if where else "")

    def _function(self, context: Context) -> Callable[..., Any]:
        module, _, name = self.python.partition(":")
        try:
            with _importable(str(context.folder), str(context.root)):
                function = getattr(importlib.import_module(module), name, None)
        except Exception as error:  # whatever a module does when it is imported
            raise CheckError(f"cannot import {module}: {type(error).__name__}: {error}") from error
        if not callable(function):
            raise CheckError(f"{module} has no function {name}")
        return function  # type: ignore[no-any-return]


@contextmanager
def _importable(*folders: str) -> Iterator[None]:
    """Modules beside the rule file and at the project's root can be imported, as tests beside them could."""
    before = list(sys.path)
    sys.path[:0] = [folder for folder in folders if folder not in before]
    try:
        yield
    finally:
        sys.path[:] = before


def _test_selection(texts: list[str]) -> list[str]:
    for text in texts:
        if not is_node_id(text):
            MarkExpression(text)
    return texts


def is_node_id(text: str) -> bool:
    """A path or a node id, as opposed to an expression over marks."""
    return "::" in text or "/" in text or text.endswith(".py")


class Tests(Check):
    """The Python tests named, by node id or by an expression as `-m` takes it, ran and passed."""

    __test__: ClassVar[bool] = False
    proof: ClassVar[Proof] = Proof.EXECUTION

    tests: Annotated[TextList, AfterValidator(_test_selection)]

    def run(self, context: Context) -> Iterable[Finding]:  # noqa: ARG002 - the verdict is that of the tests
        return ()
