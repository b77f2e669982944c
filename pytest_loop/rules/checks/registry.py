"""The kinds of checks by name, and how the `check` of a rule becomes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from pydantic import BaseModel, ValidationError

from pytest_loop.core.model.rules import Proof
from pytest_loop.rules.checks.check import Check, format_value
from pytest_loop.rules.checks.composite_checks import AllOf, AnyOf, Not
from pytest_loop.rules.checks.python_checks import Tests
from pytest_loop.rules.checks.review_checks import Sentence
from pytest_loop.rules.validation_messages import FieldProblem, describe_errors

Kinds = Mapping[str, type[BaseModel]]


class _Named(Mapping[str, type[BaseModel]]):
    """Kinds by name; the module of a kind is imported when a rule first asks for it, which most never do."""

    def __init__(self, **places: str) -> None:
        self.places = places
        self.models: dict[str, type[BaseModel]] = {}

    def __getitem__(self, name: str) -> type[BaseModel]:
        if name not in self.models:
            module, _, model = self.places[name].partition(".")
            self.models[name] = getattr(import_module(f"pytest_loop.rules.checks.{module}"), model)
        return self.models[name]

    def __contains__(self, name: object) -> bool:
        return name in self.places

    def __iter__(self) -> Iterator[str]:
        return iter(self.places)

    def __len__(self) -> int:
        return len(self.places)


BUILT_IN_KINDS: Kinds = _Named(
    command="command_checks.Command",
    metric="command_checks.Metric",
    contains="content_checks.Contains",
    absent="content_checks.Absent",
    matches="content_checks.Matches",
    not_matches="content_checks.NotMatches",
    sections="structure_checks.Sections",
    parses="structure_checks.Parses",
    json_schema="data_checks.JsonSchema",
    query="data_checks.Query",
    files="file_checks.Files",
    size="structure_checks.Size",
    links="structure_checks.Links",
    python="python_checks.Python",
    tests="python_checks.Tests",
    judge="review_checks.Judge",
    manual="review_checks.Manual",
)
FOREIGN: Kinds = _Named(executable="command_checks.Executable", content="content_checks.Search")
COMPOSED: dict[str, type[AllOf | AnyOf | Not]] = {"all": AllOf, "any": AnyOf, "not": Not}


class InvalidCheckError(Exception):
    """A check that cannot be understood, with every complaint about it."""

    def __init__(self, *reasons: FieldProblem) -> None:
        self.complaints = reasons
        super().__init__("; ".join(reason.text for reason in reasons))


def build_check(raw: Any, kinds: Kinds = BUILT_IN_KINDS) -> Any:
    """The check that a rule file's value stands for; raises `Invalid`."""
    if isinstance(raw, str) and raw.strip():
        return Sentence(sentence=raw)
    if isinstance(raw, list) and raw:
        return AllOf(checks=_each(raw, kinds))
    if isinstance(raw, dict) and raw.get("type") in FOREIGN:
        return _model(FOREIGN[raw["type"]], raw)
    if not isinstance(raw, dict) or not raw:
        raise InvalidCheckError(
            FieldProblem((), f"expected a check (a mapping, a list or a sentence), found {format_value(raw)}")
        )
    return _by_kind(raw, kinds)


def _by_kind(raw: dict[Any, Any], kinds: Kinds) -> Any:
    names = [name for name in raw if name in kinds or name in COMPOSED]
    if not names:
        known = ", ".join(sorted([*kinds, *COMPOSED]))
        raise InvalidCheckError(
            FieldProblem((next(iter(raw)),), f"expected one kind of check ({known}), found {_named(raw)}")
        )
    if len(names) > 1:
        raise InvalidCheckError(
            FieldProblem((names[1],), f"expected one kind of check, found {_named(names)}: put them into `all`")
        )
    name = names[0]
    if name in COMPOSED:
        return _composed(name, raw, kinds)
    model = kinds[name]
    if name in model.model_fields:
        return _model(model, raw)
    return _whole(model, raw, name)


def _composed(name: str, raw: dict[Any, Any], kinds: Kinds) -> Check:
    if len(raw) > 1:
        other = next(key for key in raw if key != name)
        raise InvalidCheckError(FieldProblem((other,), f"expected nothing beside `{name}`, found `{other}`"))
    value = raw[name]
    if name == "not":
        return Not(checks=_each({"not": value}, kinds))
    if not isinstance(value, list) or not value:
        raise InvalidCheckError(
            FieldProblem((name,), f"expected a list of checks for `{name}`, found {format_value(value)}")
        )
    try:
        parts = _each(value, kinds)
    except InvalidCheckError as invalid:
        raise InvalidCheckError(*(FieldProblem((name, *one.path), one.text) for one in invalid.complaints)) from None
    if name == "any" and any(isinstance(part, Tests) for part in parts):
        raise InvalidCheckError(
            FieldProblem((name,), "expected `tests` alone, in a list or in `all`, found it in `any`")
        )
    return COMPOSED[name](checks=parts)


def _each(raw: list[Any] | dict[str, Any], kinds: Kinds) -> tuple[Any, ...]:
    """The checks in a list or mapping; all that is wrong with them is said at once."""
    done, wrong = [], []
    for step, value in raw.items() if isinstance(raw, dict) else enumerate(raw):
        try:
            done.append(build_check(value, kinds))
        except InvalidCheckError as invalid:
            wrong += [FieldProblem((step, *one.path), one.text) for one in invalid.complaints]
    if wrong:
        raise InvalidCheckError(*wrong)
    if isinstance(raw, dict) and any(isinstance(part, Tests) for part in done):
        raise InvalidCheckError(
            FieldProblem(("not",), "expected `tests` alone, in a list or in `all`, found it in `not`")
        )
    return tuple(done)


def _model(model: type[BaseModel], raw: Any, at: tuple[str | int, ...] = ()) -> Any:
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        raise InvalidCheckError(
            *(FieldProblem((*at, *one.path), one.text) for one in describe_errors(error, model, raw))
        ) from None


def _whole(model: type[BaseModel], raw: dict[Any, Any], name: str) -> Any:
    """A third party's kind whose model describes the value of its key; modifiers beside the key are fields too."""
    value = raw[name]
    beside = {key: other for key, other in raw.items() if key != name}
    if not isinstance(value, dict):
        keys = ", ".join(model.model_fields)
        raise InvalidCheckError(
            FieldProblem((name,), f"expected a mapping with {keys} for `{name}`, found {format_value(value)}")
        )
    return _model(model, {**value, **beside}, (name,))


def _named(names: Any) -> str:
    return " and ".join(f"`{name}`" for name in names)


def list_checks(root: Any) -> list[Any]:
    """A check and all checks inside it."""
    parts = vars(root).get("checks", ())
    return [root, *(inner for part in parts for inner in list_checks(part))] if parts else [root]


def find_weakest_proof(parts: Sequence[Any]) -> Proof:
    """What a verdict of these checks together rests on: no more than the weakest of them."""
    kinds = [getattr(part, "proof", Proof.OBSERVATION) for part in parts]
    return kinds[0] if len(kinds) == 1 else max(kinds, key=lambda one: one.rank)


def needs_artifact(root: Any) -> bool:
    """Whether a check cannot be carried out without an artifact."""
    return any(
        getattr(one, "reads_artifact", False) or "{artifact}" in str(getattr(one, "line", ""))
        for one in list_checks(root)
    )


def build_check_schemas(kinds: Kinds = BUILT_IN_KINDS) -> dict[str, Any]:
    """The JSON Schema definitions of checks, by name; `check` is any of them."""
    definitions: dict[str, Any] = {}
    ways: list[dict[str, Any]] = [
        {"type": "string", "minLength": 1, "description": "a sentence that an agent makes concrete"},
        {"type": "array", "items": {"$ref": "#/$defs/check"}, "minItems": 1, "description": "all must pass"},
    ]
    for name, model in kinds.items():
        own = model.model_json_schema(by_alias=True, ref_template="#/$defs/{model}")
        definitions |= own.pop("$defs", {})
        if name not in model.model_fields:
            own = {"type": "object", "properties": {name: own}, "required": [name]}
        definitions[f"check.{name}"] = own
        ways.append({"$ref": f"#/$defs/check.{name}"})
    many = {"type": "array", "items": {"$ref": "#/$defs/check"}, "minItems": 1}
    for name in COMPOSED:
        value = {"$ref": "#/$defs/check"} if name == "not" else many
        ways.append({"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False})
    for name, foreign in FOREIGN.items():
        own = foreign.model_json_schema()
        own["properties"] = {"type": {"const": name}, **own["properties"]}
        own["required"] = ["type", *own["required"]]
        ways.append(own)
    return {**definitions, "check": {"anyOf": ways}}
