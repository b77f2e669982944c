from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

# pytester forgets what a session inside this process imported, and libyaml's loader does not stand being imported again.
import pytest_loop.rules.collect  # noqa: F401

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True)
def _wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines are compared whole; pytest cuts them at the width of the terminal."""
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture(autouse=True)
def _quick_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of their own load this plugin and xdist: the other plugins of this environment cost more than the rest."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_loop.plugin,xdist.plugin")
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)


@pytest.fixture(autouse=True)
def _nobody_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs inside these tests do not speak to the build that the tests are part of."""
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def rule_file(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Writes a rule file, indented as it stands in the test."""

    def write(text: str, name: str = "it.rules.yaml") -> Path:
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")
        return path

    return write


@pytest.fixture(params=[(), ("-n2",)], ids=["plain", "n2"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Every story is told twice: in one process, and with two xdist workers."""
    return request.param  # type: ignore[no-any-return]
