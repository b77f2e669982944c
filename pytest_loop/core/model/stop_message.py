"""The Stop hook of coding agents: what an agent that wants to stop says, and what it is answered."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

ALLOW = "{}"
# One word for two spellings.
_SESSION = ("session_id", "sessionId")


class Message(NamedTuple):
    """Who wants to stop, and whether a hook has kept it from stopping just before."""

    session: str = ""
    is_repeated: bool = False


def parse_message(text: str) -> Message | None:
    """What the agent says; None where it cannot be understood, and nothing is known where nothing was said."""
    if not text.strip():
        return Message()
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    return Message(_session(found), found.get("stop_hook_active") is True)


def _session(found: dict[str, Any]) -> str:
    return next((name for key in _SESSION if isinstance(name := found.get(key), str) and name), "")


def format_block_answer(reason: str) -> str:
    """The answer that keeps an agent at work; the reason is what it reads next."""
    return json.dumps({"decision": "block", "reason": reason})
