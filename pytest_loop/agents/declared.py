"""Agents that a project names itself, in its pyproject.toml."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pytest_loop.agents.protocol import AgentUnavailableError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TABLE = "[tool.pytest-loop.agents.NAME]"


def declared(root: Path) -> dict[str, str]:
    """The names, each with what it stands for: `spec = "command:..."` in a table of its own."""
    path = root / "pyproject.toml"
    try:
        data: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (OSError, ValueError) as error:
        raise AgentUnavailableError(f"cannot read the agents in {path}: {error}") from None
    found = data.get("tool", {}).get("pytest-loop", {}).get("agents", {})
    names = found if isinstance(found, dict) else {}
    for name, table in names.items():
        if not isinstance(table, dict) or not isinstance(table.get("spec"), str):
            raise AgentUnavailableError(
                f'{path}: expected spec = "..." in {TABLE.replace("NAME", name)}, found {table!r}'
            )
    return {name: table["spec"] for name, table in names.items()}
