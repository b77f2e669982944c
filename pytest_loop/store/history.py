"""`history.jsonl`: events chained by their hashes, read as far as possible and folded into a state."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from pydantic import ValidationError

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.run_machine import IllegalTransition
from pytest_loop.core.model.run_state import RunState
from pytest_loop.store import disk
from pytest_loop.store.signature import Signer

MAX_LINE_LENGTH = 64 * 1024 * 1024
_PADDING = b"\r\0\t "
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EVENT_GAP = re.compile(rb'(?<="\})\s*(?=\{)')
_SPACE = re.compile(r"\s*")


@dataclass
class History:
    """The events that could be read, the hash of each and whether it is signed here, and the damage of the file.

    Bytes after `length` are the rest of a torn line, if the history `is_torn`. Damage affects only events before
    `undamaged_from`. Once an event names the hash before it, the history `is_chained`, and all later ones must do so.
    """

    events: list[Event] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
    signed: list[bool] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    undamaged_from: int = 0
    length: int = 0
    is_torn: bool = False
    lacks_newline: bool = False
    is_chained: bool = False

    @property
    def last_hash(self) -> str:
        """The hash that the next event refers to."""
        return self.hashes[-1] if self.hashes else ""

    def add_damage(self, problem: str, *, of_next_event: bool = False) -> None:
        """Record damage after the last event, or in the next one."""
        self.damage.append(problem)
        self.undamaged_from = len(self.events) + int(of_next_event)


# -- writing


def encode_events(events: Iterable[Event], last_hash: str, signer: Signer) -> tuple[bytes, str]:
    """Return the signed lines of events, each with the hash of the event before, and the hash of the last one."""
    lines = []
    for event in events:
        line = signer.sign(_encode({**event.model_dump(mode="json"), "prev": last_hash}))
        last_hash = _hash(line)
        lines.append(line + b"\n")
    return b"".join(lines), last_hash


def _encode(data: dict[str, Any]) -> bytes:
    """Return one line of JSON; unpaired surrogates are replaced, and NaN and infinities become null."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(data), parse_constant=lambda _constant: None), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]


# -- reading


def read_history(path: Path, signer: Signer) -> History:
    """Read whatever can be read of a history; a missing one is empty."""
    history = History()
    try:
        with disk.open_for_reading(path) as file:
            _read_lines(file, history, signer)
    except FileNotFoundError:
        pass
    except OSError as error:
        history.add_damage(f"cannot read {path}: {disk.describe_error(error)}")
    return history


def _read_lines(file: BinaryIO, history: History, signer: Signer) -> None:
    """Read all lines: a single unreadable line at the end, or padding, was left by a crash; any other is damage."""
    unreadable: list[int] = []
    position = 0
    for number, raw in _split_lines(file):
        position += len(raw)
        line = (raw.removeprefix(_BYTE_ORDER_MARK) if number == 1 else raw).rstrip(b"\n").strip(_PADDING)
        events = _parse_events(line)
        history.signed += _check_signatures(line, len(events or ()), signer)
        if events is None:
            unreadable = [other for other in unreadable if other != number] + [number]
        elif events:
            _add_unreadable_lines(unreadable, history)
            _add_events(events, number, history)
            unreadable = []
            history.length, history.lacks_newline = position, not raw.endswith(b"\n")
        elif not unreadable and raw.endswith(b"\n"):
            history.length = position
    if len(unreadable) > 1:
        _add_unreadable_lines(unreadable, history)
        history.length, history.lacks_newline = position, True
    history.is_torn = position > history.length


def _check_signatures(line: bytes, count: int, signer: Signer) -> list[bool]:
    """Return for each event of a line whether it is signed; damage may have joined the lines of several events."""
    pieces = [line] if count == 1 else _EVENT_GAP.split(line)
    return [signer.is_signed(piece) for piece in pieces] if len(pieces) == count else [False] * count


def _split_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with their numbers; a line that is too long comes in pieces, which cannot be parsed."""
    number = 1
    while line := file.readline(MAX_LINE_LENGTH):
        yield number, line
        number += line.endswith(b"\n")


def _add_unreadable_lines(numbers: list[int], history: History) -> None:
    for number in numbers:
        history.add_damage(f"line {number} of the history cannot be read")


def _add_events(events: list[tuple[Event, str]], number: int, history: History) -> None:
    """Add events; record damage if one, from the first with a `prev` hash on, does not name the hash before it."""
    for event, event_hash in events:
        previous = (event.model_extra or {}).get("prev")
        if previous is None and history.is_chained:
            history.add_damage(f"line {number} of the history was not written by this run", of_next_event=True)
        elif previous is not None and previous != history.last_hash:
            history.add_damage(f"line {number} of the history does not follow the line before it", of_next_event=True)
        history.is_chained = history.is_chained or previous is not None
        history.events.append(event)
        history.hashes.append(event_hash)


def _parse_events(line: bytes) -> list[tuple[Event, str]] | None:
    """Return the events of a line and their hashes, or None if it cannot be read; other tools may write several."""
    if len(line) >= MAX_LINE_LENGTH:
        return None
    events: list[tuple[Event, str]] = []
    try:
        text = line.decode("utf-8")
        position = 0
        while position < len(text):
            value, end = _DECODER.raw_decode(text, position)
            events.append((Event.model_validate(value), _hash(text[position:end].encode())))
            space = _SPACE.match(text, end)
            position = space.end() if space else end
    except (ValueError, ValidationError, RecursionError):
        return None
    return events


def refuse_constant(constant: str) -> NoReturn:
    """Reject NaN and infinities in JSON."""
    raise ValueError(f"expected a number, found {constant}")


_DECODER = json.JSONDecoder(parse_constant=refuse_constant)


# -- folding


def is_signed(history: History) -> bool:
    """Return whether this machine signed the last complete state and all events after it."""
    states = [index for index, event in enumerate(history.events) if isinstance(event.payload, RunStarted)]
    return bool(states) and all(history.signed[states[-1] :])


def fold_events(history: History) -> RunState | None:
    """Return the state after all events since the last undamaged complete state; None without one, or on a conflict."""
    for index in reversed(range(history.undamaged_from, len(history.events))):
        payload = history.events[index].payload
        if isinstance(payload, RunStarted):
            try:
                return reduce(select_machine(payload.state).apply, history.events[index + 1 :], payload.state)
            except (IllegalTransition, ValueError, LookupError):
                history.add_damage("the events of the history do not follow from each other")
                return None
    return None
