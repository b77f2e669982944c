"""Proof that a failure still fails: an item that nobody sees, run like a test before all others and after them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


class Canary:
    """Code under test can patch pytest so that everything passes; then this item passes too."""

    def __init__(self, token: str, told: Callable[[bool], None]) -> None:
        self._token = token
        self._told = told

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        self._told(self._fails(session))
        try:
            return (yield)
        finally:
            self._told(self._fails(session))

    def _fails(self, session: pytest.Session) -> bool:
        def fail() -> None:
            raise AssertionError(self._token)

        cage = _Cage.from_parent(session, path=session.path / f"test_{self._token}.py")
        item = _Bird.from_parent(cage, name=f"test_{self._token}", callobj=fail)
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


class _Cage(pytest.Module):
    obj = None


class _Bird(pytest.Function):
    def setup(self) -> None:
        """Without the fixtures that every test here uses."""
