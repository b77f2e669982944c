"""Read the artifact for the functions of the templates, and report their problems."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pytest_loop.core.text.wording import limit_lines
from pytest_loop.rules.document import Document, Documents
from pytest_loop.rules.syntax import ContentError

MAX_PROBLEMS = 10


@cache
def _get_documents(workspace: Path) -> Documents:
    return Documents(workspace)


def read_document(artifact: Path, workspace: Path) -> Document:
    """Read the artifact; raise `AssertionError` with the reason if it cannot be read."""
    documents = _get_documents(workspace)
    try:
        return documents.read(artifact)
    except ContentError as error:
        raise AssertionError(f"{documents.display_path(artifact)}:{error.line}: {error}") from None


def read_data(document: Document) -> Any:
    """Parse the artifact; raise `AssertionError` with the reason if it is malformed."""
    try:
        return document.load_data(None)
    except ContentError as error:
        raise AssertionError(f"{document.line(error.line)}: {error}") from None


def fail_with(problems: Iterable[str]) -> None:
    """Raise `AssertionError` with the problems, if there are any."""
    lines = list(problems)
    if lines:
        raise AssertionError(";\n".join(limit_lines(lines, MAX_PROBLEMS, "and {} more")))
