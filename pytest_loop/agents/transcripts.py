"""Read the structured output of clients, with one reader for each format."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pytest_loop.agents.json_values import (
    ClientEvent,
    find_last,
    get_at,
    get_nonblank_text,
    get_number,
    get_text,
    list_members,
    parse_object,
    read_events,
    select_type,
    sum_at,
)
from pytest_loop.agents.price_table import TokenCounts
from pytest_loop.core.model.run_state import sum_known

_CODEX_STATUS = re.compile(r"(?:unexpected status|exceeded retry limit, last status:) (\d{3})\b")
_CLAUDE_TOKEN_KEYS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_CLAUDE_PRICED_KEYS = ("inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens")
_GEMINI_LOGIN_EXIT_CODE = 41
_LEADING_STATUS = re.compile(r"(\d{3})\b")


@dataclass(frozen=True)
class Transcript:
    """The output of one client call, cut unless `is_complete`; `report` is the text of a file of some clients."""

    stdout: str
    report: str = ""
    exit_code: int = 0
    is_complete: bool = True


@dataclass(frozen=True)
class ClientFailure:
    """An error of the client, with the HTTP status of the model's server and the seconds until a retry, if reported."""

    message: str = ""
    status: int | None = None
    retry_after: float | None = None


@dataclass(frozen=True)
class ClientReport:
    """The facts of a transcript; the preset says whether the numbers count this call or the conversation so far.

    `priced_tokens` is the number of tokens that `cost_usd` pays for, if the client reports it. `counts` are the tokens
    by kind, for clients that report no cost.
    """

    text: str | None = None
    data: Any = None
    session: str = ""
    tokens: int | None = None
    cost_usd: float | None = None
    priced_tokens: int | None = None
    counts: TokenCounts | None = None
    failure: ClientFailure | None = None


Reader = Callable[[Transcript], ClientReport]


def read_codex(transcript: Transcript) -> ClientReport:
    """Read JSON lines; the HTTP status is only in the first words of the message of `turn.failed`."""
    events = read_events(transcript.stdout)
    completed, failed = find_last(events, "turn.completed"), find_last(events, "turn.failed")
    items = [event.get("item") for event in select_type(events, "item.completed")]
    text = get_nonblank_text(find_last(filter(None, items), "agent_message"), "text")
    failure = _fail_unless(completed)
    if failed:
        message = get_text(failed, "error", "message")
        status = _CODEX_STATUS.match(message)
        failure = ClientFailure(message, int(status[1]) if status else None)
    return ClientReport(
        text=text,
        data=parse_object(text),
        session=get_text(find_last(events, "thread.started"), "thread_id"),
        tokens=sum_at(completed.get("usage"), "input_tokens", "output_tokens"),
        counts=_read_counts(completed.get("usage"), "cached_input_tokens"),
        failure=failure,
    )


def read_claude(transcript: Transcript) -> ClientReport:
    """Read the JSON line of type `result`; its `input_tokens` do not include cached ones."""
    result = find_last(read_events(transcript.stdout), "result")
    failure = _fail_unless(result)
    if result.get("is_error"):
        errors = [error for error in list_members(result.get("errors")) if isinstance(error, str)]
        message = get_text(result, "result") or "; ".join(errors) or get_text(result, "subtype")
        failure = ClientFailure(message, _get_status(result, "api_error_status"))
    return ClientReport(
        text=get_nonblank_text(result, "result"),
        data=result.get("structured_output"),
        session=get_text(result, "session_id"),
        tokens=sum_at(result.get("usage"), *_CLAUDE_TOKEN_KEYS),
        cost_usd=get_number(result, "total_cost_usd"),
        priced_tokens=sum_known(
            sum_at(usage, *_CLAUDE_PRICED_KEYS) for usage in list_members(result.get("modelUsage"))
        ),
        failure=failure,
    )


def read_gemini(transcript: Transcript) -> ClientReport:
    """Read JSON lines; the exit code is the status of the server modulo 256, and the answer follows the last tool."""
    events = read_events(transcript.stdout)
    result = find_last(events, "result")
    failure = _fail_unless(result.get("status") == "success", get_text(result, "error", "message"))
    if failure and transcript.exit_code:
        # Inside a fence, an exit code above 128 is reported as a signal.
        code = transcript.exit_code if transcript.exit_code > 0 else 128 - transcript.exit_code
        status = 401 if code == _GEMINI_LOGIN_EXIT_CODE else code + 256
        failure = ClientFailure(failure.message, status if 400 <= status < 500 else None)
    tools = ("tool_use", "tool_result")
    answers = [event for event in events if event.get("type") in tools or event.get("role") == "assistant"]
    return ClientReport(
        text=_join_after_tools(answers, tools, "content"),
        session=get_text(find_last(events, "init"), "session_id"),
        tokens=sum_at(result.get("stats"), "total_tokens"),
        counts=_read_counts(result.get("stats"), "cached"),
        failure=failure,
    )


def read_opencode(transcript: Transcript) -> ClientReport:
    """Read JSON lines; tokens and cost are summed over all steps, and unknown if some lines are missing."""
    events = read_events(transcript.stdout)
    steps = [event.get("part") for event in select_type(events, "step_finish")]
    error = find_last(events, "error").get("error")
    numbers: list[Any] = []
    for step in steps if transcript.is_complete else ():
        numbers.append(sum_at(get_at(step, "tokens"), "input", "output", "reasoning"))
        numbers.append(sum_at(get_at(step, "tokens", "cache"), "read", "write"))
    return ClientReport(
        text=get_nonblank_text(find_last(events, "text"), "part", "text"),
        session=next((get_text(event, "sessionID") for event in reversed(events) if event.get("sessionID")), ""),
        tokens=sum_known(numbers),
        cost_usd=sum_known(get_number(step, "cost") for step in steps) if transcript.is_complete else None,
        failure=_read_opencode_failure(error) if error else _fail_unless(steps),
    )


def _read_opencode_failure(error: Any) -> ClientFailure:
    data = get_at(error, "data")
    retry_after = get_text(data, "responseHeaders", "retry-after")
    return ClientFailure(
        get_text(data, "message") or get_text(error, "name"),
        _get_status(data, "statusCode"),
        float(retry_after) if retry_after.isdecimal() else None,
    )


def read_goose(transcript: Transcript) -> ClientReport:
    """Read JSON lines; the exit code is always 0, so only tokens show that a model answered."""
    events = read_events(transcript.stdout)
    messages = [event.get("message") for event in select_type(events, "message")]
    last_id = get_at(messages[-1], "id") if messages else None
    pieces = [message for message in messages if get_at(message, "id") == last_id]
    pieces = [message for message in pieces if get_at(message, "role") == "assistant"]
    text = "".join(get_text(part, "text") for message in pieces for part in list_members(get_at(message, "content")))
    tokens = get_number(find_last(events, "complete"), "total_tokens")
    return ClientReport(text=get_nonblank_text(text), tokens=tokens, failure=_fail_unless(tokens, text))


def read_aider(transcript: Transcript) -> ClientReport:
    """Read plain text and a log of events; the exit code is always 0, so only the log shows that a model answered."""
    events = read_events(transcript.report)
    sent = [event.get("properties") for event in events if event.get("event") == "message_send"]
    return ClientReport(
        text=get_nonblank_text(transcript.stdout),
        tokens=sum_known(sum_at(message, "prompt_tokens", "completion_tokens") for message in sent),
        cost_usd=sum_known(get_number(message, "cost") for message in sent),
        failure=_fail_unless(sent),
    )


def read_copilot(transcript: Transcript) -> ClientReport:
    """Read JSON lines, and a file with the usage of every model."""
    events = read_events(transcript.stdout)
    answer = find_last(events, "assistant.message")
    error = find_last(events, "session.error").get("data")
    failure = _fail_unless(answer)
    if error:
        failure = ClientFailure(get_text(error, "message"), _get_status(error, "statusCode"))
    models = list_members(get_at(parse_object(transcript.report), "modelMetrics"))
    return ClientReport(
        text=get_nonblank_text(answer, "data", "content"),
        session=get_text(find_last(events, "result"), "sessionId"),
        tokens=sum_known(sum_at(get_at(model, "usage"), "inputTokens", "outputTokens") for model in models),
        failure=failure,
    )


def read_qwen(transcript: Transcript) -> ClientReport:
    """Read the JSON line of type `result`; it may report success without an answer, so a success needs tokens."""
    result = find_last(read_events(transcript.stdout), "result")
    tokens = sum_at(result.get("usage"), "input_tokens", "output_tokens")
    message = get_text(result, "error", "message") or get_text(result, "result")
    return ClientReport(
        text=get_nonblank_text(result, "result"),
        data=result.get("structured_result"),
        session=get_text(result, "session_id"),
        tokens=tokens,
        counts=_read_counts(result.get("usage"), "cache_read_input_tokens"),
        failure=_fail_unless(tokens and not result.get("is_error"), message),
    )


def read_pi(transcript: Transcript) -> ClientReport:
    """Read the JSON line `agent_end`, which has all messages of the call; the exit code is always 0."""
    messages = list_members(find_last(read_events(transcript.stdout), "agent_end").get("messages"))
    answers = [message for message in messages if get_at(message, "role") == "assistant"]
    last = answers[-1] if answers else {}
    message = get_text(last, "errorMessage")
    status = _LEADING_STATUS.match(message)
    text = "".join(get_text(part, "text") for part in list_members(get_at(last, "content")))
    return ClientReport(
        text=get_nonblank_text(text),
        tokens=sum_known(get_number(answer, "usage", "totalTokens") for answer in answers),
        cost_usd=sum_known(get_number(answer, "usage", "cost", "total") for answer in answers),
        failure=ClientFailure(message, int(status[1]) if status else None) if message else _fail_unless(answers),
    )


def read_acp(transcript: Transcript) -> ClientReport:
    """Read the JSON lines of `acp_bridge`; usage is left out, because agents count it differently."""
    events = read_events(transcript.stdout)
    failed = find_last(events, "failed")
    failure = _fail_unless(find_last(events, "done").get("reason") == "end_turn")
    if failed:
        failure = ClientFailure(get_text(failed, "message"), _get_status(failed, "status"))
    return ClientReport(
        text=_join_after_tools(events, ("tool",), "text"),
        session=get_text(find_last(events, "session"), "session"),
        failure=failure,
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
    "pi": read_pi,
}


def _join_after_tools(events: Iterable[ClientEvent], tools: tuple[str, ...], key: str) -> str | None:
    """Join the texts at `key` after the last tool event; None if they are blank."""
    texts: list[str] = []
    for event in events:
        texts = [] if event.get("type") in tools else [*texts, get_text(event, key)]
    return get_nonblank_text("".join(texts))


def _fail_unless(proof: Any, message: str = "") -> ClientFailure | None:
    """Return a failure with this message, or None if `proof` is true."""
    return None if proof else ClientFailure(message)


def _read_counts(usage: Any, cached: str) -> TokenCounts | None:
    numbers = [get_number(usage, name) for name in ("input_tokens", cached, "output_tokens")]
    is_known = numbers[0] is not None and numbers[2] is not None
    return TokenCounts(*(int(number or 0) for number in numbers)) if is_known else None


def _get_status(value: Any, name: str) -> int | None:
    status = get_at(value, name)
    return status if isinstance(status, int) else None
