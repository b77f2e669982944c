"""Patterns for paths, in the syntax of .gitignore: what may be edited, what is sealed, what git leaves out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pathspec import GitIgnoreSpec

from pytest_loop.errors import LoopError


class PatternError(LoopError):
    """A pattern of an option says nothing."""


class PathPatterns:
    """Patterns, the last fitting one decides; a path is relative and written with slashes, a folder's ends with one."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._spec = _joined([_strict(one) for one in self.patterns])

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def __repr__(self) -> str:
        return f"Globs({self.patterns!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PathPatterns) and other.patterns == self.patterns

    def __hash__(self) -> int:
        return hash(self.patterns)

    def matches(self, path: str) -> bool:
        return bool(_answer(self._spec, path))


@dataclass(frozen=True)
class IgnoredPaths:
    """The lines of .gitignore files by the folder they stand in, the root's as an empty text.

    Those of folders above the project stand by the way from there down to it, with a slash in front. All are taken
    once, before the first edit: whoever writes into a .gitignore later hides nothing by it.
    """

    lines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def get_file(self, folder: str) -> IgnoreFile | None:
        """What one folder says about the paths in it; None where it says nothing."""
        found = self.lines.get(folder)
        return IgnoreFile(folder, found) if found else None

    def get_outer_files(self) -> tuple[IgnoreFile, ...]:
        """What the folders above the project say, the nearest first."""
        ways = sorted((way for way in self.lines if way.startswith("/")), key=len)
        return tuple(IgnoreFile(way, self.lines[way]) for way in ways)


class IgnoreFile:
    """The .gitignore of one folder."""

    def __init__(self, folder: str, lines: Iterable[str]) -> None:
        is_above = folder.startswith("/")
        self._front = f"{folder[1:]}/" if is_above else ""
        self._start = len(folder) + 1 if folder and not is_above else 0
        self._spec = _joined([spec for one in lines if (spec := _lenient(one)) is not None])

    def decide(self, path: str) -> bool | None:
        """Whether a path is ignored; None where no pattern fits."""
        return _answer(self._spec, self._front + path[self._start :])


def _answer(spec: GitIgnoreSpec, path: str) -> bool | None:
    # The patterns stop at the end of a line; no pattern can name a line's end, and a wildcard takes anything else.
    return spec.check_file(path.replace("\n", "?")).include


def _joined(specs: list[GitIgnoreSpec]) -> GitIgnoreSpec:
    # Other backends of the library than the simple one do not take names that are no UTF-8.
    return GitIgnoreSpec([pattern for spec in specs for pattern in spec.patterns], backend="simple")


def _strict(pattern: str) -> GitIgnoreSpec:
    spec = _lenient(pattern)
    if spec is None or not any(one.include is not None for one in spec.patterns):
        raise PatternError(f"expected a pattern as in .gitignore, found {pattern!r}")
    return spec


def _lenient(line: str) -> GitIgnoreSpec | None:
    """What git makes of a line; None where it makes nothing of it."""
    try:
        return GitIgnoreSpec.from_lines([line], backend="simple")
    except ValueError:
        return None
