"""The context of one step: the state it began from, its agents, and their costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_loop.agents import prompts
from pytest_loop.agents.protocol import Agent, AgentReply, AgentRequest
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.vocabulary import Step
from pytest_loop.core.reporting.lessons import choose_lessons, render_lessons
from pytest_loop.run.context import RunContext
from pytest_loop.run.evaluator import Evaluator
from pytest_loop.run.repair_task import RepairAttempts
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass
class StepCosts:
    """The last agent that a step asked, the usage of all of them, and the lessons that were given."""

    agent: str = ""
    usage: Usage = field(default_factory=Usage)
    recalled: tuple[str, ...] = ()

    def add(self, agent: str, usage: Usage) -> None:
        self.agent, self.usage = agent, self.usage.plus(usage)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a step's payload."""
        return {"agent": self.agent, "usage": self.usage, "recalled": self.recalled}


@dataclass(frozen=True)
class StepContext:
    """One step of a run; it stops when `should_continue` returns False."""

    run: RunContext
    state: RunState
    should_continue: Callable[[], bool]
    costs: StepCosts

    @property
    def agent_index(self) -> int:
        return min(self.state.progress.agent_index, len(self.run.agents) - 1)

    @property
    def agent(self) -> Agent:
        """The agent whose turn it is."""
        return self.run.agents[self.agent_index]

    def make_evaluator(self, manifest: str = "") -> Evaluator:
        return Evaluator(self.run, self.state, self.should_continue, self.costs.add, manifest)

    def make_repair(self, project: SealedFiles) -> RepairAttempts:
        return RepairAttempts(project, self.state, self.make_evaluator().evaluate_rules)

    def ask(
        self,
        step: Step,
        agent: Agent,
        *,
        artifact: Path | None = None,
        schema: dict[str, Any] | None = None,
        rules: Sequence[str] = (),
    ) -> AgentReply:
        """Ask an agent for a step, and count what that costs."""
        request = self.build_request(step, artifact, schema, rules)
        project = self.run.project
        if project and step in (Step.PRODUCE, Step.REFINE):
            request = replace(request, repair_task=self.make_repair(project).build_task())
        self.costs.agent = agent.name
        reply = self.run.answer(agent, request, self.should_continue)
        self.costs.add(agent.name, reply.usage)
        return reply

    def build_request(
        self,
        step: Step,
        artifact: Path | None = None,
        schema: dict[str, Any] | None = None,
        rules: Sequence[str] = (),
    ) -> AgentRequest:
        """Return the request of a step; `rules` are those that it is about."""
        state, run = self.state, self.run
        prompt = prompts.build_prompt(
            step,
            state,
            run.nonce,
            artifact=(run.artifact.read_text() or "") if step is Step.REFINE else "",
            artifact_path=str(artifact or ""),
            rule_ids=rules,
            lessons=self._recall_lessons() if step is Step.REFINE else "",
            folder=run.settings.prompts,
            gate=run.workflow_gate,
            context=run.project_notes,
            template="REFINE_FILES" if run.project and step is Step.REFINE else "",
        )
        issues = state.critique.issues if state.critique else ()
        return AgentRequest(
            step.value, prompt, run.settings.root, artifact, state.iteration, state.phase.value, issues, schema
        )

    def _recall_lessons(self) -> str:
        """Return lessons of earlier runs about what fails now."""
        lessons = choose_lessons(self.state, self.run.lessons)
        self.costs.recalled = tuple(lesson.name for lesson in lessons)
        if lessons:
            self.run.live.mention(f"remembered: {'; '.join(self.costs.recalled)}")
        return render_lessons(lessons)
