from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.rules import Finding
from pytest_loop.rules.checks.check import Context, run_check
from pytest_loop.rules.checks.registry import build_check
from pytest_loop.rules.document import Documents

Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a check, as a rule file would say it, over an artifact; gives what it found as lines."""

    def run(raw: Any, text: str | bytes | None = None, name: str = "doc.md") -> list[str]:
        if text is not None:
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        context = Context(tmp_path, tmp_path, Path(name), Documents(tmp_path))
        return [str(one) for one in found(raw, context)]

    return run


def found(raw: Any, context: Context) -> tuple[Finding, ...]:
    return run_check(build_check(raw), context)
