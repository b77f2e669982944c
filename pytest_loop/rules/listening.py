"""Who listens in a session: whether anybody could tell that an item is run without all of pytest's machinery."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

_SEEN = ("pytest_runtest_setup", "pytest_runtest_call", "pytest_runtest_teardown", "pytest_runtest_makereport")
_HEARD = (
    "pytest_runtest_logstart",
    "pytest_runtest_logreport",
    "pytest_runtest_logfinish",
    "pytest_report_teststatus",
)
_OURS = ("_pytest.", "pytest_loop.")
# What pytest does around an item: it explains asserts, helps twisted, catches warnings, and watches the time.
_AROUND = ("_pytest.assertion", "_pytest.faulthandler", "_pytest.runner", "_pytest.unittest", "_pytest.warnings")
# Who hears that an item begins and makes little of it: a run wants to know where a session can die, which is where
# something is run; that is named all the same.
_UNMOVED = ("_pytest.logging", "_pytest.terminal", "pytest_loop.session.channel")
# Who hears every report and makes nothing of the end of an item that passed.
_INDIFFERENT = (
    "_pytest.cacheprovider",
    "_pytest.logging",
    "_pytest.main",
    "_pytest.stepwise",
    "_pytest.terminal",
    "pytest_loop.",
)


def is_alone(config: pytest.Config) -> bool:
    """Whether nobody but pytest itself watches how an item is run."""
    return are_of((*_OURS, "xdist."), impls(config, *_SEEN))


def is_unwatched(config: pytest.Config) -> bool:
    """Whether nobody could tell that a quiet rule is run without what pytest does around an item."""
    loops = [impl for impl in impls(config, "pytest_runtestloop") if not (impl.wrapper or impl.hookwrapper)]
    return (
        are_of(_OURS, [*loops, *impls(config, *_HEARD)])
        and are_of((*_AROUND, "pytest_loop."), impls(config, "pytest_runtest_protocol"))
        and not config.getini("faulthandler_timeout")
    )


def impls(config: pytest.Config, *hooks: str) -> list[Any]:
    """Everything that listens to one of these hooks."""
    return [impl for name in hooks for impl in getattr(config.hook, name).get_hookimpls()]


def are_of(modules: tuple[str, ...], found: Iterable[Any]) -> bool:
    """Whether all of them belong to modules that begin like this."""
    return all(_module(impl.plugin).startswith(modules) for impl in found)


def _module(plugin: Any) -> str:
    return str(getattr(plugin, "__name__", None) or type(plugin).__module__)


def is_end_heard(config: pytest.Config) -> bool:
    """Whether the report of a teardown that passed makes a difference to anybody."""
    heard = not are_of(_INDIFFERENT, impls(config, "pytest_runtest_logreport"))
    return heard or config.getoption("durations", None) is not None


def is_each_named(config: pytest.Config) -> bool:
    """Whether it makes a difference that every rule has begun: the terminal names a file once, unless it is verbose."""
    heard = not are_of(_UNMOVED, impls(config, "pytest_runtest_logstart"))
    return heard or config.get_verbosity(pytest.Config.VERBOSITY_TEST_CASES) > 0
