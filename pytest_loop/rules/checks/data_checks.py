"""The artifact as data: JSON Schema and JMESPath."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import jmespath
import jmespath.exceptions
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from pytest_loop.core.model.rules import Finding
from pytest_loop.errors import CheckError
from pytest_loop.rules import patterns
from pytest_loop.rules.checks.check import Check, Context, Inputs, format_value
from pytest_loop.rules.deadline import DEADLINE_SECONDS, enforce_deadline
from pytest_loop.rules.syntax import FORMATS, ContentError, parse, read_text

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

MOST_VIOLATIONS = 20


class _Data(Check):
    reads_artifact: ClassVar[bool] = True
    is_quiet: ClassVar[bool] = True

    format: Literal["json", "yaml", "toml"] | None = Field(
        default=None, description="where the file's name does not say it"
    )
    block: str | Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="a fenced block instead of the whole file"
    )


class JsonSchema(_Data):
    """The parsed artifact is valid for a JSON Schema: a path, or the schema itself."""

    json_schema: str | dict[str, Any]

    def depends_on(self, context: Context) -> Inputs | None:
        """A schema may refer to others, in other files."""
        is_whole = isinstance(self.json_schema, dict) and "$ref" not in str(self.json_schema)
        return super().depends_on(context) if is_whole else None

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        data = document.data(self.format, self.block)
        schema, base = _schema(self.json_schema, context)
        with enforce_deadline(DEADLINE_SECONDS, "the validation"):
            violations = sorted(
                _violations(data, schema, base, context), key=lambda one: list(map(str, one.absolute_path))
            )
        for violation in violations[:MOST_VIOLATIONS]:
            pointer = "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in violation.absolute_path)
            yield Finding(expected=f"{pointer or '/'} to be valid", found=_brief(violation), where=document.shown)
        if len(violations) > MOST_VIOLATIONS:
            found = f"{len(violations) - MOST_VIOLATIONS} more violations"
            yield Finding(expected="the whole to be valid", found=found, where=document.shown)


def _brief(violation: ValidationError) -> str:
    """The library's sentence without the instance printed in it, which may be the whole document."""
    instance = repr(violation.instance)
    return (
        violation.message.replace(instance, format_value(violation.instance), 1)
        if len(instance) > 80
        else violation.message
    )


def _schema(source: str | dict[str, Any], context: Context) -> tuple[Any, Path]:
    if isinstance(source, dict):
        return source, context.folder
    path = context.inside(Path(source))
    return _loaded(path, source), path.parent


def _loaded(path: Path, name: str) -> Any:
    try:
        return parse(read_text(path), FORMATS.get(path.suffix.lower(), "json"))
    except ContentError as error:
        raise CheckError(f"cannot read the schema {name}:{error.line}: {error}") from None


def _violations(data: Any, schema: Any, base: Path, context: Context) -> list[ValidationError]:
    """Validate without network: a reference leads to the schema itself or to a file of the project."""
    import jsonschema  # here and below: a fifth of a second that most rule files do not need
    from referencing import Registry, Resource
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    def retrieve(uri: str) -> Resource[Any]:
        return Resource.from_contents(_loaded(context.inside(base / uri), uri), default_specification=DRAFT202012)

    validator: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator.check_schema(schema)
        extend: Any = jsonschema.validators.extend
        bounded = extend(validator, {"pattern": _pattern})
        registry: Registry[Any] = Registry(retrieve=retrieve)  # type: ignore[call-arg]
        return list(bounded(schema, registry=registry).iter_errors(data))
    except jsonschema.SchemaError as error:
        raise CheckError(f"expected a JSON Schema, found one that is not: {error.message}") from None
    except Unresolvable as error:
        raise CheckError(f"the schema refers to {error.ref!r}, which is not in the project") from None


def _pattern(_validator: object, pattern: str, instance: object, _schema: object) -> Iterator[ValidationError]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not patterns.find_matches(pattern, instance):
        yield ValidationError(f"{format_value(instance)} does not match {format_value(pattern)}")


Number = int | float


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value


def _numbers(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda found, value: _is_number(found) and _is_number(value) and compare(found, value)


def _equal(found: Any, value: Any) -> bool:
    return bool(found == value) and isinstance(found, bool) == isinstance(value, bool)


def _matching(found: Any, value: Any) -> bool:
    return isinstance(found, str) and bool(patterns.find_matches(str(value), found))


def _holds(found: Any, value: Any) -> bool:
    if isinstance(found, str):
        return isinstance(value, str) and value in found
    return isinstance(found, (list, dict)) and any(_equal(one, value) for one in found)


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda found, value: not _equal(found, value),
    ">=": _numbers(operator.ge),
    ">": _numbers(operator.gt),
    "<=": _numbers(operator.le),
    "<": _numbers(operator.lt),
    "in": lambda found, value: isinstance(value, list) and any(_equal(found, one) for one in value),
    "not in": lambda found, value: isinstance(value, list) and not any(_equal(found, one) for one in value),
    "contains": _holds,
    "matches": _matching,
}
Comparison = Literal["==", "!=", ">=", ">", "<=", "<"]
Operator = Literal["==", "!=", ">=", ">", "<=", "<", "in", "not in", "contains", "matches"]


def _jmespath(expression: str) -> str:
    try:
        jmespath.compile(expression)
    except (jmespath.exceptions.JMESPathError, RecursionError) as error:
        reason = str(error).splitlines()[0].rstrip(":")
        raise ValueError(f"expected a JMESPath expression, found {format_value(expression)} ({reason})") from None
    return expression


JmesPath = Annotated[str, AfterValidator(_jmespath)]


def run_query(expression: str, data: Any) -> Any:
    """What a JMESPath expression finds, within a deadline."""
    try:
        with enforce_deadline(DEADLINE_SECONDS, f"the query {format_value(expression)}"):
            return jmespath.search(expression, data)
    except jmespath.exceptions.JMESPathError as error:
        raise CheckError(f"the query {format_value(expression)} cannot be answered: {error}") from None


class Question(BaseModel):
    """A JMESPath expression and what its answer must be."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    path: JmesPath
    op: Operator = "=="
    value: Any


class Query(_Data):
    """What a JMESPath expression finds in the parsed artifact compares as asked."""

    query: Question

    def run(self, context: Context) -> Iterable[Finding]:
        document = context.document()
        ask = self.query
        found = run_query(ask.path, document.data(self.format, self.block))
        if not OPERATORS[ask.op](found, ask.value):
            yield Finding(
                expected=f"{ask.path} {ask.op} {format_value(ask.value)}",
                found=format_value(found),
                where=document.shown,
            )
