"""Parsers for the values of options; bad text raises `ArgumentTypeError`."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable
from typing import NamedTuple

_LIMIT = re.compile(r"([\d.]+)([kKmM](?=\s))?\s*([a-zA-Z$]+)")
_PREFIXES = {"": 1, "k": 1_000, "m": 1_000_000}
# Units of `--loop-limit`: the setting of each unit, and the factor that converts it.
_UNITS = {
    **dict.fromkeys(("usd", "$", "dollar", "dollars"), ("budget", 1)),
    **dict.fromkeys(("token", "tokens"), ("max_tokens", 1)),
    **dict.fromkeys(("s", "sec", "second", "seconds"), ("max_seconds", 1)),
    **dict.fromkeys(("min", "minute", "minutes"), ("max_seconds", 60)),
    **dict.fromkeys(("h", "hour", "hours"), ("max_seconds", 3600)),
    **dict.fromkeys(("iteration", "iterations"), ("max_iterations", 1)),
}
_PART = re.compile(r"(\w+)(?:\s*[=:]\s*|\s+)(.+)")


def parse_whole(text: str) -> int:
    """Parse a whole number from 1 on."""
    return int(_parse_number(text, "a whole number >= 1", lambda number: number >= 1 and number == int(number)))


def parse_amount(text: str) -> float:
    """Parse a number above 0."""
    return _parse_number(text, "a number > 0", lambda number: number > 0)


def parse_seconds(text: str) -> float:
    """Parse seconds, or a time such as `30 min`."""
    match = _LIMIT.fullmatch(text.strip())
    name, factor = _UNITS.get(match[3].lower(), ("", 0)) if match else ("", 0)
    return parse_amount(match[1]) * factor if match and name == "max_seconds" else parse_amount(text)


def parse_parts(text: str) -> dict[str, str]:
    """Parse `stuck 5, same_error 3` into values by their names."""
    parts = [part.strip() for part in re.split(r"[,\n]", text) if part.strip()]
    matches = [_PART.fullmatch(part) for part in parts]
    if None in matches:
        raise argparse.ArgumentTypeError(
            f"expected names with values, such as 'a 5, b 3', found {parts[matches.index(None)]!r}"
        )
    return {match[1]: match[2].strip() for match in matches if match}


def parse_count(text: str) -> int:
    """Parse a whole number from 0 on."""
    return int(_parse_number(text, "a whole number >= 0", lambda number: number >= 0 and number == int(number)))


class Shard(NamedTuple):
    """One of several equal parts of a session, counted from 1."""

    number: int
    total: int


def parse_shard(text: str) -> Shard:
    """Parse `2/5`."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise argparse.ArgumentTypeError(f"expected a shard such as 2/5, found {text!r}")
    return Shard(int(match[1]), int(match[2]))


def parse_share(text: str) -> float:
    """Parse a number from 0 to 1."""
    return _parse_number(text, "a number from 0 to 1", lambda number: 0 <= number <= 1)


def _parse_number(text: str, expected: str, is_valid: Callable[[float], bool]) -> float:
    try:
        number = float(text)
        if math.isfinite(number) and abs(number) < 1e15 and is_valid(number):
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")


def parse_thresholds(text: str) -> dict[str, str]:
    """Parse `A=0.8,B=0.9` into the score that passes in each phase."""
    thresholds: dict[str, str] = {}
    for part in text.split(","):
        phase, sign, score = (piece.strip() for piece in part.partition("="))
        if phase.upper() not in ("A", "B") or not sign:
            raise argparse.ArgumentTypeError(f"expected A=0.8,B=0.9, found {text!r}")
        parse_share(score)
        thresholds[phase.upper()] = score
    return thresholds


def parse_limits(text: str) -> dict[str, float | str | None]:
    """Parse `5 USD, 20 min, 200k tokens` into the settings that they stand for; `no USD` takes a limit away."""
    limits: dict[str, float | str | None] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        if part == "estimates":
            limits["estimated_cost"] = "count"
            continue
        is_none = part.startswith("no ")
        match = _LIMIT.fullmatch(part.replace("no ", "1 ", 1) if is_none else part)
        name, factor = _UNITS.get(match[3].lower(), ("", 0)) if match else ("", 0)
        if match is None or not name:
            raise argparse.ArgumentTypeError(f"expected limits such as 5 USD, 20 min, 200k tokens, found {part!r}")
        amount = parse_amount(match[1]) * _PREFIXES[(match[2] or "").lower()] * factor
        number = amount if name == "budget" else max(1, round(amount))
        limits[name] = None if is_none and name != "max_iterations" else number
    return limits


def parse_phase(text: str) -> str:
    """Parse the name of a phase."""
    if text.upper() not in ("A", "B"):
        raise argparse.ArgumentTypeError(f"expected A or B, found {text!r}")
    return text.upper()


def parse_yes_or_no(text: str) -> bool:
    """Parse yes or no."""
    return one_of("yes", "no")(text) == "yes"


def parse_no_or_yes(text: str) -> bool:
    """Parse the opposite of yes or no."""
    return not parse_yes_or_no(text)


def one_of(*words: str) -> Callable[[str], str]:
    """Return a parser that accepts one of these words."""

    def parse(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"expected {', '.join(words[:-1])} or {words[-1]}, found {text!r}")
        return text

    return parse


def is_set(value: object) -> bool:
    """Return whether a value shows that its flag was given: 0 does; None, False and an empty list do not."""
    return value is not None and value is not False and value != []
