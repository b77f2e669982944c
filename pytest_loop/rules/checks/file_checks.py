"""Files that must be there, must not be there, or must be there in some number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from pytest_loop.core.model.rules import Finding
from pytest_loop.rules.checks.check import Check, Context
from pytest_loop.rules.checks.structure_checks import Range

MOST_FILES = 100_000


def _glob(pattern: str) -> str:
    if not pattern or PurePosixPath(pattern).is_absolute() or ".." in PurePosixPath(pattern).parts:
        raise ValueError(f"expected a glob below the rule file's folder, found {pattern!r}")
    return pattern


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, (str, dict)) else value


Glob = Annotated[str, AfterValidator(_glob)]
_TEXTS = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}
Globs = Annotated[list[Glob], Field(min_length=1), BeforeValidator(_listed), WithJsonSchema(_TEXTS)]


class Counted(Range):
    """How many files a glob must find."""

    glob: Glob


class Wanted(BaseModel):
    """Globs, relative to the folder of the rule file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    exist: Globs | None = None
    absent: Globs | None = None
    count: Counted | None = None

    @model_validator(mode="after")
    def _something(self) -> Wanted:
        if self.exist is None and self.absent is None and self.count is None:
            raise ValueError("expected exist, absent or count, found none of them")
        return self


class Files(Check):
    """Files exist, are absent, or are so many."""

    files: Wanted

    def run(self, context: Context) -> Iterable[Finding]:
        for pattern in self.files.exist or ():
            if next(_found(context, pattern), None) is None:
                yield Finding(
                    expected=f"a file {pattern!r}", found="none", where=context.documents.shown(context.folder)
                )
        for pattern in self.files.absent or ():
            for path in islice(_found(context, pattern), 5):
                yield Finding(expected=f"no file {pattern!r}", found="one", where=context.documents.shown(path))
        if counted := self.files.count:
            number = sum(1 for _ in islice(_found(context, counted.glob), MOST_FILES))
            if number not in counted:
                where = context.documents.shown(context.folder)
                yield Finding(expected=counted.expected(f"files {counted.glob!r}"), found=f"{number:,}", where=where)


def _found(context: Context, pattern: str) -> Iterator[Path]:
    """What a glob finds inside the project: a link that leads out of it does not count."""
    root = context.root.resolve()
    return (path for path in context.folder.glob(pattern) if path.resolve().is_relative_to(root))
