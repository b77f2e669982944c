"""Answers that must have a form: found in the text, validated, or refused with the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StringConstraints, ValidationError

from pytest_loop.agents.protocol import AgentError, AgentReply
from pytest_loop.core.text.lengths import shorten

Model = TypeVar("Model", bound=BaseModel)
Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1_000)]
_BLOCK = re.compile(r"^[ \t]*```(?:json)?[ \t]*\n(.*?)^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)")
_BLOCKED = re.compile(r"\A\s*BLOCKED\s+(\S+?):\s+(.+?)\s*\Z", re.DOTALL)
_LONGEST_CLAIM = 4_000
_MOST_BRACES = 50


class PlanAnswer(BaseModel):
    """What PLAN gives."""

    model_config = ConfigDict(extra="ignore")

    plan: list[Words] = Field(min_length=3, max_length=5)


class PreparedCheck(BaseModel):
    """A check for a rule that was a sentence."""

    model_config = ConfigDict(extra="allow")

    rule_id: str
    check: Any = None


class PrepareAnswer(BaseModel):
    """What PREPARE gives."""

    model_config = ConfigDict(extra="ignore")

    checks: list[PreparedCheck]


class JudgeAnswer(BaseModel):
    """What a judge answers; only a plain true is a pass."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    passed: StrictBool
    reason: str = ""
    evidence: str = ""


def extract_data(reply: AgentReply) -> Any:
    """The data of an answer: given as such, or the one JSON object in its text."""
    return reply.data if reply.data is not None else _json(reply.text or "")


def validate_answer(reply: AgentReply, model: type[Model]) -> Model:
    """The answer as `model`; raises `AgentError` with what is wrong with it."""
    data = extract_data(reply)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the whole"
        wanted = ", ".join(model.model_fields)
        raise AgentError(f"expected JSON with {wanted}, found {where}: {shorten(first['msg'])}") from None


def _json(text: str) -> Any:
    """The one JSON object in a text: the whole of it, a fenced block, or what stands between words.

    Several that differ contradict each other, and none of them is taken.
    """
    for candidates in ([text.strip()], [block.strip() for block in _BLOCK.findall(text)]):
        found = [value for candidate in candidates if (value := _object(candidate)) is not None]
        if found:
            return _only(found)
    return _only(list(_scattered(text)), text)


def _only(found: list[Any], text: str = "") -> Any:
    if not found:
        raise AgentError(f"expected a JSON object, found {shorten(text, 80)!r}")
    if any(one != found[0] for one in found):
        raise AgentError(f"expected one JSON object, found {len(found)} that differ")
    return found[0]


def _object(text: str) -> Any:
    """The object that a text is, or None."""
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _scattered(text: str) -> Iterator[Any]:
    """The objects that stand between words; a text full of braces is not searched without end."""
    decoder = json.JSONDecoder(object_pairs_hook=_once, parse_constant=_no_number)
    at = text.find("{")
    for _ in range(_MOST_BRACES):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
            yield value
        except (ValueError, RecursionError):
            end = at + 1
        at = text.find("{", end)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def strip_fence(text: str) -> str:
    """A document without the fence that was put around the whole of it."""
    lines = text.strip().splitlines()
    opening = _FENCE.fullmatch(lines[0]) if len(lines) > 1 else None
    if opening is None or not _closes(lines[-1], opening["marks"]):
        return text
    inner = lines[1:-1]
    whole = opening["info"].strip().lower() in ("md", "markdown") and not _is_open(inner)
    if whole or not any(_FENCE.match(line) for line in inner):
        return "\n".join(inner) + "\n"
    return text


def _closes(line: str, marks: str) -> bool:
    bare = line.rstrip()
    return len(bare) >= len(marks) and set(bare) == {marks[0]}


def _is_open(lines: list[str]) -> bool:
    """Whether a fence begins in these lines that does not end there."""
    marks = ""
    for line in lines:
        if marks:
            marks = "" if _closes(line, marks) else marks
        elif found := _FENCE.match(line):
            marks = found["marks"]
    return bool(marks)


def parse_blocked_claim(text: str) -> tuple[str, str] | None:
    """The rule and the reason of an agent that says it cannot be met; only where that is the whole answer."""
    found = _BLOCKED.match(text) if len(text) < _LONGEST_CLAIM else None
    return (found[1], found[2]) if found else None
