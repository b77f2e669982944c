from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.rules.checks.check import Context, run_check
from pytest_loop.rules.checks.registry import build_check
from pytest_loop.rules.document import Documents

Run = Callable[..., list[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a check of a rule file on an artifact, and return its findings as lines."""

    def run(raw: Any, text: str | bytes | None = None, name: str = "doc.md") -> list[str]:
        if text is not None:
            (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        context = Context(tmp_path, tmp_path, Path(name), Documents(tmp_path))
        return [str(finding) for finding in run_check(build_check(raw), context)]

    return run
