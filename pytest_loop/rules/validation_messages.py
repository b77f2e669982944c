"""What a validation error means for the person who wrote the file: expected this, found that."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError

from pytest_loop.rules.checks.check import format_value

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

    path: tuple[str | int, ...]
    text: str


def describe_errors(error: ValidationError, model: type[BaseModel], value: Any) -> Iterator[FieldProblem]:
    """One line for every problem; alternatives that all failed are one problem."""
    seen = set()
    for one in error.errors(include_url=False, include_context=True):
        path, alternative = _real(one["loc"], value)
        if path in seen and alternative:
            continue
        seen.add(path)
        yield FieldProblem(path, _text(one, path, model, alternative))


def _real(loc: tuple[str | int, ...], value: Any) -> tuple[tuple[str | int, ...], bool]:
    """The part of a location that exists in the data: pydantic adds the names of alternatives to it."""
    path: list[str | int] = []
    for at, step in enumerate(loc):
        if isinstance(value, dict):
            path.append(step)
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            path.append(step)
            value = value[step]
        else:
            return tuple(path), at < len(loc)
    return tuple(path), False


def _text(one: Any, path: tuple[str | int, ...], model: type[BaseModel], alternative: bool) -> str:
    kind, found = one["type"], one["input"]
    name = f" for `{path[-1]}`" if path and isinstance(path[-1], str) else ""
    if kind == "missing":
        return f"expected the key `{path[-1]}`, found none"
    if kind == "extra_forbidden":
        return describe_unknown_key(str(path[-1]), list_keys(model, path[:-1]))
    if kind == "value_error":
        return str(one["ctx"]["error"])
    if kind == "literal_error":
        return f"expected {one['ctx']['expected']}{name}, found {format_value(found)}"
    if kind in _BOUNDS:
        key, sign = _BOUNDS[kind]
        return f"expected a number {sign} {one['ctx'][key]:g}{name}, found {format_value(found)}"
    expected = "a number" if alternative and kind == "int_type" else _EXPECTED.get(kind, one["msg"])
    return f"expected {expected}{name}, found {format_value(found)}"


def describe_unknown_key(key: str, known: Iterable[str]) -> str:
    """What to say about a key that nobody knows."""
    names = list(known)
    close = get_close_matches(key, names, 1)
    hint = f"`{close[0]}`" if close else f"one of {', '.join(sorted(names))}"
    return f"expected {hint}, found the unknown key `{key}`"


def list_keys(model: Any, path: tuple[str | int, ...]) -> list[str]:
    """The keys of the model that stands at `path` below `model`."""
    for step in path:
        if isinstance(step, str):
            fields = model.model_fields.items()
            model = next(_model_in(field.annotation) for name, field in fields if step in (name, field.alias))
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in getattr(annotation, "__args__", ()) if (found := _model_in(part))), None)
