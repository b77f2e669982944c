"""A Python agent with scripted answers, for your tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_loop.agents.protocol import AgentError, AgentRequest

Answer = Any


class ScriptedAgent:
    """Answer each request of a step with the next answer of its script; the last one repeats.

    An answer is a return value of a Python agent, a function of the request, or an exception to raise.
    Put one into a module and name it: `--loop-agent python:my_agents:writer`. The script starts again with each
    process: for a run that is resumed, answer with functions of `request.iteration`.
    """

    def __init__(self, answers: Mapping[str, Sequence[Answer] | Answer]) -> None:
        self.answers = {
            step: list(value) if isinstance(value, (list, tuple)) else [value] for step, value in answers.items()
        }
        self.requests: list[AgentRequest] = []

    def __call__(self, request: AgentRequest) -> Answer:
        self.requests.append(request)
        script = self.answers.get(request.step)
        if not script:
            raise AgentError(f"the script has no answer for {request.step}")
        count = sum(earlier.step == request.step for earlier in self.requests)
        answer = script[min(count, len(script)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer
