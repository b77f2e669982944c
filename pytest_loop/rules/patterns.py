"""Match regular expressions of users within a deadline."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import lru_cache
from itertools import islice
from typing import Annotated, NamedTuple

from pydantic import AfterValidator

from pytest_loop.rules.deadline import DEADLINE_SECONDS, DeadlineError, can_interrupt, enforce_deadline

MAX_LENGTH = 10_000
_LABEL = re.compile(r"(?:\(\?[a-z]+\))?\(\?#([^)]+)\)")
_SCRIPT = """\
import itertools, json, re, sys
pattern, text, limit, flags = json.load(sys.stdin)
matches = itertools.islice(re.compile(pattern, flags).finditer(text), limit)
print(json.dumps([[m.start(), m.end(), (m[1] or "") if m.re.groups else m[0]] for m in matches]))
"""


class Match(NamedTuple):
    """The span of a match, and the text of its first group, or of the whole match without groups."""

    start: int
    end: int
    text: str


# A rule file may hold more patterns than the cache of `re`.
@lru_cache(maxsize=100_000)
def _compile(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def find_label(pattern: str) -> str:
    """Return the comment at the head of a pattern, `(?#...)`, which describes its matches; empty without one."""
    match = _LABEL.match(pattern)
    return match[1].strip() if match else ""


def find_pattern_error(pattern: str) -> str | None:
    """Describe a pattern that is not a usable regular expression; return None for a usable one."""
    if len(pattern) > MAX_LENGTH:
        return f"one of {len(pattern):,} characters"
    try:
        _compile(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{_shorten(pattern)!r} ({_shorten(str(error))})"
    return None


def validate_pattern(pattern: str) -> str:
    """Return `pattern`, or raise `ValueError`."""
    if error := find_pattern_error(pattern):
        raise ValueError(f"expected a regular expression, found {error}")
    return pattern


Pattern = Annotated[str, AfterValidator(validate_pattern)]


def find_matches(pattern: str, text: str, *, limit: int = 1, ignore_case: bool = False) -> list[Match]:
    """Return the first `limit` matches; `^` and `$` match at the ends of lines."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
    work = f"the pattern {_shorten(pattern)!r}"
    if not can_interrupt():
        return _match_in_subprocess(pattern, text, limit, flags, work)
    with enforce_deadline(DEADLINE_SECONDS, work):
        return [
            Match(match.start(), match.end(), (match[1] or "") if match.re.groups else match[0])
            for match in islice(_compile(pattern, flags).finditer(text), limit)
        ]


def _match_in_subprocess(pattern: str, text: str, limit: int, flags: int, work: str) -> list[Match]:
    """Find matches in a subprocess with a timeout, for threads that cannot be interrupted."""
    try:
        result = subprocess.run(
            [sys.executable, "-I", "-c", _SCRIPT],
            input=json.dumps([pattern, text, limit, flags]),
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"{work} did not end within {DEADLINE_SECONDS:g} s") from None
    return [Match(*row) for row in json.loads(result.stdout)]


def _shorten(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
