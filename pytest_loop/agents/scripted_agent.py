"""An agent for tests of your own: it says what it was told to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_loop.agents.protocol import AgentError, AgentRequest

Answer = Any


class ScriptedAgent:
    """Answers each step with the next of its answers, and the last one again when they are used up.

    An answer is what a Python agent may return, or a function of the request; an exception is raised.
    Put one into a module and name it: `--loop-agent python:my_agents:writer`. It counts from the start of its process:
    for a run that is interrupted and goes on, answer with functions of `request.iteration`.
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
        asked = sum(one.step == request.step for one in self.requests)
        answer = script[min(asked, len(script)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer(request) if callable(answer) else answer
