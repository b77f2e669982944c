"""The integrations cost nothing where nobody asks for them."""

from __future__ import annotations

import subprocess
import sys


def test_unused_integrations_are_not_imported() -> None:
    script = "import sys, pytest_loop.plugin, pytest_loop.cli.console_script, pytest_loop.agents.factory; print(*sys.modules)"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = result.stdout.split()
    assert "pytest_loop.agents.factory" in modules
    heavy = ("pytest_loop.integrations", "mcp", "genai_prices", "check_jsonschema")
    assert [name for name in modules if name.startswith(heavy)] == []
