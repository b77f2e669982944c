"""`history.jsonl`: events chained by their hashes, read whatever became of the file, and folded into a state."""

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

LONGEST_LINE = 64 * 1024 * 1024
_PADDING = b"\r\0\t "
_MARK = b"\xef\xbb\xbf"
_SPACE = re.compile(r"\s*")


@dataclass
class History:
    """The events that could be read, the hash of each, and what is wrong with the file.

    Bytes after `length` are the rest of a line that a crash has torn; events before `sound_from` stand before damage.
    """

    events: list[Event] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)
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

    def add_damage(self, problem: str, *, of_next: bool = False) -> None:
        """Note damage between what was read and what comes, or of the event that comes."""
        self.damage.append(problem)
        self.undamaged_from = len(self.events) + int(of_next)


def encode_events(events: Iterable[Event], last: str) -> tuple[bytes, str]:
    """Events as the file has them, each with the hash of the one before; and the hash of the last."""
    made = []
    for event in events:
        line = _text({**event.model_dump(mode="json"), "prev": last})
        last = _hash(line)
        made.append(line + b"\n")
    return b"".join(made), last


def _text(data: dict[str, Any]) -> bytes:
    """One line of JSON; what no file can hold is replaced: half of a character pair, a number that is none."""
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(json.loads(json.dumps(data), parse_constant=lambda _constant: None), ensure_ascii=False)
    return text.encode("utf-8", "replace")


def _hash(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()[:16]


def read_history(path: Path) -> History:
    """Whatever can be read of a history; a missing one is empty."""
    found = History()
    try:
        with disk.open_for_reading(path) as file:
            _read_lines(file, found)
    except FileNotFoundError:
        pass
    except OSError as error:
        found.add_damage(f"cannot read {path}: {disk.describe_error(error)}")
    return found


def _read_lines(file: BinaryIO, found: History) -> None:
    """A single unreadable line at the end was torn by a crash, and so was padding; any other is damage."""
    bad: list[int] = []
    at = 0
    for number, raw in _raw_lines(file):
        at += len(raw)
        line = (raw.removeprefix(_MARK) if number == 1 else raw).rstrip(b"\n").strip(_PADDING)
        events = _events(line)
        if events is None:
            bad = [one for one in bad if one != number] + [number]
        elif events:
            _complain_of_lines(bad, found)
            _take(events, number, found)
            bad = []
            found.length, found.lacks_newline = at, not raw.endswith(b"\n")
        elif not bad and raw.endswith(b"\n"):
            found.length = at
    if len(bad) > 1:
        _complain_of_lines(bad, found)
        found.length, found.lacks_newline = at, True
    found.is_torn = at > found.length


def _raw_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers; one that is longer than any of ours comes in pieces that cannot be read."""
    number = 1
    while line := file.readline(LONGEST_LINE):
        yield number, line
        number += line.endswith(b"\n")


def _complain_of_lines(numbers: list[int], found: History) -> None:
    for number in numbers:
        found.add_damage(f"line {number} of the history cannot be read")


def _take(events: list[tuple[Event, str]], number: int, found: History) -> None:
    """Add events; each names the hash of the one before it, from the first one on that was written here."""
    for event, digest in events:
        previous = (event.model_extra or {}).get("prev")
        if previous is None and found.is_chained:
            found.add_damage(f"line {number} of the history was not written by this run", of_next=True)
        elif previous is not None and previous != found.last_hash:
            found.add_damage(f"line {number} of the history does not follow the line before it", of_next=True)
        found.is_chained = found.is_chained or previous is not None
        found.events.append(event)
        found.hashes.append(digest)


def _events(line: bytes) -> list[tuple[Event, str]] | None:
    """The events on a line, where another tool may have put two; None where it cannot be read."""
    if len(line) >= LONGEST_LINE:
        return None
    made: list[tuple[Event, str]] = []
    try:
        text = line.decode("utf-8")
        at = 0
        while at < len(text):
            value, end = _DECODER.raw_decode(text, at)
            made.append((Event.model_validate(value), _hash(text[at:end].encode())))
            at = _after_space(text, end)
    except (ValueError, ValidationError, RecursionError):
        return None
    return made


def _after_space(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"expected a number, found {constant}")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def fold_events(history: History) -> RunState | None:
    """The state that the events lead to, from the last whole state among them; None where that is not sure."""
    for index in reversed(range(history.undamaged_from, len(history.events))):
        payload = history.events[index].payload
        if isinstance(payload, RunStarted):
            try:
                return reduce(select_machine(payload.state).apply, history.events[index + 1 :], payload.state)
            except (IllegalTransition, ValueError, LookupError):
                history.add_damage("the events of the history do not follow from each other")
                return None
    return None
