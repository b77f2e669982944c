"""Read the coverage that a task demands from its words."""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRICT = (">", "above", "over", "more than")
_OPERATOR = r"(?P<op>>=|>|\u2265|at least|above|over|more than)"
_PERCENT = re.compile(
    rf"coverage\D{{0,30}}?{_OPERATOR}?\s*(?<!\bby )(?P<value>\d{{1,3}}(?:\.\d+)?)\s*(?:%|percent)"
    r"|(?P<share>\d{1,3}(?:\.\d+)?)\s*(?:%|percent) (?:\w+ ){0,2}coverage",
    re.IGNORECASE,
)
_TEN_WORDS = "fifty sixty seventy eighty ninety hundred"
_TENS = {word: str(10 * number) for number, word in enumerate(_TEN_WORDS.split(), 5)}
_TEN = re.compile(rf"\b(?:(?:a|one) )?(?P<ten>{'|'.join(_TENS)})(?:[ -]?(?P<half>five))?\b", re.IGNORECASE)
# A number without a unit ends its clause; one below 1 is a share.
_BARE_NUMBER = re.compile(
    rf"coverage\b[^.;,\d\n]{{0,30}}?(?:{_OPERATOR}|\bto|\bis|\breaches|\bat|=|:|(?<=coverage))\s*(?P<value>\d{{1,3}}(?:\.\d+)?)"
    r"(?=\s*(?:$|[,;:!)\n]|\.(?:\s|$)|(?:and|then|in|with|within|or)\b))",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class NumericGoal:
    """A number that has to be reached."""

    op: str
    value: float


def parse_coverage_threshold(text: str) -> NumericGoal | None:
    """Return the line coverage that a text demands, in percent; None if it demands none."""
    text = _TEN.sub(lambda ten: str(int(_TENS[ten["ten"].lower()]) + 5 * bool(ten["half"])), text)
    text = re.sub(r"\bfrom \d[\d.]{0,5}\s?(?:%|percent)?(?= to\b)", "", text, flags=re.IGNORECASE)
    if match := _PERCENT.search(text):
        value = float(match["value"] or match["share"])
    elif match := _BARE_NUMBER.search(text):
        value = float(match["value"])
        value = round(value * 100, 6) if value < 1 else value
    if not match or not 0 < value <= 100:
        return None
    return NumericGoal(">" if (match["op"] or "").lower() in _STRICT else ">=", value)
