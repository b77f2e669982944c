"""What the functions of the templates share: reading the artifact, and saying all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from pytest_loop.core.text.wording import limit_lines
from pytest_loop.rules.document import Document, Documents
from pytest_loop.rules.syntax import ContentError

MOST = 10


@cache
def _documents(workspace: Path) -> Documents:
    return Documents(workspace)


def read_document(artifact: Path, workspace: Path) -> Document:
    """The artifact; where it cannot be read, the failure says why."""
    documents = _documents(workspace)
    try:
        return documents.read(artifact)
    except ContentError as error:
        raise AssertionError(f"{documents.shown(artifact)}:{error.line}: {error}") from None


def read_data(source: Document) -> Any:
    """The data in the artifact; where there is none, the failure says why."""
    try:
        return source.data(None)
    except ContentError as error:
        raise AssertionError(f"{source.line(error.line)}: {error}") from None


def fail_with(problems: Iterable[str]) -> None:
    """Fail with the problems, if there are any."""
    found = list(problems)
    if found:
        raise AssertionError(";\n".join(limit_lines(found, MOST, "and {} more")))
