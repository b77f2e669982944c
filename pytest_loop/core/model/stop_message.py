"""Messages of the Stop hook of coding agents, and the answers to them."""

from __future__ import annotations

import json
from typing import NamedTuple

ALLOW = "{}"


class Message(NamedTuple):
    """A message that an agent wants to end its conversation (`session`); `is_repeated` if a hook has just refused.

    `wants_followup` if the client continues only with a message of the user, as Cursor does; `wants_event` if the
    client reads the decision only below the name of the event, as local chats of VS Code do.
    """

    session: str = ""
    is_repeated: bool = False
    wants_followup: bool = False
    wants_event: bool = False


def parse_message(text: str) -> Message | None:
    """Parse the input of the Stop hook; return None if it is not a JSON object, an empty Message if it is blank."""
    if not text.strip():
        return Message()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    sessions = (data.get(key) for key in ("session_id", "sessionId", "conversation_id"))
    session = next((name for name in sessions if name and isinstance(name, str)), "")
    count = data.get("loop_count")
    is_repeated = data.get("stop_hook_active") is True or (isinstance(count, int) and count > 0)
    return Message(session, is_repeated, "conversation_id" in data, "hookEventName" in data)


def format_block_answer(reason: str, message: Message) -> str:
    """Format the answer that keeps an agent working; the agent gets `reason` as its next input."""
    if message.wants_followup:
        return json.dumps({"followup_message": reason})
    decision = {"decision": "block", "reason": reason}
    if message.wants_event:
        return json.dumps({"hookSpecificOutput": {"hookEventName": "Stop", **decision}})
    return json.dumps(decision)
