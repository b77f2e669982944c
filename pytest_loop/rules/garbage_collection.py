"""Keep the garbage collector from searching thousands of rules, which all stay until the session ends."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pause_garbage_collection() -> Iterator[None]:
    """Pause the collector while rules are made."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def freeze_rules() -> None:
    """Exclude everything made so far from collections, also from those when the process ends.

    What an earlier session of this process excluded is collected first, so that sessions do not add up.
    """
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
    gc.freeze()
