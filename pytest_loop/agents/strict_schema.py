"""Make JSON schemas strict, for clients that reject schemas with open parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]
_SUPPORTED = ("type", "enum", "const", "description", "$ref", "minItems", "maxItems")
_DETERMINING = {"type", "enum", "const", "$ref", "anyOf"}


class _OpenError(Exception):
    """A part of a schema allows anything."""


def make_strict(schema: Schema) -> dict[str, Any] | None:
    """Return a schema with every key required and no other allowed, or None if a part of it allows anything."""
    try:
        return _close(schema)
    except _OpenError:
        return None


def _close(schema: Schema) -> dict[str, Any]:
    closed = {name: schema[name] for name in _SUPPORTED if name in schema}
    closed |= _close_object(schema) if schema.get("type") == "object" else {}
    if "items" in schema:
        closed["items"] = _close(schema["items"])
    if "anyOf" in schema:
        closed["anyOf"] = [_close(option) for option in schema["anyOf"]]
    if "$defs" in schema:
        closed["$defs"] = {name: _close(part) for name, part in schema["$defs"].items()}
    if not closed.keys() & _DETERMINING or (closed.get("type") == "array" and "items" not in closed):
        raise _OpenError
    return closed


def _close_object(schema: Schema) -> dict[str, Any]:
    properties = schema.get("properties")
    if not properties or schema.get("additionalProperties"):
        raise _OpenError
    return {
        "properties": {name: _close(part) for name, part in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
