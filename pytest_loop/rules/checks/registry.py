"""The kinds of checks by name, and the construction of a check from the `check` of a rule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from pydantic import BaseModel, ValidationError

from pytest_loop.core.model.rules import Proof
from pytest_loop.rules.checks.check import Check, format_value
from pytest_loop.rules.checks.command_checks import Command, Executable, Metric
from pytest_loop.rules.checks.composite_checks import AllOf, AnyOf, Not
from pytest_loop.rules.checks.content_checks import Absent, Contains, Matches, NotMatches, Search
from pytest_loop.rules.checks.data_checks import JsonSchema, Query
from pytest_loop.rules.checks.file_checks import Files
from pytest_loop.rules.checks.mutation_check import Mutation
from pytest_loop.rules.checks.python_checks import Python, Tests
from pytest_loop.rules.checks.review_checks import Judge, Manual, Sentence
from pytest_loop.rules.checks.structure_checks import Links, Parses, Sections, Size
from pytest_loop.rules.validation_messages import FieldProblem, describe_errors

Kinds = Mapping[str, type[BaseModel]]
BUILT_IN_KINDS: Kinds = {
    "command": Command,
    "metric": Metric,
    "contains": Contains,
    "absent": Absent,
    "matches": Matches,
    "not_matches": NotMatches,
    "sections": Sections,
    "parses": Parses,
    "json_schema": JsonSchema,
    "query": Query,
    "files": Files,
    "size": Size,
    "links": Links,
    "python": Python,
    "tests": Tests,
    "mutation": Mutation,
    "judge": Judge,
    "manual": Manual,
}
# Kinds of other loop tools, which a rule names with `type`.
FOREIGN_KINDS: Kinds = {"executable": Executable, "content": Search}
COMPOSITE_KINDS: dict[str, type[AllOf | AnyOf | Not]] = {"all": AllOf, "any": AnyOf, "not": Not}
# Checks that read no artifact, unless they are commands with `{artifact}`.
_PROJECT_CHECKS = (Command, Metric, Files, Tests, Mutation, Manual, AllOf, AnyOf, Not)


class InvalidCheckError(Exception):
    """A check that is not valid, with all its problems."""

    def __init__(self, *problems: FieldProblem) -> None:
        self.problems = problems
        super().__init__("; ".join(problem.text for problem in problems))


def build_check(raw: Any, kinds: Kinds = BUILT_IN_KINDS) -> Any:
    """Build the check that a value of a rule file describes, or raise `InvalidCheckError`."""
    if isinstance(raw, str) and raw.strip():
        return Sentence(sentence=raw)
    if isinstance(raw, list) and raw:
        return AllOf(checks=_build_all(enumerate(raw), kinds))
    if isinstance(raw, dict) and raw.get("type") in FOREIGN_KINDS:
        return _build_from_model(FOREIGN_KINDS[raw["type"]], raw)
    if not isinstance(raw, dict) or not raw:
        problem = f"expected a check (a mapping, a list or a sentence), found {format_value(raw)}"
        raise InvalidCheckError(FieldProblem((), problem))
    return _build_kind(raw, kinds)


def _build_kind(raw: dict[Any, Any], kinds: Kinds) -> Any:
    names = [name for name in raw if name in kinds or name in COMPOSITE_KINDS]
    if not names:
        available = ", ".join(sorted([*kinds, *COMPOSITE_KINDS]))
        problem = f"expected one kind of check ({available}), found {_join_names(raw)}{_suggest_kind(raw, kinds)}"
        raise InvalidCheckError(FieldProblem((next(iter(raw)),), problem))
    if len(names) > 1:
        problem = f"expected one kind of check, found {_join_names(names)}: put them into `all`"
        raise InvalidCheckError(FieldProblem((names[1],), problem))
    name = names[0]
    if name in COMPOSITE_KINDS:
        return _build_composite(name, raw, kinds)
    model = kinds[name]
    return _build_from_model(model, raw) if name in model.model_fields else _build_from_value(model, raw, name)


def _build_composite(name: str, raw: dict[Any, Any], kinds: Kinds) -> Check:
    value = raw[name]
    for other in raw:
        if other != name:
            raise InvalidCheckError(FieldProblem((other,), f"expected nothing beside `{name}`, found `{other}`"))
    if name == "not":
        checks = _build_all([(name, value)], kinds)
    elif isinstance(value, list) and value:
        checks = _build_all(enumerate(value), kinds, (name,))
    else:
        problem = f"expected a list of checks for `{name}`, found {format_value(value)}"
        raise InvalidCheckError(FieldProblem((name,), problem))
    if name != "all" and any(isinstance(check, Tests) for check in checks):
        problem = f"expected `tests` alone, in a list or in `all`, found it in `{name}`"
        raise InvalidCheckError(FieldProblem((name,), problem))
    return COMPOSITE_KINDS[name](checks=checks)


def _build_all(
    entries: Iterable[tuple[str | int, Any]], kinds: Kinds, path: tuple[str | int, ...] = ()
) -> tuple[Any, ...]:
    """Build several checks, each with its key below `path`; report the problems of all at once."""
    checks: list[Any] = []
    problems: list[FieldProblem] = []
    for key, value in entries:
        try:
            checks.append(build_check(value, kinds))
        except InvalidCheckError as error:
            problems += [FieldProblem((*path, key, *problem.path), problem.text) for problem in error.problems]
    if problems:
        raise InvalidCheckError(*problems)
    return tuple(checks)


def _build_from_model(model: type[BaseModel], raw: Any, path: tuple[str | int, ...] = ()) -> Any:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        problems = describe_errors(error, model, raw)
        raise InvalidCheckError(*(FieldProblem((*path, *problem.path), problem.text) for problem in problems)) from None


def _build_from_value(model: type[BaseModel], raw: dict[Any, Any], name: str) -> Any:
    """Build a third party's check whose model describes the value of its key; other keys are fields too."""
    value = raw[name]
    if not isinstance(value, dict):
        keys = ", ".join(model.model_fields)
        problem = f"expected a mapping with {keys} for `{name}`, found {format_value(value)}"
        raise InvalidCheckError(FieldProblem((name,), problem))
    others = {key: other for key, other in raw.items() if key != name}
    return _build_from_model(model, {**value, **others}, (name,))


def _suggest_kind(raw: Iterable[Any], kinds: Kinds) -> str:
    """Return `did you mean` with the kind that a misspelled one is closest to; empty without one."""
    available = [*kinds, *COMPOSITE_KINDS]
    close = next((match[0] for name in raw if (match := get_close_matches(str(name), available, 1))), "")
    return f": did you mean `{close}`?" if close else ""


def _join_names(names: Iterable[Any]) -> str:
    return " and ".join(f"`{name}`" for name in names)


def list_checks(check: Any) -> list[Any]:
    """Return a check and all checks inside it."""
    parts = vars(check).get("checks", ())
    return [check, *(inner for part in parts for inner in list_checks(part))]


def find_weakest_proof(checks: Sequence[Any]) -> Proof:
    """Return the weakest proof of several checks: together they prove no more."""
    proofs = {getattr(check, "proof", Proof.OBSERVATION) for check in checks}
    return proofs.pop() if len(proofs) == 1 else max(proofs, key=lambda proof: proof.rank)


def needs_artifact(check: Any) -> bool:
    """Return whether a check cannot run without an artifact."""
    return any(
        getattr(part, "reads_artifact", False) or "{artifact}" in str(getattr(part, "command_line", ""))
        for part in list_checks(check)
    )


def can_read_artifact(check: Any) -> bool:
    """Return whether a check reads the artifact if there is one, as functions and judges do."""
    return needs_artifact(check) or not all(isinstance(part, _PROJECT_CHECKS) for part in list_checks(check))


def build_check_schemas(kinds: Kinds = BUILT_IN_KINDS) -> dict[str, Any]:
    """Build the JSON Schema definitions of checks by name; `check` is any of them."""
    definitions: dict[str, Any] = {}
    alternatives: list[dict[str, Any]] = [
        {"type": "string", "minLength": 1, "description": "a sentence that an agent makes concrete"},
        {"type": "array", "items": {"$ref": "#/$defs/check"}, "minItems": 1, "description": "all must pass"},
    ]
    for name, model in kinds.items():
        schema = model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        definitions |= schema.pop("$defs", {})
        if name not in model.model_fields:
            schema = {"type": "object", "properties": {name: schema}, "required": [name]}
        definitions[f"check.{name}"] = schema
        alternatives.append({"$ref": f"#/$defs/check.{name}"})
    several = {"type": "array", "items": {"$ref": "#/$defs/check"}, "minItems": 1}
    for name in COMPOSITE_KINDS:
        properties = {name: {"$ref": "#/$defs/check"} if name == "not" else several}
        alternatives.append(
            {"type": "object", "properties": properties, "required": [name], "additionalProperties": False}
        )
    for name, foreign in FOREIGN_KINDS.items():
        schema = foreign.model_json_schema()
        schema["properties"] = {"type": {"const": name}, **schema["properties"]}
        schema["required"] = ["type", *schema["required"]]
        alternatives.append(schema)
    return {**definitions, "check": {"anyOf": alternatives}}
