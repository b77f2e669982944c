"""Canaries: hidden items that must fail; one that passes shows that code under test has patched pytest."""

from __future__ import annotations

import random
import sys
import unittest
from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

import pytest

from pytest_loop.session.interference import CAUGHT_FAILURE, InterferenceWatch

_NUMPY_ASSERTIONS = ("assert_equal", "assert_array_equal", "assert_allclose")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Canary:
    """Run the canaries before, among and after all other items, and look for interference.

    `report` is called after each group, with True if all its items failed. The random `token` chooses names and places
    of the items, so that code under test cannot tell them from others.
    """

    def __init__(self, token: str, watch: InterferenceWatch, report: Callable[[bool], None]) -> None:
        self._token = token
        self._watch = watch
        self._report = report
        self._random = random.Random(token)  # noqa: S311 - nothing is encrypted
        self._middle_nodeid = ""
        self._has_failed_assertion = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        self._middle_nodeid = self._random.choice(session.items).nodeid if session.items else ""
        self._run_canaries(session)
        try:
            return (yield)
        finally:
            self._run_canaries(session)
            self._watch.check(is_end=True)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        result = yield
        if item.nodeid == self._middle_nodeid:
            self._run_canaries(item.session)
        return result

    @pytest.hookimpl(tryfirst=True)
    def pytest_assertrepr_compare(self) -> None:
        self._has_failed_assertion = True

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        self._watch.check_outcome_code()
        if self._has_failed_assertion and call.when == "call" and call.excinfo is None:
            self._watch.interference.add((item.nodeid, CAUGHT_FAILURE))
        self._has_failed_assertion = False
        return (yield)

    def _run_canaries(self, session: pytest.Session) -> None:
        self._watch.check(is_end=False)
        self._report(all(self._does_fail(session, test) for test in _list_failing_tests(self._token)))

    def _does_fail(self, session: pytest.Session, test: Callable[[], object]) -> bool:
        item = self._make_item(session, test)
        hook = item.ihook
        reports = []
        for when, call in (
            ("setup", lambda: hook.pytest_runtest_setup(item=item)),
            ("call", lambda: hook.pytest_runtest_call(item=item)),
            ("teardown", lambda: hook.pytest_runtest_teardown(item=item, nextitem=None)),
        ):
            info = pytest.CallInfo.from_call(call, when=when)  # type: ignore[arg-type]  # a literal
            reports.append(hook.pytest_runtest_makereport(item=item, call=info))
        return bool(reports[1].outcome == "failed" and self._token in reports[1].longreprtext)

    def _make_item(self, session: pytest.Session, test: Callable[[], object]) -> pytest.Function:
        """Return an item with a name and a path like those of an item in the session."""
        model = self._random.choice(session.items) if session.items else None
        path = model.path if model else session.path / "test_it.py"
        name = model.name.partition("[")[0] if model else "test_it"
        letters = "".join(self._random.choices(_LETTERS, k=3))
        module = _CanaryModule.from_parent(session, path=path)
        return _CanaryItem.from_parent(module, name=f"{name}_{letters}", callobj=test)


class _CanaryModule(pytest.Module):
    obj = None


class _CanaryItem(pytest.Function):
    def setup(self) -> None:
        """Skip autouse fixtures."""

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:  # noqa: ARG002 - pytest's
        """Return the message alone: a traceback costs 15 ms."""
        return str(excinfo.value)


def _list_failing_tests(token: str) -> Iterator[Callable[[], object]]:
    """Yield tests that must fail with the token in their message, one for each kind of assertion."""
    yield partial(_fail_plainly, token)
    yield partial(_fail_to_raise, token)
    yield partial(_fail_approximately, token)
    yield partial(unittest.TestCase().assertEqual, token, "")
    numpy_testing = sys.modules.get("numpy.testing")
    yield from (
        partial(getattr(numpy_testing, name), 1, 2, err_msg=token)
        for name in _NUMPY_ASSERTIONS
        if hasattr(numpy_testing, name)
    )


def _fail_plainly(token: str) -> None:
    assert not token, token  # noqa: S101 - the canary itself


def _fail_to_raise(token: str) -> None:
    try:
        with pytest.raises(LookupError):
            pass
    except pytest.fail.Exception:
        raise AssertionError(token) from None


def _fail_approximately(token: str) -> None:
    assert pytest.approx(1) == 2, token  # noqa: S101 - the canary itself
