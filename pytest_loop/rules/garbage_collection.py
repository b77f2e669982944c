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
    """Exclude all existing objects from later garbage collections, including the one at process exit.

    Unless `is_last_session`, first collect the objects that an earlier session excluded, so that memory does not grow
    with each session.
    """
    if gc.get_freeze_count() and not is_last_session:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
