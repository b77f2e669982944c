"""The difference between two lists of lines, in time that nobody's choice of lines can stretch."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher

# The library compares every line with every other one; beyond this, lines that occur only once come first.
_MAX_COMPARED = 1_000_000
Span = tuple[int, int, int, int]
Op = tuple[str, int, int, int, int]


def compute_hunks(old: Sequence[str], new: Sequence[str]) -> Iterable[list[Op]]:
    """Groups of operations as `difflib` has them, with three lines around each change."""
    return _Matcher(old, new).get_grouped_opcodes(3)


class _Matcher(SequenceMatcher[str]):
    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, "", "")
        self._found = [*_merged(_blocks(old, new)), Match(len(old), len(new), 0)]

    def get_matching_blocks(self) -> list[Match]:
        return self._found


def _blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    start, end = _same_ends(old, new, (0, len(old), 0, len(new)))
    yield Match(0, 0, start)
    whole = (start, len(old) - end, start, len(new) - end)
    if _cost(whole) <= _MAX_COMPARED:
        yield from _compared(old, new, whole)
    else:
        yield from _between_anchors(old, new, whole)
    yield Match(len(old) - end, len(new) - end, end)


def _between_anchors(old: Sequence[str], new: Sequence[str], span: Span) -> Iterator[Match]:
    low, high, new_low, new_high = span
    for at, new_at in [*_anchors(old, new, span), (high, new_high)]:
        gap = (low, at, new_low, new_at)
        start, end = _same_ends(old, new, gap)
        yield Match(low, new_low, start)
        rest = (low + start, at - end, new_low + start, new_at - end)
        if _cost(rest) <= _MAX_COMPARED:
            yield from _compared(old, new, rest)
        yield Match(at - end, new_at - end, end)
        if at < high:
            yield Match(at, new_at, 1)
        low, new_low = at + 1, new_at + 1


def _cost(span: Span) -> int:
    return (span[1] - span[0]) * (span[3] - span[2])


def _same_ends(old: Sequence[str], new: Sequence[str], span: Span) -> tuple[int, int]:
    """How many lines are the same at the start and at the end."""
    low, high, new_low, new_high = span
    most = min(high - low, new_high - new_low)
    start = 0
    while start < most and old[low + start] == new[new_low + start]:
        start += 1
    end = 0
    while end < most - start and old[high - end - 1] == new[new_high - end - 1]:
        end += 1
    return start, end


def _compared(old: Sequence[str], new: Sequence[str], span: Span) -> Iterator[Match]:
    low, high, new_low, new_high = span
    for one in SequenceMatcher(None, old[low:high], new[new_low:new_high]).get_matching_blocks():
        yield Match(one.a + low, one.b + new_low, one.size)


def _anchors(old: Sequence[str], new: Sequence[str], span: Span) -> list[tuple[int, int]]:
    """Lines that occur once on each side: as many of them as stand in the same order."""
    low, high, new_low, new_high = span
    once, new_once = (Counter(part) for part in (old[low:high], new[new_low:new_high]))
    places = {line: new_low + place for place, line in enumerate(new[new_low:new_high]) if new_once[line] == 1}
    pairs = [(at, places[old[at]]) for at in range(low, high) if once[old[at]] == 1 and old[at] in places]
    return _rising(pairs)


def _rising(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest part whose second numbers rise too."""
    ends: list[int] = []  # of parts of each length, the smallest number that one ends with
    last: list[int] = []  # and its place
    before: list[int] = []
    for place, (_, value) in enumerate(pairs):
        length = bisect_left(ends, value)
        if length == len(ends):
            ends.append(value)
            last.append(place)
        ends[length], last[length] = value, place
        before.append(last[length - 1] if length else -1)
    found = []
    place = last[-1] if last else -1
    while place >= 0:
        found.append(pairs[place])
        place = before[place]
    return found[::-1]


def _merged(blocks: Iterator[Match]) -> Iterator[Match]:
    held = Match(0, 0, 0)
    for one in blocks:
        if (held.a + held.size, held.b + held.size) == (one.a, one.b):
            held = Match(held.a, held.b, held.size + one.size)
        elif one.size:
            if held.size:
                yield held
            held = one
    if held.size:
        yield held
