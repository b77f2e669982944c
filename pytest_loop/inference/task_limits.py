"""Read the limits of a run from the words of its task: iterations, and time."""

from __future__ import annotations

import re
from itertools import chain

from pytest_loop.inference.task_clauses import CLAUSE, addresses_loop, cut

MAX_ITERATIONS = 200
_NUMBERS = "one two three four five six seven eight nine ten eleven twelve"
_COUNTS = {word: number for number, word in enumerate(_NUMBERS.split(), 1)}
_COUNT = rf"(?P<count>\d{{1,6}}(?:\.\d{{1,2}}(?= ?h))?|{'|'.join(_COUNTS)})"
_AT_MOST = r"(?:at most|up to|max(?:imum|\.)?(?: of)?|no more than)"
_CYCLES = r"(?:cycles?|iterations?|rounds?|loops?)"
_ITERATION_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{CLAUSE}(?:stop|give up) after {_COUNT} {_CYCLES}\b[.)]?",
        rf"{CLAUSE}give up after {_COUNT} (?:tries|attempts)\b[.)]?",
        rf"{CLAUSE}{_AT_MOST} {_COUNT} {_CYCLES}\b[.)]?",
        rf"(?<!\S)--(?:max-)?iterations[ =]{_COUNT}(?!\S)",
    )
)
# Of two limits after one `stop after`, each holds by itself.
_EITHER = re.compile(rf"\b((?:stop|give up) after \w+ {_CYCLES}) or (?=\w+ ?(?:sec|min|h)\w*)", re.IGNORECASE)
_UNITS = {"s": 1, "m": 60, "h": 3600}
_UNIT = r"(?P<unit>s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?)"
_BEFORE_TIME = rf"(?:(?:stop|give up) after|(?:(?:in|within|for|take|use|spend) )?{_AT_MOST}|within)"
_TIME_LIMITS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:(?:and|then|but|please) )?{_BEFORE_TIME} (?:{_COUNT}|(?P<half>half )?an?(?= h)) ?{_UNIT}\b[.)]?",
        rf"\b{_COUNT} ?{_UNIT} (?:at most|max(?:imum)?)\b[.)]?",
    )
)
# Loops of other tools count their time limit in minutes.
_TIME_FLAG = re.compile(r"(?<!\S)--(?:timeout|max-wall-clock-minutes)[ =](?P<count>\d{1,6})(?!\S)", re.IGNORECASE)
# After these words, a time is a property of the software, not a limit of the run.
_DURATION = re.compile(
    r"\b(?:(?:finish|complet|end|last|respon|return|load|start|expir|time[sd]? out|execut|answer|take|run)\w{0,5}"
    r"|is|are|be|stays?)\s*$",
    re.IGNORECASE,
)


def extract_iteration_limit(text: str) -> tuple[str, int | None]:
    """Return the text without its iteration limit, and the limit; None for no limit or zero."""
    text = _EITHER.sub(r"\1, stop after ", text)
    for pattern in _ITERATION_LIMITS:
        if (match := pattern.search(text)) and (limit := _parse_count(match["count"])):
            return cut(match), min(int(limit), MAX_ITERATIONS)
    return text, None


def extract_time_limit(text: str) -> tuple[str, int | None]:
    """Return the text without its time limit, and the limit in seconds; None if a time only describes the software."""
    if (match := _TIME_FLAG.search(text)) and int(match["count"]):
        return cut(match), int(match["count"]) * 60
    for match in chain.from_iterable(pattern.finditer(text) for pattern in _TIME_LIMITS):
        is_for_run = addresses_loop(text, match.start()) and not _DURATION.search(text[: match.start()])
        if is_for_run and (count := _parse_count(match["count"] or "one")):
            seconds = int(count * _UNITS[match["unit"][0].lower()])
            return cut(match), seconds // 2 if match.groupdict().get("half") else seconds
    return text, None


def _parse_count(word: str) -> float:
    return _COUNTS.get(word.lower()) or float(word)
