"""The difference between two lists of lines, computed in bounded time for any input."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from difflib import Match, SequenceMatcher

# difflib compares all pairs of lines. Beyond this many, lines that occur only once are matched first.
_MAX_COMPARED_PAIRS = 1_000_000
Span = tuple[int, int, int, int]  # low and high index in the old lines, then in the new lines
Op = tuple[str, int, int, int, int]  # a tag of difflib and its span


def compute_hunks(old: Sequence[str], new: Sequence[str]) -> Iterable[list[Op]]:
    """Return groups of `difflib` operations, with three lines of context around each change."""
    return _Matcher(old, new).get_grouped_opcodes(3)


class _Matcher(SequenceMatcher[str]):
    """Let difflib group blocks that it did not compute itself."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(None, "", "")
        self._blocks = [*_merge_blocks(_find_blocks(old, new)), Match(len(old), len(new), 0)]

    def get_matching_blocks(self) -> list[Match]:
        return self._blocks


def _find_blocks(old: Sequence[str], new: Sequence[str]) -> Iterator[Match]:
    """Yield blocks of equal lines; of large inputs, match the lines between two anchors separately."""
    low, high, new_low, new_high = span = _trim_span(old, new, (0, len(old), 0, len(new)))
    yield Match(0, 0, low)
    anchors = _find_anchors(old, new, span) if _count_pairs(span) > _MAX_COMPARED_PAIRS else []
    for at, new_at in [*anchors, (high, new_high)]:
        yield from _match_span(old, new, (low, at, new_low, new_at))
        if at < high:
            yield Match(at, new_at, 1)
        low, new_low = at + 1, new_at + 1
    yield Match(high, new_high, len(old) - high)


def _match_span(old: Sequence[str], new: Sequence[str], span: Span) -> Iterator[Match]:
    """Yield the blocks of a span: its equal ends, and those between them unless there are too many pairs."""
    low, high, new_low, new_high = inner = _trim_span(old, new, span)
    yield Match(span[0], span[2], low - span[0])
    if _count_pairs(inner) <= _MAX_COMPARED_PAIRS:
        for match in SequenceMatcher(None, old[low:high], new[new_low:new_high]).get_matching_blocks():
            yield Match(match.a + low, match.b + new_low, match.size)
    yield Match(high, new_high, span[1] - high)


def _count_pairs(span: Span) -> int:
    return (span[1] - span[0]) * (span[3] - span[2])


def _trim_span(old: Sequence[str], new: Sequence[str], span: Span) -> Span:
    """Remove the lines that are equal at the start and at the end of a span."""
    low, high, new_low, new_high = span
    while low < high and new_low < new_high and old[low] == new[new_low]:
        low, new_low = low + 1, new_low + 1
    while low < high and new_low < new_high and old[high - 1] == new[new_high - 1]:
        high, new_high = high - 1, new_high - 1
    return low, high, new_low, new_high


def _find_anchors(old: Sequence[str], new: Sequence[str], span: Span) -> list[tuple[int, int]]:
    """Return index pairs of lines that occur once on each side, in the same order on both."""
    low, high, new_low, new_high = span
    counts, new_counts = Counter(old[low:high]), Counter(new[new_low:new_high])
    positions = {new[at]: at for at in range(new_low, new_high) if new_counts[new[at]] == 1}
    pairs = [(at, positions[old[at]]) for at in range(low, high) if counts[old[at]] == 1 and old[at] in positions]
    return _find_longest_increasing_subsequence(pairs)


def _find_longest_increasing_subsequence(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence of pairs whose second numbers increase."""
    ends: list[int] = []  # the smallest last number of a subsequence of each length
    last: list[int] = []  # the index of the pair with that number
    previous: list[int] = []
    for index, (_, number) in enumerate(pairs):
        length = bisect_left(ends, number)
        ends[length : length + 1] = [number]
        last[length : length + 1] = [index]
        previous.append(last[length - 1] if length else -1)
    subsequence = []
    index = last[-1] if last else -1
    while index >= 0:
        subsequence.append(pairs[index])
        index = previous[index]
    return subsequence[::-1]


def _merge_blocks(blocks: Iterable[Match]) -> Iterator[Match]:
    """Join adjacent blocks, and drop empty ones."""
    current = Match(0, 0, 0)
    for block in blocks:
        if (current.a + current.size, current.b + current.size) == (block.a, block.b):
            current = Match(current.a, current.b, current.size + block.size)
        elif block.size:
            if current.size:
                yield current
            current = block
    if current.size:
        yield current
