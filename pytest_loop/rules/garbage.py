"""The garbage collector rests while thousands of things are made that all stay."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

MANY = 20_000
# Whether this process forks sessions, and keeps frozen what it has loaded; to ask the collector is slow there.
is_frozen = False
_is_resting = False


@contextmanager
def kept() -> Iterator[None]:
    """Nothing made inside is garbage: looking for it among all rules takes longer than making them.

    Many things are old to the collector afterwards, as if it had looked at them: what is frozen and thawed is. Nor are
    they looked through when the process ends, which python would do twice.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY:
            was_frozen = is_frozen or bool(gc.get_freeze_count())
            gc.freeze()
            if not was_frozen:
                gc.unfreeze()
            _let_end()
        if was_on:
            gc.enable()


@cache
def _let_end() -> None:
    atexit.register(gc.freeze)


def rest() -> None:
    """Nothing is garbage from now on: pytest looks twice for what tests have left, and none was run."""
    global _is_resting
    if is_frozen or not gc.get_freeze_count():
        gc.freeze()
        _is_resting = not is_frozen  # a forked process ends with its session
        _let_end()


def wake() -> None:
    """The session is over; who lives on has garbage again."""
    global _is_resting
    if _is_resting:
        gc.unfreeze()
        _is_resting = False
