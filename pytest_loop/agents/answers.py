"""Parse answers of agents: JSON objects, fenced documents, exit signals, and claims that a rule is blocked."""

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
# Three forms of exit signals, as prompted by other loops: a status block, a line of such a block, or a tag.
_STATUS_BLOCK = r"---LOOP_STATUS---[ \t]*$.*?^[ \t]*---END_STATUS---[ \t]*"
_EXIT_LINE = r"[*`]*EXIT_SIGNAL[*`]*:[*`]*[ \t]*(?P<signal>true|false)\b[ \t*`]*"
_COMPLETE_TAG = r"<loop-complete>(?:.*?</loop-complete>)?[ \t]*(?:\n[ \t]*[\u256d\u2502\u251c\u2570][^\n]*)*"
_FLAGS = re.MULTILINE | re.DOTALL | re.IGNORECASE
_EXIT_VALUE = re.compile(rf"^[ \t]*{_EXIT_LINE}$", _FLAGS)
_COMPLETION = re.compile(r"^[ \t]*<loop-complete>", _FLAGS)
_SIGNAL = re.compile(rf"^[ \t]*(?:{_STATUS_BLOCK}|{_EXIT_LINE}|{_COMPLETE_TAG})$\n?", _FLAGS)
# Signals are at the end of an answer; searching the whole of a long answer would take too long.
_MAX_SIGNAL_LENGTH = 20_000
_MAX_CLAIM_LENGTH = 4_000
_MAX_BRACES = 50
_MAX_REMARKS = 4


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
    """The answer of a judge; only the JSON value `true` is a pass."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    passed: StrictBool
    reason: str = ""
    evidence: str = ""


def extract_data(reply: AgentReply) -> Any:
    """Return the structured data of a reply, or else the JSON object in its text."""
    return reply.data if reply.data is not None else _find_object(reply.text or "")


def validate_answer(reply: AgentReply, model: type[Model]) -> Model:
    """Return the answer as a `model`; raise `AgentError` if it does not have that form."""
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
    """Return the document without the fence around it; also remove remarks of the agent around a Markdown fence."""
    lines = text.strip().splitlines()
    start = next((index for index, line in enumerate(lines) if _FENCE.match(line)), len(lines))
    opening = _FENCE.fullmatch(lines[start]) if start < len(lines) - 1 else None
    if opening is None:
        return text
    indexes = reversed(range(start + 1, len(lines)))
    end = next((index for index in indexes if _is_closing_fence(lines[index], opening["marks"])), None)
    if end is None:
        return text
    document, outside = lines[start + 1 : end], lines[:start] + lines[end + 1 :]
    if opening["info"].strip().lower() in ("md", "markdown"):
        is_whole = _are_remarks(outside) and not _has_open_fence(document)
    else:
        is_whole = not outside and not any(_FENCE.match(line) for line in document)
    return "\n".join(document) + "\n" if is_whole else text


def _are_remarks(lines: list[str]) -> bool:
    """Return whether lines are only a few words about a document: no heading, fence, list or table."""
    lines = [line for line in lines if line.strip()]
    return len(lines) <= _MAX_REMARKS and not any(
        line.startswith(("#", "```", "~~~", "- ", "* ", "|")) for line in lines
    )


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


def _parse_exit_signal(text: str) -> bool | None:
    """Return whether an agent signals that its work is done; None without a signal.

    The last `EXIT_SIGNAL:` counts, in a `---LOOP_STATUS---` block or alone; without that line, `<loop-complete>` means
    True.
    """
    values: list[str] = _EXIT_VALUE.findall(text)
    if values:
        return values[-1].lower() == "true"
    return True if _COMPLETION.search(text) else None


def split_exit_signal(text: str, *, is_document: bool) -> tuple[str, bool | None]:
    """Return a text without its exit signal, and the signal.

    If the text `is_document`, it may mention signals: only one at the very end counts.
    """
    head, tail = text[:-_MAX_SIGNAL_LENGTH], text[-_MAX_SIGNAL_LENGTH:]
    if not is_document:
        return head + _SIGNAL.sub("", tail), _parse_exit_signal(tail)
    end = len(tail)
    for match in reversed(list(_SIGNAL.finditer(tail))):
        if tail[match.end() : end].strip():
            break
        end = match.start()
    return head + tail[:end], _parse_exit_signal(tail[end:])


def parse_blocked_claim(text: str) -> tuple[str, str] | None:
    """Return the rule and the reason if the whole answer is `BLOCKED RULE: REASON`, else None."""
    match = _BLOCKED.match(text) if len(text) < _MAX_CLAIM_LENGTH else None
    return (match[1], match[2]) if match else None
