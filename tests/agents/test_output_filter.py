"""What a person sees of a client at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.output_filter import MAX_LINE_BYTES, OutputFilter, render_event

RECORDINGS = Path(__file__).parent / "recordings"


def seen(*pieces: bytes) -> list[bytes]:
    heard: list[bytes] = []
    glimpse = OutputFilter(heard.append)
    for piece in pieces:
        glimpse(piece)
    glimpse.end()
    return heard


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("codex", [b"I look at it first.\n", b"Fixed.\n"]),
        ("claude", [b"Edit: calc.py\n", b"Fixed.\n"]),
        ("gemini", [b"I look at the file first.\n", b"replace: calc.py\n", b"Fix\n", b"ed.\n"]),
        ("opencode", [b"edit: calc.py\n", b"Fixed.\n"]),
        ("goose", [b"shell: sed -i 's/a - b/a + b/' calc.py\n", b"Fix\n", b"ed.\n"]),
        ("copilot", [b"Fixed.\n"]),
        ("qwen", [b"edit: calc.py\n", b"Fixed.\n"]),
        ("aider", [b"Aider v0.86.2\n", b"Applied edit to calc.py\n"]),
    ],
)
def test_each_client_is_seen_at_work(name: str, lines: list[bytes]) -> None:
    assert seen((RECORDINGS / f"{name}.stdout").read_bytes()) == lines


def test_a_command_is_seen_when_it_begins() -> None:
    item = {"type": "command_execution", "command": "ls\n-l"}
    assert list(render_event({"type": "item.started", "item": item})) == ["$ ls -l"]
    assert list(render_event({"type": "item.completed", "item": item})) == []


def test_lines_are_whole_however_they_come() -> None:
    assert seen(b'plain\n{"type": "text", "pa', b'rt": {"text": "Gr\xc3', b'\xbc\xc3\x9fe"}}\nlast') == [
        b"plain\n",
        "Grüße\n".encode(),
        b"last\n",
    ]


def test_an_event_of_many_megabytes_is_left_out() -> None:
    assert seen(b'{"text": "', b"x" * MAX_LINE_BYTES, b"y" * MAX_LINE_BYTES, b'"}\nnext\n') == [b"next\n"]


@pytest.mark.parametrize(
    "event", [{}, {"type": 3, "message": 4}, {"part": [1]}, {"message": {"content": [None, {"name": "x"}]}}]
)
def test_events_that_say_nothing_are_left_out(event: dict[str, object]) -> None:
    assert list(render_event(event)) == []
