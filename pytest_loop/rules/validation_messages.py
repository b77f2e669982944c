"""Describe pydantic's validation errors to the author of a file: expected this, found that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from pytest_loop.rules.checks.check import format_value
from pytest_loop.rules.syntax import ValuePath

_EXPECTED = {
    "string_type": "text",
    "string_too_short": "a text that is not empty",
    "string_too_long": "a shorter text",
    "string_pattern_mismatch": "an id such as a.correctness.totals",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "too_short": "at least one entry",
    "none_required": "nothing",
}
_BOUNDS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
}


class FieldProblem(NamedTuple):
    """One problem inside a value, at the path that leads to it."""

    path: ValuePath
    text: str


def describe_errors(error: ValidationError, model: type[BaseModel], value: Any) -> Iterator[FieldProblem]:
    """Yield one problem per error, but a single one for all failed alternatives of a union."""
    paths = set()
    for details in error.errors(include_url=False, include_context=True):
        path = _strip_alternatives(details["loc"], value)
        is_alternative = len(path) < len(details["loc"])
        if not is_alternative or path not in paths:
            paths.add(path)
            yield FieldProblem(path, _describe(details, path, model, is_alternative))


def _strip_alternatives(location: ValuePath, value: Any) -> ValuePath:
    """Return the path in the data of a location, without the names of union members that pydantic appends."""
    for depth, step in enumerate(location):
        if isinstance(value, dict):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return location[:depth]
    return location


def _describe(details: Any, path: ValuePath, model: type[BaseModel], is_alternative: bool) -> str:
    error_type, context = details["type"], details.get("ctx", {})
    if error_type == "missing":
        return f"expected the key `{path[-1]}`, found none"
    if error_type == "extra_forbidden":
        return _describe_unknown_key(str(path[-1]), _list_keys(model, path[:-1]))
    if error_type == "value_error":
        return str(context["error"])
    if error_type == "literal_error":
        expected = context["expected"]
    elif error_type in _BOUNDS:
        key, sign = _BOUNDS[error_type]
        expected = f"a number {sign} {context[key]:g}"
    elif error_type == "int_type" and is_alternative:
        expected = "a number"
    else:
        expected = _EXPECTED.get(error_type, details["msg"])
    name = f" for `{path[-1]}`" if path and isinstance(path[-1], str) else ""
    return f"expected {expected}{name}, found {format_value(details['input'])}"


def _describe_unknown_key(key: str, keys: Iterable[str]) -> str:
    names = sorted(keys)
    close = get_close_matches(key, names, 1)
    expected = f"`{close[0]}`" if close else f"one of {', '.join(names)}"
    return f"expected {expected}, found the unknown key `{key}`"


def _list_keys(model: Any, path: ValuePath) -> list[str]:
    """Return the keys that the model nested at `path` in `model` allows."""
    for step in path:
        if isinstance(step, str):
            fields = model.model_fields.items()
            model = next(_find_model(field.annotation) for name, field in fields if step in (name, field.alias))
    return [field.alias or name for name, field in model.model_fields.items()]


def _find_model(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in getattr(annotation, "__args__", ()) if (model := _find_model(part))), None)
