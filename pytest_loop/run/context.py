"""Settings, files, agents, session and display that the steps of a run share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_loop.agents.protocol import Agent, AgentReply, AgentRequest, Watch
from pytest_loop.core.reporting.lessons import Lesson
from pytest_loop.core.text.wording import name_step
from pytest_loop.repair.engine_process import RunShares
from pytest_loop.run.affected_tests import AffectedTests
from pytest_loop.run.fence import RunFence
from pytest_loop.run.questions import Gates
from pytest_loop.session.result import BaselineResult
from pytest_loop.session.runner import Session
from pytest_loop.settings.settings import Settings
from pytest_loop.show.live_view import LiveView
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.clean_room import CleanRoom
from pytest_loop.workspace.file_tree import FileTree
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass(frozen=True)
class RunContext:
    """The parts of a run that its steps share.

    `project` are the project's files, sealed also if the run writes a document. `ask_user` is None if there is no user
    to ask. `make_candidate` makes another agent like `agents[index]`, for another folder. `workflow_gate`,
    `project_notes` and `lessons` are parts of prompts; `nonce` is a random text that marks in them what is data. `hook`
    calls the hooks of plugins. `clean_room` is None if the run began without a list of left-out
    files. `baseline_result` is None unless this process took the baseline. `run_shares` divides trials
    among the workers of a cluster.
    """

    settings: Settings
    files: RunFiles
    artifact: Artifact
    session: Session
    agents: Sequence[Agent]
    judge: Agent | None
    hook: Any
    live: LiveView
    project: SealedFiles
    checkpoints: Checkpoints | None = None
    gates: Gates = field(default_factory=Gates)
    ask_user: Callable[[str], str] | None = None
    make_candidate: Callable[[int, Path], Agent] | None = None
    redact: Callable[[str], str] = str
    nonce: str = ""
    workflow_gate: str = ""
    project_notes: str = ""
    lessons: tuple[Lesson, ...] = ()
    fence: RunFence = field(default_factory=RunFence)
    clean_room: CleanRoom | None = None
    baseline_result: BaselineResult | None = None
    run_shares: RunShares | None = None
    affected_tests: AffectedTests = field(default_factory=lambda: AffectedTests(FileTree({})))

    def make_watch(self, should_continue: Callable[[], bool], workspace: Path | None = None) -> Watch:
        """Return the limits under which agents work in a folder, or in the project."""
        agents = self.settings.agents
        fence = self.fence.build(workspace or self.settings.root)
        return Watch(agents.agent_timeout, agents.agent_silence, should_continue=should_continue, fence=fence)

    def finish_prompt(self, request: AgentRequest) -> AgentRequest:
        """Return the request with the prompt of a plugin, if one replaces it."""
        return replace(request, prompt=self.hook.pytest_loop_make_prompt(request=request) or request.prompt)

    def ask_agent(self, agent: Agent, request: AgentRequest, should_continue: Callable[[], bool]) -> AgentReply:
        """Return the reply of an agent, and show its output meanwhile."""
        with self.live.show_work(f"{agent.name} · {name_step(request.step)}") as worker:
            watch = self.make_watch(should_continue, request.workspace)
            watch = replace(watch, on_output=worker.write, on_wait=lambda sentence: self.live.write(f"     {sentence}"))
            return agent.answer(request, watch)
