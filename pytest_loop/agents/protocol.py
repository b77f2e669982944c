"""What an agent is: somebody who gets a request and gives a reply, or an error that is a value."""

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

DEFAULT_TIMEOUT = 1800.0
DEFAULT_SILENCE = 600.0
LARGEST_ANSWER = 8 * 1024 * 1024
_MOST = 1e15


class AgentError(LoopError):
    """The agent gave no usable answer; its text goes into the next request and the history."""


class AgentUnavailableError(AgentError):
    """The agent cannot be reached at all: asking again would not help."""


class RateLimitedError(AgentError):
    """The agent's model takes no requests for a while: `seconds` is how long, where that is known."""

    def __init__(self, text: str, seconds: float | None = None) -> None:
        super().__init__(text)
        self.seconds = seconds


class StopAskedError(AgentError):
    """Somebody asked for the end while the agent was working."""


@dataclass(frozen=True)
class Case:
    """What there is to mend in the files of a project, for an agent that is a part of this package.

    `words` are those of the sessions that judge, `failing` the tests by their node ids, `allow` the files that may be
    edited, `files` a hash of them all, and `remedies` the commands that may mend what failing rules complain about.
    `attempt` carries something out, and undoes it unless the score rises and nothing gets worse.
    """

    words: tuple[str, ...]
    failing: tuple[str, ...]
    allow: tuple[str, ...]
    files: str
    remedies: tuple[Remedy, ...]
    attempt: Callable[[Callable[[], None]], bool]


@dataclass(frozen=True)
class AgentRequest:
    """What an agent is asked. `key` tells questions of one step apart that come in no certain order."""

    step: str
    prompt: str
    workspace: Path
    artifact: Path | None = None
    iteration: int = 1
    phase: str = "A"
    critique: tuple[Issue, ...] = ()
    schema: dict[str, Any] | None = None
    key: str = ""
    case: Case | None = None


class AgentReply(BaseModel):
    """What an agent answers: a text, data where a schema was given, and what it knows about itself.

    `report` is what a person should hear of the work.
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
    def _writable(cls, value: Any) -> Any:
        """Half a character, which Python allows in a text and a file does not, becomes a question mark."""
        return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value

    @field_validator("usage", mode="before")
    @classmethod
    def _believable(cls, value: Any) -> Any:
        """Numbers that cannot be true are unknown: negative, NaN, text, beyond all measure."""
        known = value.model_dump() if isinstance(value, Usage) else value if isinstance(value, dict) else {}
        return {name: known[name] for name in ("tokens", "cost_usd") if _is_amount(known.get(name), name == "tokens")}


def _is_amount(value: Any, whole: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < _MOST and (not whole or value == int(value))


@dataclass
class Watch:
    """How the caller follows an agent at work: its output as it comes, its deadlines, and whether to go on."""

    timeout: float = DEFAULT_TIMEOUT
    silence: float = DEFAULT_SILENCE
    heard: Callable[[bytes], None] = field(default=lambda _data: None)
    wanted: Callable[[], bool] = field(default=lambda: True)

    def broken(self, name: str, ending: Ending) -> AgentError:
        """What to say of an agent that did not come to its own end."""
        if ending is Ending.REQUEST:
            return StopAskedError(f"{name} was stopped on request")
        if ending is Ending.DEADLINE:
            return AgentError(f"{name} did not end within {self.timeout:g} s")
        return AgentError(f"{name} said nothing for {self.silence:g} s")


class Agent(Protocol):
    """The whole protocol. `is_serial` says that it can do only one thing at a time."""

    name: str
    is_serial: bool

    def answer(self, request: AgentRequest, watch: Watch) -> AgentReply:
        """Work, and say what came of it; raises `AgentError`."""

    def close(self) -> None:
        """The run is over."""


def reply(value: Any, *, has_schema: bool = False) -> AgentReply:
    """Whatever a Python agent returned, as a reply; None means that it edited in place.

    Where a schema was given, a mapping that is no reply by its keys is the data itself.
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
