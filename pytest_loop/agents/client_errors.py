"""Make the error of a failed client call, with its reason."""

from __future__ import annotations

import re

from pytest_loop.agents.command_agent import describe_exit
from pytest_loop.agents.protocol import AgentError, AgentUnavailableError, RateLimitedError
from pytest_loop.agents.transcripts import ClientFailure
from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes.child import CommandResult

REFUSED_STATUSES = (401, 403)
_RATE_LIMIT_STATUSES = (429, 529)
_MAX_LENGTH = 300
_REASON = re.compile(r"error|unauthori[sz]ed|denied|refused|not configured|no provider|not logged in", re.IGNORECASE)


def make_client_error(name: str, failure: ClientFailure, result: CommandResult, refusal: str) -> AgentError:
    """Return the error of a call; `refusal` is a line of output after which no further call would help."""
    if refusal:
        return AgentUnavailableError(f"{name} was refused: {shorten(refusal, _MAX_LENGTH)}")
    message = shorten(failure.message or find_reason(result), _MAX_LENGTH)
    reason = f": {message}" if message else ""
    if failure.status in REFUSED_STATUSES:
        return AgentUnavailableError(f"{name} was refused by its model's server (status {failure.status}){reason}")
    if failure.status in _RATE_LIMIT_STATUSES:
        return RateLimitedError(f"{name} has to wait (status {failure.status}){reason}", failure.retry_after)
    if result.exit_code:
        return AgentError(f"{name} {describe_exit(result.exit_code)}{reason}")
    return AgentError(f"{name} gave no answer of its model{reason}")


def find_reason(result: CommandResult) -> str:
    """Return the last plain output line that matches an error pattern, or else the last line of standard error."""
    for stream in (result.stderr, result.stdout):
        lines = [line.strip() for line in stream.splitlines()]
        reasons = [line for line in lines if not line.startswith(("{", "[")) and _REASON.search(line)]
        if reasons:
            return reasons[-1]
    return result.stderr.strip().rpartition("\n")[2]
