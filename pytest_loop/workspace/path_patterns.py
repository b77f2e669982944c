"""Path patterns in the syntax of .gitignore."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pathspec import GitIgnoreSpec, RegexPattern

from pytest_loop.errors import LoopError

_NAMED_GROUP = re.compile(r"\(\?P<\w+>")


class PatternError(LoopError):
    """An option holds an invalid pattern."""


class PathPatterns:
    """Path patterns in order: the last pattern that matches decides.

    Paths are relative and written with slashes; the path of a folder ends with one.
    """

    def __init__(self, patterns: Iterable[str]) -> None:
        self.patterns = tuple(patterns)
        self._spec = join_specs(_parse_strictly(pattern) for pattern in self.patterns)
        self._any_pattern = _join_expressions(self._spec)

    def __bool__(self) -> bool:
        return bool(self.patterns)

    def matches(self, path: str) -> bool:
        return self._any_pattern.match(_prepare_path(path)) is not None and bool(check_path(self._spec, path))


def parse_line(line: str) -> GitIgnoreSpec | None:
    """Parse one line of a .gitignore file; return None if git would skip it as malformed."""
    try:
        return GitIgnoreSpec.from_lines([line], backend="simple")
    except ValueError:
        return None


def _parse_strictly(pattern: str) -> GitIgnoreSpec:
    spec = parse_line(pattern)
    if spec is None or not any(part.include is not None for part in spec.patterns):
        raise PatternError(f"expected a pattern as in .gitignore, found {pattern!r}")
    return spec


def join_specs(specs: Iterable[GitIgnoreSpec]) -> GitIgnoreSpec:
    """Join patterns into one spec, in which the last match decides."""
    # Other backends of the library reject names that are not UTF-8.
    return GitIgnoreSpec([pattern for spec in specs for pattern in spec.patterns], backend="simple")


def check_path(spec: GitIgnoreSpec, path: str) -> bool | None:
    """Return whether the patterns include a path, or None if none of them matches it."""
    return spec.check_file(_prepare_path(path)).include


def _prepare_path(path: str) -> str:
    """Replace each newline in a path by "?": no pattern can name a newline, and wildcards match both."""
    return path.replace("\n", "?")


def _join_expressions(spec: GitIgnoreSpec) -> re.Pattern[str]:
    """Return one expression that matches if any pattern does: most paths match none, and one search is quicker."""
    expressions = [part.regex.pattern for part in spec.patterns if isinstance(part, RegexPattern) and part.regex]
    return re.compile("|".join(_NAMED_GROUP.sub("(?:", text) for text in expressions) or "(?!)")
