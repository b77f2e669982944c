"""Messages of the Stop hook of coding agents, and the answers to them."""

from __future__ import annotations

import json
from typing import NamedTuple

ALLOW = "{}"


class Message(NamedTuple):
    """The session that wants to stop; `is_repeated` if a hook has just kept it from stopping."""

    session: str = ""
    is_repeated: bool = False


def parse_message(text: str) -> Message | None:
    """Read the message of an agent; None if it is not a JSON object, an empty Message if it is blank."""
    if not text.strip():
        return Message()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    sessions = (data.get(key) for key in ("session_id", "sessionId"))
    session = next((name for name in sessions if name and isinstance(name, str)), "")
    return Message(session, data.get("stop_hook_active") is True)


def format_block_answer(reason: str) -> str:
    """Format the answer that keeps an agent working; it reads the reason next."""
    return json.dumps({"decision": "block", "reason": reason})
