"""Regular expressions of users, matched within a deadline."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import lru_cache
from typing import NamedTuple

from pytest_loop.rules.deadline import DEADLINE_SECONDS, DeadlineError, can_interrupt, enforce_deadline

LONGEST = 10_000
# Only the standard library, and nothing of the working folder: the process knows no more than the pattern.
_SCRIPT = """\
import itertools, json, re, sys
pattern, text, limit, flags = json.load(sys.stdin)
found = itertools.islice(re.compile(pattern, flags).finditer(text), limit)
print(json.dumps([[m.start(), m.end(), (m[1] or "") if m.re.groups else m[0]] for m in found]))
"""


class Match(NamedTuple):
    """Where a pattern matched, and what its first group (or the whole match) said."""

    start: int
    end: int
    text: str


# A rule file may hold more patterns than `re` remembers.
@lru_cache(maxsize=100_000)
def _compiled(pattern: str, flags: int) -> re.Pattern[str]:
    return re.compile(pattern, flags)


def find_pattern_error(pattern: str) -> str | None:
    """Why `pattern` is not a usable regular expression, or None."""
    if len(pattern) > LONGEST:
        return f"one of {len(pattern):,} characters"
    try:
        _compiled(pattern, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{_shortened(pattern)!r} ({_shortened(str(error))})"
    return None


def find_matches(pattern: str, text: str, *, limit: int = 1, ignore_case: bool = False) -> list[Match]:
    """The first `limit` matches; `^` and `$` stand for the ends of lines."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
    if not can_interrupt():
        return _in_a_process(pattern, text, limit, flags)
    with enforce_deadline(DEADLINE_SECONDS, f"the pattern {_shortened(pattern)!r}"):
        return _found(pattern, text, limit, flags)


def _found(pattern: str, text: str, limit: int, flags: int) -> list[Match]:
    compiled = _compiled(pattern, flags)
    if limit == 1:
        first = compiled.search(text)
        return [_match(first)] if first else []
    found = []
    for match in compiled.finditer(text):
        found.append(_match(match))
        if len(found) >= limit:
            break
    return found


def _match(match: re.Match[str]) -> Match:
    return Match(match.start(), match.end(), (match[1] or "") if match.re.groups else match[0])


def _in_a_process(pattern: str, text: str, limit: int, flags: int) -> list[Match]:
    """Where a match cannot be interrupted, a process of its own can be ended."""
    command = [sys.executable, "-I", "-c", _SCRIPT]
    try:
        done = subprocess.run(
            command,
            input=json.dumps([pattern, text, limit, flags]),
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
            check=True,
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"the pattern {_shortened(pattern)!r} did not end within {DEADLINE_SECONDS:g} s") from None
    return [Match(*row) for row in json.loads(done.stdout)]


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
