"""Schemas for clients that take only those in which nothing is open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
_KEPT = ("type", "enum", "const", "description", "$ref", "minItems", "maxItems")
_SAYS_WHAT = {"type", "enum", "const", "$ref", "anyOf"}


class _OpenError(Exception):
    """A part of a schema allows anything."""


def make_strict(schema: Schema) -> dict[str, Any] | None:
    """A schema in which every key is required and no other is allowed; None where some part of it is open."""
    try:
        return _closed(schema)
    except _OpenError:
        return None


def _closed(schema: Schema) -> dict[str, Any]:
    found = {name: schema[name] for name in _KEPT if name in schema}
    found |= _object(schema) if schema.get("type") == "object" else {}
    if "items" in schema:
        found["items"] = _closed(schema["items"])
    if "anyOf" in schema:
        found["anyOf"] = [_closed(one) for one in schema["anyOf"]]
    if "$defs" in schema:
        found["$defs"] = {name: _closed(one) for name, one in schema["$defs"].items()}
    if not found.keys() & _SAYS_WHAT or (found.get("type") == "array" and "items" not in found):
        raise _OpenError
    return found


def _object(schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties")
    if not properties or schema.get("additionalProperties"):
        raise _OpenError
    return {
        "properties": {name: _closed(one) for name, one in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
