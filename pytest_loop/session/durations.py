"""The durations of slow items, cached by pytest for the order of the next session."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

SLOW_SECONDS = 0.3
_CACHE_KEY = "loop/seconds"


def load_durations(config: pytest.Config) -> Mapping[str, float]:
    """Return the seconds of slow items in the previous session by node id."""
    cache = getattr(config, "cache", None)
    return cache.get(_CACHE_KEY, {}) if cache else {}


def save_durations(config: pytest.Config, seconds: Mapping[str, float]) -> None:
    """Save the seconds of slow items for the next session."""
    cache = getattr(config, "cache", None)
    slow = {nodeid: duration for nodeid, duration in seconds.items() if duration >= SLOW_SECONDS}
    if cache is not None and slow != load_durations(config):
        cache.set(_CACHE_KEY, slow)
