"""Find the concrete objects and the meaningful words of a task."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from pytest_loop.inference.tool_purposes import SUBCOMMANDS, TOOLS, split_names

_PATH = r"(?<![\w/])[\w.@*-]{1,80}/[\w./*-]{0,200}\w"
_SUFFIX = "py|[cm]?[jt]sx?|go|rs|java|rb|md|toml|ya?ml|json|sql|s?css|html|svg|cpp|cs|kt|php|sh|proto|ini|cfg"
_FILE = rf"\b[\w-]{{1,80}}\.(?:{_SUFFIX})\b"
_NAME = r"`[^`\n]+`|\b[a-zA-Z]\w*_\w+\b|\b[A-Z][a-z0-9]+[A-Z]\w*\b|\b\w+\(\)"
_COMPARED = r"(?:[<>\u2264\u2265]=?|\b(?:below|under|above|over|at least|at most|within))\s?\d[\d.,]{0,15}\s?\w{0,15}%?"
_MEASURE = r"\b\d[\d.,]{0,15}\s?(?:%|percent\b|ms\b|[kmg]b\b|rps\b)"
_ISSUE = r"#\d+|\b[A-Z]{2,}-\d+\b|\bissue \d+"
_CONCRETE = tuple(re.compile(pattern) for pattern in (_PATH, _FILE, _NAME, _COMPARED, _MEASURE, _ISSUE))
METRIC = re.compile(f"{_COMPARED}|{_MEASURE}", re.IGNORECASE)
PATH = re.compile(f"{_PATH}|{_FILE}")
# Names of tools that are common words.
_AMBIGUOUS = split_names("build flow next go tap pest vale trial karma")
_TOOL_NAMES = frozenset((*TOOLS, *(name for name, _ in SUBCOMMANDS))) - _AMBIGUOUS

# Words that name everything.
_GENERIC = split_names(
    "code codebase app application project repo repository it this that them they everything all things thing stuff "
    "software system program product quality src lib test tests main index core common utils util helpers package "
    "packages module modules file files folder work job whole entire some any more new old our my your what"
)
# Verbs, praise and particles.
_EMPTY = split_names(
    "a an the and or but so then please can could you we i to of in on for with by at from as is are be make do get "
    "let go better best good great nice nicer clean cleaner up improve improved improvement improvements enhance "
    "enhanced polish optimize optimise optimized robust solid perfect awesome beautiful modern professional production "
    "ready performance fast faster maintainable readable elegant simple simpler properly correctly well very much "
    "really just now fix resolve solve repair mend debug refactor rewrite rework restructure implement add create "
    "write build update change bug bugs issue issues problem problems error errors feature features finish complete "
    "done works working until enough less keep trying going look looks feel feels seem seems am"
)


def find_concrete_objects(text: str, files: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the paths, names, numbers, issues, tools, and files of the project that a text names."""
    objects = [match[0].strip("`") for pattern in _CONCRETE for match in pattern.finditer(text)]
    words = frozenset(re.findall(r"[a-z][\w-]+", text.lower()))
    objects += sorted(words & _TOOL_NAMES)
    names = frozenset(part for path in files for part in _split_path(path.lower()))
    objects += sorted(word for word in (words & names) - _GENERIC - _EMPTY if len(word) > 2)
    return tuple(name for index, name in enumerate(objects) if not any(name in other for other in objects[:index]))


def _split_path(path: str) -> tuple[str, ...]:
    return (PurePosixPath(path).stem, *PurePosixPath(path).parts[:-1])


def find_content_words(text: str) -> list[str]:
    """Return the words of a task that are neither generic nor empty."""
    words = re.findall(r"[^\W\d_][\w-]*", text.lower())
    return [word for word in words if word not in _EMPTY and word not in _GENERIC]
