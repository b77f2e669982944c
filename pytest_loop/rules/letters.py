"""When the letters of quick items are shown: to show each one takes as long as the item."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

LONGEST_UNSEEN = 0.1


@contextmanager
def shown_together(config: pytest.Config) -> Iterator[None]:
    """The terminal shows what it has written a few times a second, and the rest in the end."""
    if not config.pluginmanager.has_plugin("terminalreporter"):
        yield
        return
    writer = config.get_terminal_writer()
    show, shown = writer.flush, time.monotonic()

    def seldom() -> None:
        nonlocal shown
        if time.monotonic() - shown >= LONGEST_UNSEEN:
            shown = time.monotonic()
            show()

    writer.flush = seldom  # type: ignore[method-assign]
    try:
        yield
    finally:
        writer.flush = show  # type: ignore[method-assign]
        show()
