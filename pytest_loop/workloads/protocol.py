"""How a case is run: as any test, without the machinery around a setup and a teardown that it does not have.

A case runs its commands in processes of their own, so that nothing is to be captured or logged. It keeps the ordinary
way where that could be noticed: it does not pass, it stands for several rules, it is the last of its manifest, or
somebody wants to see more.
"""

from __future__ import annotations

import time

import pytest

from pytest_loop.rules.carrying import QUIET, carrier, listeners
from pytest_loop.rules.listening import are_of, is_alone, is_each_named, is_end_heard
from pytest_loop.rules.passing import passed
from pytest_loop.session.reports import Reports, note_passed
from pytest_loop.workloads.items import CaseItem

NAME = "loop-cases"


def watch_cases(config: pytest.Config) -> None:
    """Run cases in the short way, if nobody minds; asked once in a process."""
    if not config.pluginmanager.has_plugin(NAME) and is_alone(config) and not _is_more_heard(config):
        config.pluginmanager.register(CaseProtocol(config), NAME)


def _is_more_heard(config: pytest.Config) -> bool:
    """A worker of xdist tells what it is told to tell."""
    if hasattr(config, "workerinput"):
        return carrier(config) is None
    return is_each_named(config) or is_end_heard(config) or not are_of(QUIET, listeners(config))


class CaseProtocol:
    """Takes the place of pytest's own protocol for cases that pass: one report instead of three."""

    def __init__(self, config: pytest.Config) -> None:
        self._plugins = config.pluginmanager
        self._carrier = carrier(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not isinstance(item, CaseItem) or nextitem is None or nextitem.parent is not item.parent:
            return None
        reports: Reports | None = self._plugins.getplugin("loop-reports")
        rules = reports.binding.rules_of(item.nodeid) if reports is not None else ()
        started = time.time()
        if len(rules) > 1 or not item.passes():
            return None
        report = passed(item, "call", started, time.time())
        for rule in rules:
            note_passed(item, report, rule, item.kept)
        if self._carrier is None:
            item.parent.hook.pytest_runtest_logreport(report=report)
        else:
            self._carrier.send(report)
        return True
