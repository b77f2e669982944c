"""The integrations cost nothing where nobody asks for them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest_loop.integrations


def test_unused_integrations_are_not_imported() -> None:
    script = "import sys, pytest_loop.plugin, pytest_loop.cli.console_script, pytest_loop.agents.factory; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = result.stdout.split()
    assert "pytest_loop.agents.factory" in modules
    heavy = ("pytest_loop.integrations", "mcp", "genai_prices", "check_jsonschema")
    assert [name for name in modules if name.startswith(heavy)] == []


def test_integrations_stay_small() -> None:
    files = Path(pytest_loop.integrations.__file__).parent.glob("*.py")
    assert sum(len(path.read_text().splitlines()) for path in files) < 1500
