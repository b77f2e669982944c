"""The visible output of a client at work."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.output_filter import MAX_LINE_BYTES, OutputFilter, render_event

RECORDINGS = Path(__file__).parent / "recordings"


def filter_output(*pieces: bytes) -> list[bytes]:
    lines: list[bytes] = []
    output_filter = OutputFilter(lines.append)
    for piece in pieces:
        output_filter(piece)
    output_filter.end()
    return lines


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
def test_text_and_tools_of_each_client_are_shown(name: str, lines: list[bytes]) -> None:
    assert filter_output((RECORDINGS / f"{name}.stdout").read_bytes()) == lines


def test_a_command_is_shown_when_it_starts() -> None:
    item = {"type": "command_execution", "command": "ls\n-l"}
    assert list(render_event({"type": "item.started", "item": item})) == ["$ ls -l"]
    assert list(render_event({"type": "item.completed", "item": item})) == []


def test_a_failed_request_to_the_model_is_shown() -> None:
    event = {"type": "system", "subtype": "api_retry", "attempt": 3, "retry_delay_ms": 2058.4, "error_status": 529}
    assert list(render_event({**event, "error": "overloaded"})) == [
        "status 529 (overloaded), attempt 3; trying again in 2 s"
    ]


def test_lines_are_joined_from_pieces() -> None:
    assert filter_output(b'plain\n{"type": "text", "pa', b'rt": {"text": "Gr\xc3', b'\xbc\xc3\x9fe"}}\nlast') == [
        b"plain\n",
        "Grüße\n".encode(),
        b"last\n",
    ]


def test_a_line_of_many_megabytes_is_dropped() -> None:
    assert filter_output(b'{"text": "', b"x" * MAX_LINE_BYTES, b"y" * MAX_LINE_BYTES, b'"}\nnext\n') == [b"next\n"]


@pytest.mark.parametrize(
    "event", [{}, {"type": 3, "message": 4}, {"part": [1]}, {"message": {"content": [None, {"name": "x"}]}}]
)
def test_events_without_text_or_tools_are_dropped(event: dict[str, object]) -> None:
    assert list(render_event(event)) == []
