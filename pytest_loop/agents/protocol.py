"""The protocol of agents: requests, replies and errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from pytest_loop.core.model.evaluation import Issue
from pytest_loop.core.model.rules import Remedy
from pytest_loop.core.model.run_state import Blocked, Usage
from pytest_loop.errors import LoopError
from pytest_loop.processes.child import Ending
from pytest_loop.processes.fence import Fence
from pytest_loop.repair.engine_process import RunShares

DEFAULT_TIMEOUT = 1800.0
DEFAULT_SILENCE = 600.0
MAX_ANSWER_BYTES = 8 * 1024 * 1024
_MAX_AMOUNT = 1e15


class AgentError(LoopError):
    """The agent gave no usable answer; the next request and the history quote the message.

    `usage` has the tokens and cost of the failed request.
    """

    usage = Usage()


class AgentUnavailableError(AgentError):
    """The agent cannot work at all: a further request would not help."""


class RateLimitedError(AgentError):
    """The agent's model takes no requests for a while; `seconds` is None if it does not say how long."""

    def __init__(self, text: str, seconds: float | None = None) -> None:
        super().__init__(text)
        self.seconds = seconds


class StopRequestedError(AgentError):
    """The run was asked to stop while the agent was working."""


@dataclass(frozen=True)
class RepairTask:
    """The failing tests and rules of a project, for the built-in agent.

    `session_arguments` are arguments of pytest, `failing_tests` are node ids, `editable` are patterns of files that may
    be edited, `files_hash` changes with any file of the project, `remedies` are commands that may fix failing rules.
    `attempt` calls a function, and returns whether the score rose and no further rule fails; otherwise it reverts the
    function's edits. `run_shares` divides trials among the workers of a cluster.
    """

    session_arguments: tuple[str, ...]
    failing_tests: tuple[str, ...]
    editable: tuple[str, ...]
    files_hash: str
    remedies: tuple[Remedy, ...]
    attempt: Callable[[Callable[[], None]], bool]
    run_shares: RunShares | None = None


@dataclass(frozen=True)
class AgentRequest:
    """One request to an agent that works in the folder `workspace`; `artifact` is the document, if there is one.

    `schema` is the JSON Schema of the answer, if data is asked for. `key` distinguishes the questions of one step,
    which come in any order.
    """

    step: str
    prompt: str
    workspace: Path
    artifact: Path | None = None
    iteration: int = 1
    phase: str = "A"
    critique: tuple[Issue, ...] = ()
    schema: dict[str, Any] | None = None
    key: str = ""
    repair_task: RepairTask | None = None


class AgentReply(BaseModel):
    """The answer of an agent: a text, data if a schema was given, its usage, and a report of its work for the user.

    `exit_signal` says whether the agent considers the task done, `blocked` that a rule cannot be met.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str | None = None
    report: str = ""
    data: Any = None
    usage: Usage = Usage()
    exit_signal: bool | None = None
    blocked: Blocked | None = None

    @field_validator("text", "report", mode="before")
    @classmethod
    def _replace_surrogates(cls, value: Any) -> Any:
        """Replace lone surrogates, which no file can hold, by question marks."""
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value

    @field_validator("usage", mode="before")
    @classmethod
    def _drop_impossible_amounts(cls, value: Any) -> Any:
        """Drop amounts that cannot be true: negative ones, NaN, text, and absurdly large ones."""
        usage = value.model_dump() if isinstance(value, Usage) else value if isinstance(value, dict) else {}
        names = ("tokens", "cost_usd", "estimated_usd")
        amounts = {name: usage[name] for name in names if _is_amount(usage.get(name), name == "tokens")}
        is_estimated = "estimated_usd" in amounts and isinstance(usage.get("estimated_by"), str)
        return amounts | ({"estimated_by": usage["estimated_by"]} if is_estimated else {})


def _is_amount(value: Any, is_integer: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < _MAX_AMOUNT and (not is_integer or value == int(value))


@dataclass
class Watch:
    """The limits and callbacks under which an agent handles one request.

    `timeout` and `silence` limit the seconds in total and without output. `should_continue` returns whether the agent
    may go on, `on_output` receives its output, `on_wait` a sentence if it has to wait. `fence` confines its processes.
    """

    timeout: float = DEFAULT_TIMEOUT
    silence: float = DEFAULT_SILENCE
    on_output: Callable[[bytes], None] = field(default=lambda _data: None)
    on_wait: Callable[[str], None] = field(default=lambda _sentence: None)
    should_continue: Callable[[], bool] = field(default=lambda: True)
    fence: Fence | None = None

    def make_error(self, name: str, ending: Ending) -> AgentError:
        """Return the error for an agent that was ended before it answered."""
        if ending is Ending.REQUEST:
            return StopRequestedError(f"{name} was stopped on request")
        if ending is Ending.DEADLINE:
            return AgentError(f"{name} did not end within {self.timeout:g} s")
        return AgentError(f"{name} said nothing for {self.silence:g} s")


class Agent(Protocol):
    """An agent; PRODUCE and PREPARE are asked at the same time, each in a thread."""

    name: str

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        """Handle a request under the limits of `watch`; raise `AgentError` without a usable answer."""

    def close(self) -> None:
        """Release what is held between requests."""


def make_reply(value: Any, *, has_schema: bool = False) -> AgentReply:
    """Convert the return value of a Python agent to a reply; None means that the agent edited in place.

    With `has_schema`, a mapping with keys that a reply does not have is the reply's data.
    """
    if value is None or isinstance(value, str):
        return AgentReply(text=value)
    if isinstance(value, AgentReply):
        return value
    if has_schema and isinstance(value, (dict, list)) and not (value and set(value) <= set(AgentReply.model_fields)):
        return AgentReply(data=value)
    try:
        return AgentReply.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "all of it"
        raise AgentError(
            f"expected text, an AgentReply or None, found {type(value).__name__} ({where}: {first['msg']})"
        ) from None
