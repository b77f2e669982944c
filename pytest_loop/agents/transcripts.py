"""What clients leave behind in their structured formats: one small reader each, and no fact is taken from prose."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pytest_loop.agents.json_values import (
    Event,
    an_object,
    at,
    events,
    last,
    members,
    number,
    of_type,
    prose,
    sum_at,
    total,
    word,
)

_CODEX_STATUS = re.compile(r"(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_CLAUDE_TOKENS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_CLAUDE_PRICED = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
_GEMINI_NO_LOGIN = 41


@dataclass(frozen=True)
class Transcript:
    """All that a client left; `report` is the file that some of them write, `is_whole` says that nothing is lost."""

    stdout: str
    report: str = ""
    exit_code: int = 0
    is_whole: bool = True


@dataclass(frozen=True)
class Failure:
    """What went wrong, as the client says: the status that the model's server gave, and how long to wait, if known."""

    message: str = ""
    status: int | None = None
    wait: float | None = None


@dataclass(frozen=True)
class ClientReport:
    """What a transcript says; what its numbers count, this run or the whole conversation, is said by the preset.

    `priced` is how many tokens the cost is for, where the client says so.
    """

    text: str | None = None
    data: Any = None
    session: str = ""
    tokens: int | None = None
    cost_usd: float | None = None
    priced: int | None = None
    failure: Failure | None = None


Reader = Callable[[Transcript], ClientReport]


def read_codex(found: Transcript) -> ClientReport:
    """JSON lines. A status is known only from the head of the sentence that Codex itself puts into `turn.failed`."""
    said = list(events(found.stdout))
    done, failed = last(of_type(said, "turn.completed")), last(of_type(said, "turn.failed"))
    items = [at(one, "item") for one in of_type(said, "item.completed")]
    text = prose(last(of_type(filter(None, items), "agent_message")).get("text"))
    return ClientReport(
        text=text,
        data=an_object(text),
        session=word(last(of_type(said, "thread.started")).get("thread_id")),
        tokens=sum_at(done.get("usage"), "input_tokens", "output_tokens"),
        failure=_codex_failure(word(at(failed, "error", "message"))) if failed else _unless(done),
    )


def _codex_failure(message: str) -> Failure:
    status = _CODEX_STATUS.match(message)
    return Failure(message, int(status[1]) if status else None)


def read_claude(found: Transcript) -> ClientReport:
    """JSON lines: the one of type `result` says all. Its input is counted without what came from a cache."""
    result = last(of_type(events(found.stdout), "result"))
    failure = _unless(result)
    if result.get("is_error"):
        message = word(result.get("result")) or word(result.get("subtype"))
        failure = Failure(message, _status(result, "api_error_status"))
    return ClientReport(
        text=prose(result.get("result")),
        data=result.get("structured_output"),
        session=word(result.get("session_id")),
        tokens=sum_at(result.get("usage"), *_CLAUDE_TOKENS),
        cost_usd=number(result.get("total_cost_usd")),
        priced=total(sum_at(one, *_CLAUDE_PRICED) for one in members(result.get("modelUsage"))),
        failure=failure,
    )


def read_gemini(found: Transcript) -> ClientReport:
    """JSON lines. The exit code is the status that the server gave, modulo 256; the answer follows the last tool."""
    said = list(events(found.stdout))
    result = last(of_type(said, "result"))
    failure = _unless(result.get("status") == "success", word(at(result, "error", "message")))
    if failure and found.exit_code:
        status = 401 if found.exit_code == _GEMINI_NO_LOGIN else found.exit_code + 256
        failure = Failure(failure.message, status if 400 <= status < 500 else None)
    return ClientReport(
        text=prose("".join(_last_words(said))),
        session=word(last(of_type(said, "init")).get("session_id")),
        tokens=sum_at(result.get("stats"), "total_tokens"),
        failure=failure,
    )


def _last_words(said: Iterable[Event]) -> list[str]:
    words: list[str] = []
    for event in said:
        if event.get("type") in ("tool_use", "tool_result"):
            words = []
        elif event.get("type") == "message" and event.get("role") == "assistant":
            words.append(word(event.get("content")))
    return words


def read_opencode(found: Transcript) -> ClientReport:
    """JSON lines; tokens and cost are those of all steps together, and unknown where some of the lines are lost."""
    said = list(events(found.stdout))
    steps = [one.get("part") for one in of_type(said, "step_finish")]
    counted = steps if found.is_whole else []
    error = last(of_type(said, "error")).get("error")
    return ClientReport(
        text=prose(at(last(of_type(said, "text")), "part", "text")),
        session=word(last(one for one in said if one.get("sessionID")).get("sessionID")),
        tokens=total(
            total(
                [
                    sum_at(at(one, "tokens"), "input", "output", "reasoning"),
                    sum_at(at(one, "tokens", "cache"), "read", "write"),
                ]
            )
            for one in counted
        ),
        cost_usd=total(at(one, "cost") for one in counted),
        failure=_opencode_failure(error) if error else _unless(steps),
    )


def _opencode_failure(error: Any) -> Failure:
    data = at(error, "data")
    wait = word(at(data, "responseHeaders", "retry-after"))
    return Failure(
        word(at(data, "message")) or word(at(error, "name")),
        _status(data, "statusCode"),
        float(wait) if wait.isdecimal() else None,
    )


def read_goose(found: Transcript) -> ClientReport:
    """JSON lines. The exit code is 0 whatever happens: that a model answered is seen from its tokens alone."""
    said = list(events(found.stdout))
    messages = [one.get("message") for one in of_type(said, "message")]
    answer = messages[-1] if messages else None
    pieces = [one for one in messages if at(one, "id") == at(answer, "id") and at(one, "role") == "assistant"]
    text = "".join(word(at(part, "text")) for one in pieces for part in members(at(one, "content")))
    tokens = sum_at(last(of_type(said, "complete")), "total_tokens")
    return ClientReport(text=prose(text), tokens=tokens, failure=_unless(tokens, text))


def read_aider(found: Transcript) -> ClientReport:
    """Plain text, and a log of events. The exit code is 0 whatever happens: what a model answered is in the log."""
    sent = [one.get("properties") for one in events(found.report) if one.get("event") == "message_send"]
    return ClientReport(
        text=prose(found.stdout),
        tokens=total(sum_at(one, "prompt_tokens", "completion_tokens") for one in sent),
        cost_usd=total(at(one, "cost") for one in sent),
        failure=_unless(sent),
    )


def read_copilot(found: Transcript) -> ClientReport:
    """JSON lines, and a file with the usage of every model."""
    said = list(events(found.stdout))
    answers = of_type(said, "assistant.message")
    error = last(of_type(said, "session.error")).get("data")
    failure = Failure(word(at(error, "message")), _status(error, "statusCode")) if error else _unless(answers)
    return ClientReport(
        text=prose(at(last(answers), "data", "content")),
        session=word(last(of_type(said, "result")).get("sessionId")),
        tokens=total(
            sum_at(at(one, "usage"), "inputTokens", "outputTokens")
            for one in members(at(an_object(found.report), "modelMetrics"))
        ),
        failure=failure,
    )


def read_qwen(found: Transcript) -> ClientReport:
    """JSON lines: the one of type `result` says all. It may say success where no model was reached: see its tokens."""
    result = last(of_type(events(found.stdout), "result"))
    tokens = sum_at(result.get("usage"), "input_tokens", "output_tokens")
    text = word(result.get("result"))
    return ClientReport(
        text=prose(text),
        data=result.get("structured_result"),
        session=word(result.get("session_id")),
        tokens=tokens,
        failure=_unless(tokens and not result.get("is_error"), word(at(result, "error", "message")) or text),
    )


def read_acp(found: Transcript) -> ClientReport:
    """JSON lines of our own; what agents say there about usage counts different things, so it is unknown."""
    said = list(events(found.stdout))
    words: list[str] = []
    for event in said:
        words = [] if event.get("type") == "tool" else [*words, word(event.get("text"))]
    failed = last(of_type(said, "failed"))
    is_done = last(of_type(said, "done")).get("reason") == "end_turn"
    return ClientReport(
        text=prose("".join(words)),
        session=word(last(of_type(said, "session")).get("session")),
        failure=Failure(word(failed.get("message")), _status(failed, "status")) if failed else _unless(is_done),
    )


READERS: dict[str, Reader] = {
    "acp": read_acp,
    "codex": read_codex,
    "claude": read_claude,
    "gemini": read_gemini,
    "opencode": read_opencode,
    "goose": read_goose,
    "aider": read_aider,
    "copilot": read_copilot,
    "qwen": read_qwen,
}


def _unless(proof: Any, message: str = "") -> Failure | None:
    """Who shows no proof that a model answered has failed, whatever the exit code says."""
    return None if proof else Failure(message)


def _status(value: Any, name: str) -> int | None:
    status = at(value, name)
    return status if isinstance(status, int) else None
