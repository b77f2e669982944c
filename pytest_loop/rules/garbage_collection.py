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


def freeze_rules(*, is_last_session: bool) -> None:
    """Exclude everything made so far from collections, also from those when the process ends.

    If more sessions may follow in this process, what an earlier one excluded is collected first: sessions must not add
    up. The process of a run's session ends with it.
    """
    if gc.get_freeze_count() and not is_last_session:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
