"""What a person sees of a client at work: its words and the tools that it uses, not the JSON that they come in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_loop.agents.json_values import Event, an_object, at, members, prose, word
from pytest_loop.core.text.lengths import shorten

MAX_LINE_BYTES = 1024 * 1024


class OutputFilter:
    """Takes pieces of output and gives lines: plain ones as they are, events in a few words, others not at all."""

    def __init__(self, heard: Callable[[bytes], None]) -> None:
        self._heard = heard
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        self._rest = rest if len(rest) <= MAX_LINE_BYTES else b"{"  # no line for a person
        for line in lines:
            self._say(line)

    def end(self) -> None:
        """What had no end of line is said too."""
        rest, self._rest = self._rest, b""
        if rest:
            self._say(rest)

    def _say(self, line: bytes) -> None:
        if not line.lstrip().startswith(b"{"):
            self._heard(line + b"\n")
            return
        for said in render_event(an_object(line.decode("utf-8", "replace")) or {}):
            self._heard(said.encode("utf-8", "replace") + b"\n")


def render_event(event: Event) -> Iterator[str]:
    """The words in an event, and the tools; what a client was told or what a tool gave back is left out."""
    kind = word(event.get("type"))
    if "user" in (kind.partition(".")[0], event.get("role"), at(event, "message", "role")):
        return
    if kind in ("message", "assistant.message"):
        yield from filter(None, (prose(at(one, "content")) for one in (event, event.get("data"))))
    for part in _parts(event):
        if text := prose(at(part, "text")):
            yield text
        elif tool := _tool(part):
            yield tool
    if kind == "item.started" and (command := word(at(event, "item", "command"))):
        yield f"$ {shorten(command, 200)}"


def _parts(event: Event) -> list[Any]:
    inner = members(at(event, "message", "content"))
    calls = [at(one, "toolCall", "value") for one in inner]
    return [event, event.get("item"), event.get("part"), *inner, *calls, *members(at(event, "data", "toolRequests"))]


def _tool(part: Any) -> str:
    """A tool and the first of its arguments that is a text; nothing without arguments."""
    name = next(filter(None, (word(at(part, key)) for key in ("name", "tool", "tool_name"))), "")
    given = [at(part, key) for key in ("input", "arguments", "parameters")] + [at(part, "state", "input")]
    first = next((one for some in given for one in members(some) if isinstance(one, str)), "")
    return f"{name}: {shorten(first, 200)}" if name and first else ""
