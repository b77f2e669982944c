"""Settings, files, agents, session and display that the steps of a run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_loop.agents.protocol import Agent, AgentReply, AgentRequest, Watch
from pytest_loop.core.reporting.lessons import Lesson
from pytest_loop.run.questions import Gates
from pytest_loop.session.runner import Session
from pytest_loop.settings.settings import Settings
from pytest_loop.show.live_view import LiveView
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass(frozen=True)
class RunContext:
    """Everything that stays the same from the start of a run to its end.

    `ask` is None if there is no user to ask. `make_candidate` makes another agent like `agents[index]`, for another
    folder. `workflow_gate`, `project_notes` and `lessons` are parts of prompts.
    """

    settings: Settings
    files: RunFiles
    artifact: Artifact
    session: Session
    agents: Sequence[Agent]
    judge: Agent | None
    hook: Any
    live: LiveView
    project: SealedFiles | None = None
    checkpoints: Checkpoints | None = None
    gates: Gates = field(default_factory=Gates)
    ask: Callable[[str], str] | None = None
    make_candidate: Callable[[int, Path], Agent] | None = None
    redact: Callable[[str], str] = str
    nonce: str = ""
    workflow_gate: str = ""
    project_notes: str = ""
    lessons: tuple[Lesson, ...] = ()

    def make_watch(self, should_continue: Callable[[], bool]) -> Watch:
        """Return the limits under which agents work."""
        agents = self.settings.agents
        return Watch(agents.agent_timeout, agents.agent_silence, should_continue=should_continue)

    def answer(self, agent: Agent, request: AgentRequest, should_continue: Callable[[], bool]) -> AgentReply:
        """Send a request to an agent and show its output; a plugin may replace the prompt."""
        prompt = self.hook.pytest_loop_make_prompt(request=request)
        with self.live.show_work(f"{request.step} by {agent.name}") as worker:
            watch = replace(self.make_watch(should_continue), on_output=worker.write)
            return agent.answer(replace(request, prompt=prompt) if prompt else request, watch)
