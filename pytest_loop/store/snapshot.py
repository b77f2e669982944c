"""`run.json`: the state of a run, with the keys that other tools keep in it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.workload.experiment_state import parse_state
from pytest_loop.errors import StateError
from pytest_loop.store import disk, foreign_runs
from pytest_loop.store.history import refuse_constant
from pytest_loop.store.signature import Signer

NEWEST_SCHEMA = 1
_FROZEN = ("task", "criteria")
_OWN_FIELDS = ("schema_version", "last_event", "mac")


@dataclass(frozen=True)
class Snapshot:
    """The content of the file: a state, or the problem with it.

    `last_hash` is the hash of the event that led to the state. A file without a schema version is foreign:
    another tool wrote it.
    """

    state: RunState | None = None
    problem: str = ""
    last_hash: str = ""
    is_foreign: bool = False
    is_signed: bool = False
    raw: dict[str, Any] = field(default_factory=dict)

    @property
    def extra_fields(self) -> dict[str, Any]:
        """The keys of other tools."""
        return (self.state.model_extra or {}) if self.state else {}


def read_snapshot(path: Path, signer: Signer) -> Snapshot:
    """Read the state of a file; raise `StateError` for a newer version, which must not be overwritten."""
    try:
        with disk.open_for_reading(path) as file:
            content = file.read()
            data = json.loads(content, parse_constant=refuse_constant)
    except FileNotFoundError:
        return Snapshot(problem=f"{path} is missing")
    except OSError as error:
        return Snapshot(problem=f"cannot read {path}: {disk.describe_error(error)}")
    except (ValueError, RecursionError):
        return Snapshot(problem=f"{path} is damaged")
    if not isinstance(data, dict):
        return Snapshot(problem=f"{path} is damaged: expected a JSON object, found {type(data).__name__}")
    _refuse_newer_version(data.get("schema_version"), path)
    return replace(_parse_snapshot(data, path), is_signed=signer.is_signed(content))


def _refuse_newer_version(version: Any, path: Path) -> None:
    if isinstance(version, (int, float)) and version > NEWEST_SCHEMA:
        raise StateError(
            f"{path} was written by a newer version (schema {version}, known is {NEWEST_SCHEMA}): "
            "update pytest-agent-loop"
        )


def _parse_snapshot(data: dict[str, Any], path: Path) -> Snapshot:
    is_foreign = "schema_version" not in data
    fields = {name: value for name, value in data.items() if name not in _OWN_FIELDS}
    try:
        state = parse_state(foreign_runs.normalize_fields(fields) if is_foreign else fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        return Snapshot(problem=f"{path} is damaged ({'.'.join(map(str, first['loc']))}: {first['msg']})")
    return Snapshot(state, "", str(data.get("last_event") or ""), is_foreign, raw=data)


class SnapshotEncoder:
    """Encode states; task and criteria never change and are encoded once.

    `raw` is the content that was read; its keys of other tools are kept.
    """

    def __init__(self, signer: Signer, raw: dict[str, Any] | None = None) -> None:
        self._signer = signer
        self._raw = raw or {}
        self._frozen: tuple[Any, Any, bytes] = (None, None, b"")

    def encode(self, state: RunState, last_hash: str) -> bytes:
        if self._frozen[0] is not state.task or self._frozen[1] is not state.criteria:
            self._frozen = (state.task, state.criteria, self._encode_frozen(state))
        head = f'{{"schema_version":{NEWEST_SCHEMA},"last_event":"{last_hash}",'.encode()
        return self._signer.sign(head + self._frozen[2] + b"," + _encode_rest(state)[1:]) + b"\n"

    def _encode_frozen(self, state: RunState) -> bytes:
        fields = state.model_dump(mode="json", include=set(_FROZEN))
        return _encode_json({name: _merge(self._raw.get(name), fields[name]) for name in _FROZEN})[1:-1]


def _encode_rest(state: RunState) -> bytes:
    try:
        return state.model_dump_json(exclude=set(_FROZEN)).encode()
    except PydanticSerializationError:  # an unpaired surrogate in a text
        return _encode_json(state.model_dump(mode="json", exclude=set(_FROZEN)))


def _encode_json(data: Any) -> bytes:
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _merge(before: Any, after: Any) -> Any:
    """Merge new values into old ones, so that keys of other tools stay; items of lists are matched by id."""
    if isinstance(before, dict) and isinstance(after, dict):
        return before | {name: _merge(before.get(name), value) for name, value in after.items()}
    if isinstance(before, list) and isinstance(after, list):
        by_id = {item["id"]: item for item in before if isinstance(item, dict) and isinstance(item.get("id"), str)}
        return [
            _merge(by_id.get(item["id"]), item) if isinstance(item, dict) and "id" in item else item for item in after
        ]
    return after
