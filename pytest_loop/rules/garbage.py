"""The garbage collector rests while thousands of things are made that all stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

MANY = 20_000


@contextmanager
def kept() -> Iterator[None]:
    """Nothing made inside is garbage: looking for it among all rules takes longer than making them.

    Many things are old to the collector afterwards, as if it had looked at them: what is frozen and thawed is.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if gc.get_count()[0] > MANY:
            is_frozen = bool(gc.get_freeze_count())
            gc.freeze()
            if not is_frozen:  # a forked session keeps frozen what it was given
                gc.unfreeze()
        if was_on:
            gc.enable()
