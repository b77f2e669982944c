"""Answers of agents: JSON in a text and its models, fenced documents, and claims that a rule cannot be met."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, ValidationError

from pytest_loop.agents.protocol import AgentError, AgentReply
from pytest_loop.core.text.lengths import shorten

Model = TypeVar("Model", bound=BaseModel)
PlanStep = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
_JSON_BLOCK = re.compile(r"^[ \t]*```(?:json)?[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)")
_BLOCKED = re.compile(r"\A\s*BLOCKED\s+(\S+?):\s+(.+?)\s*\Z", re.DOTALL)
_MAX_CLAIM_LENGTH = 4_000
_MAX_BRACES = 50


class PlanAnswer(BaseModel):
    """The answer to PLAN."""

    model_config = ConfigDict(extra="ignore")

    plan: list[PlanStep] = Field(min_length=3, max_length=5)


class PreparedCheck(BaseModel):
    """A check for a rule that was written as a sentence."""

    model_config = ConfigDict(extra="allow")

    rule_id: str
    check: Any = None


class PrepareAnswer(BaseModel):
    """The answer to PREPARE."""

    model_config = ConfigDict(extra="ignore")

    checks: list[PreparedCheck]


class JudgeAnswer(BaseModel):
    """The answer of a judge; only a plain true is a pass."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    passed: StrictBool
    reason: str = ""
    evidence: str = ""


def extract_data(reply: AgentReply) -> Any:
    """Return the data of a reply, or the JSON object in its text."""
    return reply.data if reply.data is not None else _find_object(reply.text or "")


def validate_answer(reply: AgentReply, model: type[Model]) -> Model:
    """Return the answer as `model`, or raise `AgentError` with what is wrong."""
    try:
        return model.model_validate(extract_data(reply))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        fields = ", ".join(model.model_fields)
        raise AgentError(f"expected JSON with {fields}, found {place}: {shorten(first['msg'])}") from None


def _find_object(text: str) -> Any:
    """Return the JSON object in a text: the whole text, a fenced block, or an object within prose.

    Raise `AgentError` if there is none, or if there are several that differ.
    """
    for parts in ([text], _JSON_BLOCK.findall(text)):
        if objects := [value for part in parts if isinstance(value := _parse_json(part), dict)]:
            break
    else:
        objects = list(_iterate_objects(text))
    if not objects:
        raise AgentError(f"expected a JSON object, found {shorten(text, 80)!r}")
    if any(other != objects[0] for other in objects):
        raise AgentError(f"expected one JSON object, found {len(objects)} that differ")
    return objects[0]


def _parse_json(text: str) -> Any:
    try:
        return _DECODER.decode(text.strip())
    except (ValueError, RecursionError):
        return None


def _iterate_objects(text: str) -> Iterator[Any]:
    """Yield the JSON objects in a text; only the first _MAX_BRACES opening braces are tried."""
    position = text.find("{")
    for _ in range(_MAX_BRACES):
        if position < 0:
            return
        try:
            value, end = _DECODER.raw_decode(text, position)
            yield value
        except (ValueError, RecursionError):
            end = position + 1
        position = text.find("{", end)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a key twice")
    return members


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant)


def strip_fence(text: str) -> str:
    """Remove a fence that encloses a whole document."""
    lines = text.strip().splitlines()
    opening = _FENCE.fullmatch(lines[0]) if len(lines) > 1 else None
    if opening is None or not _is_closing_fence(lines[-1], opening["marks"]):
        return text
    inner = lines[1:-1]
    is_markdown = opening["info"].strip().lower() in ("md", "markdown") and not _has_open_fence(inner)
    if is_markdown or not any(_FENCE.match(line) for line in inner):
        return "\n".join(inner) + "\n"
    return text


def _is_closing_fence(line: str, marks: str) -> bool:
    line = line.rstrip()
    return len(line) >= len(marks) and set(line) == {marks[0]}


def _has_open_fence(lines: list[str]) -> bool:
    marks = ""
    for line in lines:
        if marks:
            marks = "" if _is_closing_fence(line, marks) else marks
        elif opening := _FENCE.match(line):
            marks = opening["marks"]
    return bool(marks)


def parse_blocked_claim(text: str) -> tuple[str, str] | None:
    """Return the rule and the reason if an answer is nothing but `BLOCKED RULE: REASON`."""
    match = _BLOCKED.match(text) if len(text) < _MAX_CLAIM_LENGTH else None
    return (match[1], match[2]) if match else None
