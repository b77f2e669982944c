"""Agent loops as pytest sessions: rules are tests, and agents edit until they pass."""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

# Imported on first use: the plugin must cost nothing in sessions that do not use it.
_PUBLIC = {
    "AgentReply": "pytest_loop.agents.protocol",
    "AgentRequest": "pytest_loop.agents.protocol",
    "ScriptedAgent": "pytest_loop.agents.scripted_agent",
    "Check": "pytest_loop.rules.checks.check",
    "CheckError": "pytest_loop.errors",
    "Context": "pytest_loop.rules.checks.check",
    "Finding": "pytest_loop.core.model.rules",
}

__all__ = ["AgentReply", "AgentRequest", "Check", "CheckError", "Context", "Finding", "ScriptedAgent"]


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PUBLIC[name]), name)
