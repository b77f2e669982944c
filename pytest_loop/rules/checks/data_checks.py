"""Checks of the artifact as data: JSON Schema and JMESPath."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field

from pytest_loop.core.model.rules import Finding
from pytest_loop.errors import CheckError
from pytest_loop.rules import patterns
from pytest_loop.rules.checks.check import ContentCheck, Context, Inputs, StrictModel, format_value
from pytest_loop.rules.deadline import DEADLINE_SECONDS, enforce_deadline
from pytest_loop.rules.syntax import DATA_FORMATS_BY_SUFFIX, ContentError, parse, read_text

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MAX_VIOLATIONS = 20


class _DataCheck(ContentCheck):
    format: Literal["json", "yaml", "toml"] | None = Field(
        default=None, description="where the file's name does not say it"
    )
    block: str | Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="a fenced block instead of the whole file"
    )


class JsonSchema(_DataCheck):
    """The parsed artifact is valid for a JSON Schema: a path, or the schema itself."""

    json_schema: str | dict[str, Any]

    def find_file(self, folder: Path, _root: Path) -> Path | None:
        """Return the file of the schema, if there is one."""
        path = folder / self.json_schema if isinstance(self.json_schema, str) else None
        return path if path and path.is_file() else None

    def depends_on(self, context: Context) -> Inputs | None:
        """Return the artifact alone if the schema is inline and refers to nothing else."""
        is_inline = isinstance(self.json_schema, dict) and "$ref" not in str(self.json_schema)
        return super().depends_on(context) if is_inline else None

    def find_obstacle(self, context: Context) -> str:
        is_missing = isinstance(self.json_schema, str) and not (context.folder / self.json_schema).is_file()
        return f"there is no schema {self.json_schema}" if is_missing else ""

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        data = document.load_data(self.format, self.block)
        schema: Any = self.json_schema
        base = context.folder
        if isinstance(schema, str):
            path = context.resolve_inside(Path(schema))
            schema, base = _load_schema(path, schema), path.parent
        with enforce_deadline(DEADLINE_SECONDS, "the validation"):
            violations = _find_violations(data, schema, base, context)
        violations.sort(key=lambda violation: list(map(str, violation.absolute_path)))
        for violation in violations[:MAX_VIOLATIONS]:
            pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in violation.absolute_path)
            yield Finding(
                expected=f"{pointer or '/'} to be valid", found=summarize_violation(violation), where=document.shown
            )
        if len(violations) > MAX_VIOLATIONS:
            found = f"{len(violations) - MAX_VIOLATIONS} more violations"
            yield Finding(expected="the whole to be valid", found=found, where=document.shown)


def summarize_violation(violation: ValidationError) -> str:
    """Return jsonschema's message with a long instance shortened: it may be the whole document."""
    instance = repr(violation.instance)
    return violation.message.replace(instance, instance[:77] + "...", 1) if len(instance) > 80 else violation.message


def _load_schema(path: Path, name: str) -> Any:
    try:
        return parse(read_text(path), DATA_FORMATS_BY_SUFFIX.get(path.suffix.lower(), "json"))
    except ContentError as error:
        raise CheckError(f"cannot read the schema {name}:{error.line}: {error}") from None


def _find_violations(data: Any, schema: Any, base: Path, context: Context) -> list[ValidationError]:
    """Return violations of a schema; resolve references only in the schema and project files, never by network."""
    import jsonschema  # slow import (0.2 s), not needed by most rule files
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    def retrieve(uri: str) -> Resource[Any]:
        contents = _load_schema(context.resolve_inside(base / uri), uri)
        return Resource.from_contents(contents, default_specification=DRAFT202012)

    validator: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator.check_schema(schema)
        extend: Any = jsonschema.validators.extend
        bounded = extend(validator, {"pattern": _validate_pattern})
        registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]  # attrs hides the name
        return list(bounded(schema, registry=registry).iter_errors(data))
    except jsonschema.SchemaError as error:
        raise CheckError(f"expected a JSON Schema, found one that is not: {error.message}") from None
    except Unresolvable as error:
        raise CheckError(f"the schema refers to {error.ref!r}, which is not in the project") from None


def _validate_pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not patterns.find_matches(pattern, instance):
        yield ValidationError(f"{format_value(instance)} does not match {format_value(pattern)}")


Number = int | float
Comparator = Callable[[Any, Any], bool]


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _compare_numbers(compare: Comparator) -> Comparator:
    return lambda actual, value: _is_number(actual) and _is_number(value) and compare(actual, value)


def _is_equal(actual: Any, value: Any) -> bool:
    return bool(actual == value) and isinstance(actual, bool) == isinstance(value, bool)


def _is_in(actual: Any, values: Any) -> bool:
    return any(_is_equal(actual, value) for value in values)


def _contains(actual: Any, value: Any) -> bool:
    if isinstance(actual, str):
        return isinstance(value, str) and value in actual
    return isinstance(actual, (list, dict)) and _is_in(value, actual)


OPERATORS: dict[str, Comparator] = {
    "==": _is_equal,
    "!=": lambda actual, value: not _is_equal(actual, value),
    ">=": _compare_numbers(operator.ge),
    ">": _compare_numbers(operator.gt),
    "<=": _compare_numbers(operator.le),
    "<": _compare_numbers(operator.lt),
    "in": lambda actual, value: isinstance(value, list) and _is_in(actual, value),
    "not in": lambda actual, value: isinstance(value, list) and not _is_in(actual, value),
    "contains": _contains,
    "matches": lambda actual, value: isinstance(actual, str) and bool(patterns.find_matches(str(value), actual)),
}
Comparison = Literal["==", "!=", ">=", ">", "<=", "<"]
Operator = Literal["==", "!=", ">=", ">", "<=", "<", "in", "not in", "contains", "matches"]


def _validate_jmespath(expression: str) -> str:
    import jmespath.exceptions

    try:
        jmespath.compile(expression)
    except (jmespath.exceptions.JMESPathError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(":")
        raise ValueError(f"expected a JMESPath expression, found {format_value(expression)} ({reason})") from None
    return expression


JmesPath = Annotated[str, AfterValidator(_validate_jmespath)]


def run_query(expression: str, data: Any) -> Any:
    """Return the result of a JMESPath expression, within a deadline; raise `ValueError` if the data does not fit it."""
    import jmespath.exceptions

    try:
        with enforce_deadline(DEADLINE_SECONDS, f"the query {format_value(expression)}"):
            return jmespath.search(expression, data)
    except jmespath.exceptions.JMESPathTypeError as error:
        raise ValueError(f"data that it cannot be asked of: {error}") from None
    except jmespath.exceptions.JMESPathError as error:
        raise CheckError(f"the query {format_value(expression)} cannot be answered: {error}") from None


class Question(StrictModel):
    """A JMESPath expression and what its answer must be."""

    path: JmesPath
    op: Operator = "=="
    value: Any


class Query(_DataCheck):
    """The result of a JMESPath expression over the parsed artifact compares as asked."""

    query: Question

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        path, op, value = self.query.path, self.query.op, self.query.value
        expected = f"{path} {op} {format_value(value)}"
        try:
            actual = run_query(path, document.load_data(self.format, self.block))
        except ValueError as error:
            yield Finding(expected=expected, found=str(error), where=document.shown)
            return
        if not OPERATORS[op](actual, value):
            yield Finding(expected=expected, found=format_value(actual), where=document.shown)
