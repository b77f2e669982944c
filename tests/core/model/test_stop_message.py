"""Messages of coding agents to a Stop hook, and the answers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_loop.core.model.stop_message import Message, format_block_answer, parse_message


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"session_id": "s", "stop_hook_active": true, "hook_event_name": "Stop"}', Message("s", True)),
        ('{"sessionId": "s", "stopReason": "end_turn"}', Message("s", False)),
        ('{"session_id": "", "sessionId": "s"}', Message("s", False)),
        ('{"session_id": 3, "stop_hook_active": "true"}', Message("", False)),
        ('{"conversation_id": "c", "loop_count": 0}', Message("c", False, True)),
        ('{"conversation_id": "c", "loop_count": 2}', Message("c", True, True)),
        ("{}", Message()),
        (" \n", Message()),
        ("[]", None),
        ("{", None),
        ("[" * 200_000, None),
    ],
)
def test_message_of_an_agent_is_parsed(text: str, expected: Message | None) -> None:
    assert parse_message(text) == expected


@given(st.text())
def test_every_reason_becomes_one_line_of_json(reason: str) -> None:
    answer = format_block_answer(reason, Message())
    assert json.loads(answer) == {"decision": "block", "reason": reason}
    assert answer.splitlines() == [answer]
    answer.encode()


@given(st.text())
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    assert isinstance(parse_message(text), Message | None)


def test_cursor_is_answered_with_a_message_to_continue_with() -> None:
    assert json.loads(format_block_answer("it fails", Message("c", wants_followup=True))) == {
        "followup_message": "it fails"
    }


def test_local_chats_of_vscode_read_the_decision_below_the_event() -> None:
    message = parse_message('{"sessionId": "s", "hookEventName": "Stop", "stop_hook_active": false}')
    assert message is not None
    answer = json.loads(format_block_answer("it fails", message))
    assert answer == {"hookSpecificOutput": {"hookEventName": "Stop", "decision": "block", "reason": "it fails"}}
