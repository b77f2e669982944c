"""`run.json`: the state as text, with whatever other tools keep in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.workload.experiment_state import parse_state
from pytest_loop.errors import StateError
from pytest_loop.store import disk, foreign_runs

NEWEST_SCHEMA = 1
_FROZEN = ("task", "criteria")


@dataclass(frozen=True)
class Snapshot:
    """What was found in the file: a state, or what is wrong with it.

    `last` is the hash of the event that the state was made from; a file without a schema version is another tool's.
    """

    state: RunState | None = None
    problem: str = ""
    last_hash: str = ""
    is_foreign: bool = False
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def extra_fields(self) -> dict[str, Any]:
        """The keys that mean nothing here."""
        return (self.state.model_extra or {}) if self.state else {}


def read_snapshot(path: Path) -> Snapshot:
    """The state that the file holds; one of a newer version is refused, because we would damage it."""
    try:
        with disk.open_for_reading(path) as file:
            data = json.loads(file.read(), parse_constant=_refuse)
    except FileNotFoundError:
        return Snapshot(problem=f"{path} is missing")
    except OSError as error:
        return Snapshot(problem=f"cannot read {path}: {disk.describe_error(error)}")
    except (ValueError, RecursionError):
        return Snapshot(problem=f"{path} is damaged")
    if not isinstance(data, dict):
        return Snapshot(problem=f"{path} is damaged: expected a JSON object, found {type(data).__name__}")
    _refuse_newer(data.get("schema_version"), path)
    return _understood(data, path)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"expected a number, found {constant}")


def _refuse_newer(version: Any, path: Path) -> None:
    if isinstance(version, (int, float)) and version > NEWEST_SCHEMA:
        raise StateError(
            f"{path} was written by a newer version (schema {version}, known is {NEWEST_SCHEMA}): "
            "update pytest-agent-loop"
        )


def _understood(data: dict[str, Any], path: Path) -> Snapshot:
    is_foreign = "schema_version" not in data
    fields = {name: value for name, value in data.items() if name not in ("schema_version", "last_event")}
    try:
        state = parse_state(foreign_runs.normalize_fields(fields) if is_foreign else fields)
    except (ValidationError, RecursionError) as error:
        return Snapshot(problem=f"{path} is damaged{_first(error)}")
    return Snapshot(state, "", str(data.get("last_event") or ""), is_foreign, data)


def _first(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return ""
    first = error.errors(include_url=False)[0]
    return f" ({'.'.join(map(str, first['loc']))}: {first['msg']})"


class SnapshotEncoder:
    """Makes the file's text; task and criteria never change, and are made once."""

    def __init__(self, raw: dict[str, Any] | None = None) -> None:
        self.raw = raw or {}
        self._frozen: tuple[Any, Any, bytes] = (None, None, b"")

    def encode(self, state: RunState, last: str) -> bytes:
        if self._frozen[0] is not state.task or self._frozen[1] is not state.criteria:
            self._frozen = (state.task, state.criteria, self._frozen_text(state))
        head = f'{{"schema_version":{NEWEST_SCHEMA},"last_event":"{last}",'.encode()
        return head + self._frozen[2] + b"," + _json(state)[1:] + b"\n"

    def _frozen_text(self, state: RunState) -> bytes:
        own = state.model_dump(mode="json", include=set(_FROZEN))
        return _text({name: _laid_over(self.raw.get(name), own[name]) for name in _FROZEN})[1:-1]


def _json(state: RunState) -> bytes:
    try:
        return state.model_dump_json(exclude=set(_FROZEN)).encode()
    except PydanticSerializationError:  # half of a character pair somewhere in a text
        return _text(state.model_dump(mode="json", exclude=set(_FROZEN)))


def _text(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _laid_over(before: Any, own: Any) -> Any:
    """Our values over what was there, so that keys which mean nothing to us stay; lists are matched by id."""
    if isinstance(before, dict) and isinstance(own, dict):
        return before | {name: _laid_over(before.get(name), value) for name, value in own.items()}
    if isinstance(before, list) and isinstance(own, list):
        named = {one["id"]: one for one in before if isinstance(one, dict) and isinstance(one.get("id"), str)}
        return [_laid_over(named.get(one["id"]), one) if isinstance(one, dict) and "id" in one else one for one in own]
    return own
