"""How a rule that only looks at files is run: reported as any test, without the machinery it has no use for.

Nearly all of the time of a small pytest item goes into capturing, logging and setting up what a content check never
touches. A rule keeps the ordinary way where that could be noticed: it asks for fixtures, runs code of the user, does
not pass, or a plugin wants to see its setup, call or teardown.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeGuard

import pytest

from pytest_loop.core.model.rules import Evidence, Outcome
from pytest_loop.rules import garbage
from pytest_loop.rules.carrying import Carrier, carrier
from pytest_loop.rules.checks.check import describe_crash
from pytest_loop.rules.items import RuleFailed, RuleItem
from pytest_loop.rules.listening import are_of, impls, is_each_named, is_end_heard
from pytest_loop.rules.passing import passed
from pytest_loop.session.reports import note_passed

LONGEST_UNSEEN = 0.1


class SlimProtocol:
    """Takes the place of pytest's own protocol for quiet rules; they have no setup that could be reported."""

    def __init__(self, config: pytest.Config) -> None:
        self.is_end_heard = is_end_heard(config)
        self.is_finish_heard = not are_of(("_pytest.logging",), impls(config, "pytest_runtest_logfinish"))
        self.left: dict[str, _Judged] = {}
        self._carrier = carrier(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
        if not _is_slim(item, nextitem):
            return None
        if known := self.left.pop(item.nodeid, None):
            self.report(item, _warned(item, known))
        elif self._carrier is None:
            item.parent.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            self.report(item, _judged(item))
        else:
            self._judge_for(self._carrier, item)
        return True

    def _judge_for(self, carrier: Carrier, item: RuleItem) -> None:
        """Among workers nobody hears that a rule begins which only looks at files, unless it does not pass."""
        judged = _judged(item)
        if judged.error is None:
            carrier.send(_passing(item, judged))
        else:
            item.parent.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
            self.report(item, judged)

    def report(self, item: RuleItem, judged: _Judged) -> None:
        """Report a rule; one that does not pass is reported in the ordinary way."""
        hook = item.parent.hook
        call = _told(item, judged.error) if judged.error else _passing(item, judged)
        hook.pytest_runtest_logreport(report=call)
        if self.is_end_heard:
            hook.pytest_runtest_logreport(report=passed(item, "teardown", 0.0, 0.0, "loop_rule"))
        if self.is_finish_heard:
            hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


class SlimLoop:
    """Takes the place of pytest's own loop, which does a lot around each item that a quiet rule has no use for."""

    def __init__(self, protocol: SlimProtocol) -> None:
        self.protocol = protocol
        self.is_each_named = True
        self.named: object = None

    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.config.option.collectonly or session.testsfailed:
            return None
        self.is_each_named = is_each_named(session.config)
        items = session.items
        at = self._passed(session, 0)
        while at < len(items):
            following = items[at + 1] if at + 1 < len(items) else None
            session.config.hook.pytest_runtest_protocol(item=items[at], nextitem=following)
            self.named = None
            _go_on(session)
            at = self._passed(session, at + 1)
        return True

    def _passed(self, session: pytest.Session, at: int) -> int:
        """Run quiet rules from `at` for as long as they pass, and give the place of the first other item.

        A rule that fails or warns is judged, and left to pytest, which knows what to do then.
        """
        items = session.items
        with garbage.kept(), _shown_together(session.config), warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            while at + 1 < len(items) and _is_slim(item := items[at], items[at + 1]):
                if self.is_each_named or self.named is not item.parent or item.judged.is_slow:
                    self.named = item.parent
                    item.parent.hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
                judged = _judged(item)
                if judged.error or warned:
                    self.protocol.left[item.nodeid] = judged._replace(warned=tuple(warned))
                    break
                self.protocol.report(item, judged)
                _go_on(session)
                at += 1
        return at


@contextmanager
def _shown_together(config: pytest.Config) -> Iterator[None]:
    """The terminal shows what it has written a few times a second; to show each letter takes as long as a rule."""
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


def _go_on(session: pytest.Session) -> None:
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def is_quiet(item: pytest.Item) -> TypeGuard[RuleItem]:
    """Whether it only looks at files: nothing of the user is run."""
    return isinstance(item, RuleItem) and item.judged.is_quiet


def _is_slim(item: pytest.Item, following: pytest.Item | None) -> TypeGuard[RuleItem]:
    """The last rule of a file goes the ordinary way: with it pytest takes down what earlier tests have left."""
    return is_quiet(item) and isinstance(following, RuleItem) and following.parent is item.parent


class _Judged(NamedTuple):
    """What running a rule came to, and when."""

    error: BaseException | None
    started: float
    ended: float
    warned: tuple[warnings.WarningMessage, ...] = ()


def _judged(item: RuleItem) -> _Judged:
    error: BaseException | None = None
    started = time.time()
    try:
        item.runtest()
    except (RuleFailed, pytest.skip.Exception) as raised:
        error = raised
    return _Judged(error, started, time.time())


def _warned(item: RuleItem, judged: _Judged) -> _Judged:
    """Warn again, where a warning may be an error; the check is not run again, for it may have been a command."""
    try:
        for one in judged.warned:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno, source=one.source)
    except Warning as error:
        return judged._replace(error=item.failure(Evidence(outcome=Outcome.ERROR, text=str(describe_crash(error)))))
    return judged


def _passing(item: RuleItem, judged: _Judged) -> pytest.TestReport:
    report = passed(item, "call", judged.started, judged.ended, "loop_rule")
    note_passed(item, report, item.judged.rule, item.kept)
    return report


def _told(item: RuleItem, error: BaseException) -> pytest.TestReport:
    def again() -> None:
        raise error

    call = pytest.CallInfo.from_call(again, when="call")
    report: pytest.TestReport = item.ihook.pytest_runtest_makereport(item=item, call=call)
    if report.failed:
        item.ihook.pytest_exception_interact(node=item, call=call, report=report)
    return report
