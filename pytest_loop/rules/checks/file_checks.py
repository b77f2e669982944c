"""Checks of the files that exist, and of their number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from pytest_loop.core.model.rules import Finding
from pytest_loop.rules.checks.check import Check, Context, StrictModel
from pytest_loop.rules.checks.structure_checks import Range

MAX_FILES = 100_000
MAX_PLACES = 5


def _validate_glob(pattern: str) -> str:
    if not pattern or PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
        raise ValueError(f"expected a glob below the rule file's folder, found {pattern!r}")
    return pattern


def _wrap_glob(value: Any) -> Any:
    return [value] if isinstance(value, (str, dict)) else value


Glob = Annotated[str, AfterValidator(_validate_glob)]
Globs = Annotated[
    list[Glob],
    Field(min_length=1),
    BeforeValidator(_wrap_glob, json_schema_input_type=str | Annotated[list[str], Field(min_length=1)]),
]


class FileCount(Range):
    """How many files a glob must find."""

    glob: Glob


class FileRequirements(StrictModel):
    """Globs, relative to the folder of the rule file."""

    exist: Globs | None = None
    absent: Globs | None = None
    count: FileCount | None = None

    @model_validator(mode="after")
    def _validate(self) -> FileRequirements:
        if self.exist is None and self.absent is None and self.count is None:
            raise ValueError("expected exist, absent or count, found none of them")
        return self


class Files(Check):
    """Files exist, are absent, or number within a range."""

    files: FileRequirements

    def run(self, context: Context) -> Iterable[Finding]:
        show = context.documents.display_path
        for pattern in self.files.exist or ():
            if next(_find_files(context, pattern), None) is None:
                yield Finding(expected=f"a file {pattern!r}", found="none", where=show(context.folder))
        for pattern in self.files.absent or ():
            for path in islice(_find_files(context, pattern), MAX_PLACES):
                yield Finding(expected=f"no file {pattern!r}", found="one", where=show(path))
        if count := self.files.count:
            number = sum(1 for _ in islice(_find_files(context, count.glob), MAX_FILES))
            if number not in count:
                expected = count.describe(f"files {count.glob!r}")
                yield Finding(expected=expected, found=f"{number:,}", where=show(context.folder))


def _find_files(context: Context, pattern: str) -> Iterator[Path]:
    """Yield the files of a glob that are inside the project with links resolved."""
    root = context.root.resolve()
    return (path for path in context.folder.glob(pattern) if path.resolve().is_relative_to(root))
