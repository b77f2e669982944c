"""Find classes whose objects claim to equal, or to contain, every value or every value of one type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

# Pairs of different values: no correct object equals both.
_PAIRS: tuple[tuple[Any, Any], ...] = (
    (object(), object()),
    (7919, 104729),
    (0.8125, 6287.5),
    ("a text that is not", "the other one"),
    (b"some bytes", b"other ones"),
    ([7919], ["another"]),
    ({"one": 7919}, {"another": 0}),
    ((7919,), ("another", None)),
    ({7919}, {"another"}),
)


class _Unknown:
    """An object that has every attribute, none of which supports an operation."""

    def __getattr__(self, name: str) -> _Unknown:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Unknown()


def equals_everything(kind: Any) -> bool:
    """Return whether an object of a class, made without its constructor, claims to equal two different values."""
    compare: Callable[[Any, Any], Any] = kind.__eq__
    candidates: list[Any] = [_Unknown()]
    with suppress(Exception):  # a class may raise anything
        candidates.append(kind.__new__(kind))
    return any(
        _is_equal(compare, candidate, first) and _is_equal(compare, candidate, second)
        for candidate in candidates
        for first, second in _PAIRS
    )


def contains_everything(kind: Any) -> bool:
    """Return whether an object of a class, made without its constructor, claims to contain every tested value."""
    contains: Callable[[Any, Any], Any] = kind.__contains__
    with suppress(Exception):  # a class may raise anything
        candidate = kind.__new__(kind)
        return all(_is_equal(contains, candidate, value) for pair in _PAIRS for value in pair)
    return False


def _is_equal(compare: Callable[[Any, Any], Any], candidate: Any, value: Any) -> bool:
    try:
        answer = compare(candidate, value)
        return answer is not NotImplemented and type(answer).__module__ == "builtins" and bool(answer)
    except Exception:  # a class may raise anything
        return False


def list_classes() -> Iterator[type]:
    """Yield all classes; a class that has just been dropped may be among them."""
    waiting: list[type] = [object]
    seen_ids: set[int] = set()  # a metaclass may forbid to hash its classes
    list_subclasses: Callable[[type], list[type]] = type.__subclasses__
    while waiting:
        for kind in list_subclasses(waiting.pop()):
            if id(kind) not in seen_ids:
                seen_ids.add(id(kind))
                waiting.append(kind)
                yield kind
