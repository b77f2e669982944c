"""What a run works with from its beginning to its end, whatever its state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_loop.agents.protocol import Agent, AgentReply, AgentRequest, Watch
from pytest_loop.core.reporting.lessons import Lesson
from pytest_loop.run.questions import Gates
from pytest_loop.session.runner import Session
from pytest_loop.show.live import Live
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass(frozen=True)
class RunSettings:
    """What a run needs to know beside its state."""

    root: Path
    nonce: str
    plan_by_agent: bool = False
    prompts: Path | None = None
    critique_tokens: int = 2000
    localise: bool = False
    redact: Callable[[str], str] = str
    timeout: float = 1800.0
    silence: float = 600.0
    confirmed: tuple[str, ...] = ()
    reuse: bool = True
    stop_early: bool = False
    gate: str = ""
    context: str = ""
    lessons: tuple[Lesson, ...] = ()
    case_timeout: float = 600.0


@dataclass(frozen=True)
class Tools:
    """What a run works with from its beginning to its end.

    `ask` is there where a person can be asked; `fresh` makes another agent of a rung for another folder.
    """

    settings: RunSettings
    files: RunFiles
    artifact: Artifact
    session: Session
    agents: Sequence[Agent]
    judge: Agent | None
    hook: Any
    live: Live
    project: SealedFiles | None = None
    checkpoints: Checkpoints | None = None
    gates: Gates = field(default_factory=Gates)
    ask: Callable[[str], str] | None = None
    fresh: Callable[[int, Path], Agent] | None = None

    def watch(self, wanted: Callable[[], bool]) -> Watch:
        """How agents are followed at work."""
        return Watch(self.settings.timeout, self.settings.silence, should_continue=wanted)

    def answer(self, agent: Agent, request: AgentRequest, wanted: Callable[[], bool]) -> AgentReply:
        """What an agent says to a request, whose prompt a plugin may replace; it is heard while it works."""
        own = self.hook.pytest_loop_make_prompt(request=request)
        with self.live.work(f"{request.step} by {agent.name}") as worker:
            watch = replace(self.watch(wanted), on_output=worker.heard)
            return agent.answer(replace(request, prompt=own) if own else request, watch)
