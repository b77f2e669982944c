"""Turn the JSON events that a client prints while it works into lines for people: its texts and tool calls."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_loop.agents.client_errors import REFUSED_STATUSES
from pytest_loop.agents.json_values import (
    ClientEvent,
    get_at,
    get_nonblank_text,
    get_number,
    get_text,
    list_members,
    parse_object,
)
from pytest_loop.core.text.lengths import shorten

MAX_LINE_BYTES = 1024 * 1024
# The event with which Claude Code says that a request to its model failed.
_RETRY = "api_retry"


class OutputFilter:
    """Forward plain lines unchanged, known JSON events as short texts, and no other JSON.

    `refusal` is the last sign that further requests are useless: a plain line that matches `refusals`, or a second
    attempt after a refused login (the first attempt may renew the login). Without such a sign, `refusal` is empty.
    """

    def __init__(self, on_output: Callable[[bytes], None], refusals: Sequence[str] = ()) -> None:
        self.refusal = ""
        self._refusals = [re.compile(pattern) for pattern in refusals]
        self._on_output = on_output
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        # A line that is too long is replaced by a brace: this is JSON that cannot be parsed, so nothing of it is shown.
        self._rest = rest if len(rest) <= MAX_LINE_BYTES else b"{"
        for line in lines:
            self._show_line(line)

    def end(self) -> None:
        """Show a last line without a line break."""
        rest, self._rest = self._rest, b""
        if rest:
            self._show_line(rest)

    def _show_line(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if not line.lstrip().startswith(b"{"):
            self.refusal = text.strip() if any(pattern.search(text) for pattern in self._refusals) else self.refusal
            self._on_output(line + b"\n")
            return
        event = parse_object(text) or {}
        self.refusal = _find_refusal(event) or self.refusal
        for shown in render_event(event):
            self._on_output(shown.encode("utf-8", "replace") + b"\n")


def render_event(event: ClientEvent) -> Iterator[str]:
    """Yield the texts and tool calls of an event; prompts and results of tools are left out."""
    kind = get_text(event, "type")
    if event.get("subtype") == _RETRY:
        yield f"{_describe_retry(event)}; trying again in {(get_number(event, 'retry_delay_ms') or 0) / 1000:.0f} s"
    if "user" in (kind.partition(".")[0], event.get("role"), get_at(event, "message", "role")):
        return
    if kind in ("message", "assistant.message"):
        yield from filter(None, (get_nonblank_text(event, "content"), get_nonblank_text(event, "data", "content")))
    for part in _list_parts(event):
        if text := get_nonblank_text(part, "text"):
            yield text
        elif tool := _render_tool(part):
            yield tool
    if kind == "item.started" and (command := get_text(event, "item", "command")):
        yield f"$ {shorten(command, 200)}"


def _find_refusal(event: ClientEvent) -> str:
    is_refused = event.get("subtype") == _RETRY and event.get("error_status") in REFUSED_STATUSES
    return _describe_retry(event) if is_refused and (get_number(event, "attempt") or 0) > 1 else ""


def _describe_retry(event: ClientEvent) -> str:
    return f"status {event.get('error_status')} ({get_text(event, 'error')}), attempt {event.get('attempt')}"


def _list_parts(event: ClientEvent) -> list[Any]:
    """Return the values in an event that may hold a text or a tool call; absent ones are None."""
    contents = list_members(get_at(event, "message", "content"))
    calls = [get_at(content, "toolCall", "value") for content in contents]
    requests = list_members(get_at(event, "data", "toolRequests"))
    return [event, event.get("item"), event.get("part"), *contents, *calls, *requests]


def _render_tool(part: Any) -> str:
    """Return the name of a tool and its first text argument; empty if `part` is no tool call."""
    name = next(filter(None, (get_text(part, key) for key in ("name", "tool", "tool_name"))), "")
    inputs = [get_at(part, *path) for path in (("input",), ("arguments",), ("parameters",), ("state", "input"))]
    first = next((value for values in inputs for value in list_members(values) if isinstance(value, str)), "")
    return f"{name}: {shorten(first, 200)}" if name and first else ""
