"""The Stop hook: reading the message, and what blocks an agent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.cli import stop_hook
from pytest_loop.cli.stop_hook import AllowedError, StopHook, read_message
from pytest_loop.core.model.stop_message import Message
from pytest_loop.settings.options import CommandSettings, JudgingSettings
from pytest_loop.settings.settings import make_default_settings

RULES = "artifact: doc.md\nrules: [{id: a.x.title, description: It has a title, check: {contains: '# Guide'}}]"


@pytest.fixture
def pipe() -> Any:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


def test_message_is_read_without_waiting_for_the_end_of_input(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.write(writer, b'{"session_id": "s"}')
    assert read_message(reader) == b'{"session_id": "s"}'
    os.close(writer)


def test_incomplete_message_is_read_until_the_end_of_input(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    os.write(writer, b'{"session_id": ')
    os.close(writer)
    assert read_message(reader) == b'{"session_id": '


def test_message_is_not_awaited_for_ever(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop_hook, "READ_SECONDS", 0.05)
    reader, writer = pipe
    assert read_message(reader) == b""
    os.close(writer)


def make_hook(pytester: pytest.Pytester, message: Message, **commands: Any) -> StopHook:
    (pytester.path / "it.rules.yaml").write_text(RULES)
    (pytester.path / "doc.md").write_text("nothing\n")
    config = pytester.parseconfig()
    judging = JudgingSettings(session="cold", rules=("it.rules.yaml",))
    settings = make_default_settings(pytester.path, judging=judging, commands=CommandSettings(**commands))
    return StopHook(config, settings, message)


def test_failing_rules_block_up_to_the_limit(pytester: pytest.Pytester) -> None:
    hook = make_hook(pytester, Message("me", is_repeated=False), gate_blocks=1)
    answer = json.loads(hook.answer())
    assert answer["decision"] == "block"
    assert answer["reason"].startswith("The rules do not pass: score 0 of ")
    assert answer["reason"].endswith("(kept from stopping 1 of 1 times)")
    with pytest.raises(AllowedError, match="it was kept from stopping 1 times in a row: loop_gate_blocks lets go"):
        hook.answer()


def test_agent_without_a_session_is_blocked_once_at_most(pytester: pytest.Pytester) -> None:
    hook = make_hook(pytester, Message("", is_repeated=True))
    with pytest.raises(AllowedError, match="has no session to count that by"):
        hook.answer()


def test_unreadable_state_file_of_the_agent_lets_it_stop(pytester: pytest.Pytester) -> None:
    hook = make_hook(pytester, Message("me", is_repeated=False))
    state = Path(pytester.path, ".loop", "state.json")
    state.parent.mkdir()
    state.write_text("{")
    with pytest.raises(AllowedError, match="invalid state file"):
        hook.answer()


def test_rules_that_cannot_be_judged_let_the_agent_stop(pytester: pytest.Pytester) -> None:
    hook = make_hook(pytester, Message("me", is_repeated=False))
    (pytester.path / "it.rules.yaml").write_text(
        "rules: [{id: a.x.tool, description: It is clean, check: {command: no-such-tool}}]"
    )
    with pytest.raises(AllowedError, match=r"rules cannot be judged here: a\.x\.tool \(cannot run 'no-such-tool'"):
        hook.answer()
