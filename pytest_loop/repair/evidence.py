"""What failures give away besides the lines they execute: exceptions, missing names, and the words of the tests."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pytest_loop.repair.failure import Failure
from pytest_loop.repair.templates import Hints

_SHORTEST, _LONGEST = 2, 39
_SIGNS = 4
_QUOTED = re.compile(r"'([^']*)'")


def exceptions(failures: Iterable[Failure]) -> tuple[str, ...]:
    """The kinds of exceptions, each once."""
    return tuple(dict.fromkeys(one.error for one in failures))


def hints(failures: Collection[Failure], names: Iterable[str], files: Iterable[Path]) -> Hints:
    """What tests that failed like this, have these names and are in these files tell about the edit that is missing."""
    trees = [tree for path in dict.fromkeys(files) if (tree := _parsed(path)) is not None]
    words = [word for tree in trees for word in _strings(tree)]
    given = [name.partition("[")[2].rstrip("]") for name in names]
    quoted = [word for one in failures for word in _QUOTED.findall(one.message)]
    known = [one.error for one in failures] + [name for tree in trees for name in _names(tree)]
    return Hints(
        strings=tuple(dict.fromkeys(word for word in words if _SHORTEST <= len(word) <= _LONGEST)),
        signs=_signs([quoted, given, words]),
        errors=tuple(dict.fromkeys(name for name in known if _is_exception(name))),
        missing={one.missing: one.close for one in failures if one.missing},
    )


def _signs(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Signs that are neither letters nor digits: the most frequent ones of each group, one group after the other."""
    found: dict[str, None] = {}
    for words in groups:
        counts = Counter(sign for word in words for sign in word if not sign.isalnum() and sign.isprintable())
        found |= dict.fromkeys(sign for sign, _ in counts.most_common(_SIGNS))
    return tuple(found)[:_SIGNS]


def _parsed(path: Path) -> ast.Module | None:
    try:
        return ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _strings(tree: ast.Module) -> Iterator[str]:
    return (one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str))


def _names(tree: ast.Module) -> Iterator[str]:
    return (one.id for one in ast.walk(tree) if isinstance(one, ast.Name))


def _is_exception(name: str) -> bool:
    found = getattr(builtins, name, None)
    return isinstance(found, type) and issubclass(found, Exception) and found is not AssertionError
