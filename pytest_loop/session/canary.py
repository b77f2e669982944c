"""A hidden item that must fail: it shows whether code under test has patched pytest so that everything passes."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


class Canary:
    """Run a failing item before and after all others, and report whether it failed."""

    def __init__(self, token: str, report: Callable[[bool], None]) -> None:
        self._token = token
        self._report = report

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        self._report(self._fails(session))
        try:
            return (yield)
        finally:
            self._report(self._fails(session))

    def _fails(self, session: pytest.Session) -> bool:
        def fail() -> None:
            raise AssertionError(self._token)

        module = _CanaryModule.from_parent(session, path=session.path / f"test_{self._token}.py")
        item = _CanaryItem.from_parent(module, name=f"test_{self._token}", callobj=fail)
        hook = item.ihook
        reports = []
        for when, call in (
            ("setup", lambda: hook.pytest_runtest_setup(item=item)),
            ("call", lambda: hook.pytest_runtest_call(item=item)),
            ("teardown", lambda: hook.pytest_runtest_teardown(item=item, nextitem=None)),
        ):
            info = pytest.CallInfo.from_call(call, when=when)  # type: ignore[arg-type]
            reports.append(hook.pytest_runtest_makereport(item=item, call=info))
        return reports[1].outcome == "failed" and self._token in reports[1].longreprtext


class _CanaryModule(pytest.Module):
    obj = None


class _CanaryItem(pytest.Function):
    def setup(self) -> None:
        """Skip autouse fixtures."""
