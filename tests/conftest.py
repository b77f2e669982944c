from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]


@pytest.fixture
def rule_file(pytester: pytest.Pytester) -> Callable[..., Path]:
    """Writes a rule file, indented as it stands in the test."""

    def write(text: str, name: str = "it.rules.yaml") -> Path:
        path = pytester.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_dedented(text), encoding="utf-8")
        return path

    return write


def _dedented(text: str) -> str:
    import textwrap

    return textwrap.dedent(text).lstrip("\n")


@pytest.fixture(params=[(), ("-n2",)], ids=["plain", "n2"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Every story is told twice: in one process, and with two xdist workers."""
    return request.param  # type: ignore[no-any-return]
