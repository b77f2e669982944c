"""What a session leaves for others: how long rules took, for the next one, and its score, for JUnit XML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from pytest_loop.core.model.rules import Evaluation
from pytest_loop.session.ordering import SLOW

_SECONDS = "loop/seconds"


def known_seconds(config: pytest.Config) -> Mapping[str, float]:
    """How long slow rules took in the session before."""
    cache = getattr(config, "cache", None)
    return cache.get(_SECONDS, {}) if cache else {}


def note_seconds(config: pytest.Config, seconds: Mapping[str, float]) -> None:
    """How long rules took, for the order of the next session."""
    cache = getattr(config, "cache", None)
    slow = {nodeid: took for nodeid, took in seconds.items() if took >= SLOW}
    if cache is not None and slow != known_seconds(config):
        cache.set(_SECONDS, slow)


def note_suite_score(config: pytest.Config, evaluations: Sequence[Evaluation]) -> None:
    """The score in JUnit XML; the plugin that writes it has no other public way in than its own method."""
    for plugin in config.pluginmanager.get_plugins():
        add = getattr(plugin, "add_global_property", None)
        for one in evaluations if add is not None else ():
            name = "loop.score" if len(evaluations) == 1 else f"loop.score.{one.criteria}"
            add(name, f"{float(one.score):.4g}")  # type: ignore[misc]
