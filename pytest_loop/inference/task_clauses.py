"""Tell words that address the loop from words that are part of the task."""

from __future__ import annotations

import re

from pytest_loop.inference.task_intent import is_measured

# The beginning of a clause; a limit elsewhere is part of the task: "a worker that must stop after 3 cycles".
CLAUSE = r"(?:^|(?<=[\s,;.:(])(?:and|then|but|please)\s+|(?<=[,;.:(\n])\s*|[-\u2013\u2014]\s+)"
_REACH = 200
_LOOP_CONDITION = re.compile(r"\buntil\s+(?:\w+\s+){0,3}(?:green|pass(?:es)?|clean)\s*$", re.IGNORECASE)
_BOUNDARY = re.compile(r"[,;.:(\n]")
# After these words a clause describes what the software does.
_PART_OF_TASK = re.compile(
    r"\b(?:that|which|who|where|when|so|mak(?:e|es|ing)|lets?|allow\w*|enabl\w+|can|should|must|may|to)\b",
    re.IGNORECASE,
)


def begins_clause(text: str, start: int) -> bool:
    """Return whether the words at this position begin a clause."""
    before = text[max(0, start - _REACH) : start].rstrip(" \t")
    return not before or bool(_BOUNDARY.match(before[-1])) or bool(re.search(r"\s[-\u2013\u2014]$", before))


def is_part_of_task(text: str, start: int) -> bool:
    """Return whether the clause before this position describes what the software does."""
    return bool(_PART_OF_TASK.search(_get_clause(text, start)))


def addresses_loop(text: str, start: int) -> bool:
    """Return whether the words at this position are for the loop.

    The words are for the loop if they begin a clause, or if they follow a condition of the run: `fix until green in at
    most 20 minutes`.
    """
    clause = _get_clause(text, start)
    is_condition = is_measured(clause) or bool(_LOOP_CONDITION.search(clause))
    return begins_clause(text, start) or (is_condition and not is_part_of_task(text, start))


def _get_clause(text: str, start: int) -> str:
    return _BOUNDARY.split(text[max(0, start - _REACH) : start])[-1]


def cut(match: re.Match[str]) -> str:
    """Return the text of a match without the matched words; the end of a sentence stays."""
    before, after = match.string[: match.start()].rstrip(" ,;("), match.string[match.end() :].lstrip(" ,;")
    ends_sentence = match[0][-1:] in (".", "!") and bool(before and after) and before[-1] not in ".!:"
    return f"{before}{'.' if ends_sentence else ''} {after}".strip()
