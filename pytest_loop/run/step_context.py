"""The context of one step: the state it began from, its agents, and a record of what they did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_loop.agents import prompts
from pytest_loop.agents.protocol import Agent, AgentError, AgentReply, AgentRequest
from pytest_loop.core.model.run_state import RunState, Usage
from pytest_loop.core.model.vocabulary import Step, Target
from pytest_loop.core.reporting.lessons import choose_lessons, render_lessons
from pytest_loop.core.text.lengths import clip_text
from pytest_loop.run.context import RunContext
from pytest_loop.run.evaluator import Evaluator
from pytest_loop.run.repair_task import RepairAttempts
from pytest_loop.workspace.file_tree import FileTree, compare_trees
from pytest_loop.workspace.sealed_files import SealedFiles

MAX_PROMPT_LENGTH = 12_000
MAX_ANSWER_LENGTH = 4_000


@dataclass
class StepRecord:
    """The agents' part of a step's event: the last agent, its prompt and answer, and the usage of all agents.

    `recalled` are the names of lessons in the prompt, `put_back` the files that an agent edited in a step that only
    reads; these edits were undone.
    """

    agent: str = ""
    usage: Usage = field(default_factory=Usage)
    recalled: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""

    def add_usage(self, agent: str, usage: Usage) -> None:
        self.agent, self.usage = agent, self.usage.plus(usage)

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a step's payload."""
        return dict(vars(self))


@dataclass(frozen=True)
class StepContext:
    """One step of a run; it stops when `should_continue` returns False."""

    run: RunContext
    state: RunState
    should_continue: Callable[[], bool]
    record: StepRecord

    @property
    def agent_index(self) -> int:
        return min(self.state.progress.agent_index, len(self.run.agents) - 1)

    @property
    def agent(self) -> Agent:
        """The agent whose turn it is."""
        return self.run.agents[self.agent_index]

    @property
    def edits_files(self) -> bool:
        """Whether agents edit the files of the project, not a document."""
        return self.state.setup.target is Target.WORKSPACE

    def make_evaluator(self, manifest: str = "") -> Evaluator:
        return Evaluator(self.run, self.state, self.should_continue, self.record.add_usage, manifest)

    def make_repair(self) -> RepairAttempts:
        return RepairAttempts(self.run.project, self.state, self.make_evaluator().evaluate_rules, self.run.run_shares)

    def ask(
        self,
        step: Step,
        agent: Agent,
        *,
        artifact: Path | None = None,
        schema: dict[str, Any] | None = None,
        rules: Sequence[str] = (),
    ) -> AgentReply:
        """Ask an agent for a step, and count what that costs, also if it fails."""
        request = self.run.finish_prompt(self.build_request(step, artifact, schema, rules))
        self.record_prompt(request)
        does_work = step in (Step.PRODUCE, Step.REFINE)
        if self.edits_files and does_work:
            request = replace(request, repair_task=self.make_repair().build_task())
        self.record.agent = agent.name
        try:
            with nullcontext() if does_work or self._writes_tests(step) else self._undo_edits(step):
                reply = self.run.ask_agent(agent, request, self.should_continue)
        except AgentError as error:
            self.record.add_usage(agent.name, error.usage)
            raise
        self.record.add_usage(agent.name, reply.usage)
        if self.edits_files or schema is not None:  # else the answer is the document, which is stored already
            self.record.answer = clip_text(self.run.redact(reply.text or ""), MAX_ANSWER_LENGTH)
        return reply

    def record_prompt(self, request: AgentRequest) -> None:
        """Keep the prompt for the report."""
        self.record.prompt = clip_text(self.run.redact(request.prompt), MAX_PROMPT_LENGTH)

    @contextmanager
    def _undo_edits(self, step: Step) -> Iterator[None]:
        """Undo and print edits of a read-only agent; do nothing while PRODUCE runs, which edits the same files."""
        project = self.run.project
        if Step.PRODUCE in self.state.progress.awaited:
            yield
            return
        project.accept_current()
        before = project.save_current()
        try:
            yield
        finally:
            project.accept_current()
            before = _replace_outputs(before, project)
            self.record.put_back = compare_trees(before, project.current).paths
            if self.record.put_back:
                project.restore_tree(before)
                self.run.live.write(f"{step.value} may edit nothing: put back {', '.join(self.record.put_back)}")

    def build_request(
        self,
        step: Step,
        artifact: Path | None = None,
        schema: dict[str, Any] | None = None,
        rules: Sequence[str] = (),
    ) -> AgentRequest:
        """Return the request of a step about these rules (none: all), with a schema if the answer has to be data."""
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
            fence=run.fence.sealing_tool,
            template=self._choose_template(step),
        )
        issues = state.critique.issues if state.critique else ()
        return AgentRequest(
            step.value, prompt, run.settings.root, artifact, state.iteration, state.phase.value, issues, schema
        )

    def _writes_tests(self, step: Step) -> bool:
        return step is Step.PREPARE and self.state.setup.work_seal is not None

    def _choose_template(self, step: Step) -> str:
        """Return the template of a step that edits files; empty for the one that is named after the step."""
        if self._writes_tests(step):
            return "PREPARE_TESTS"
        return "REFINE_FILES" if self.edits_files and step is Step.REFINE else ""

    def _recall_lessons(self) -> str:
        """Return lessons of earlier runs about what fails now."""
        lessons = choose_lessons(self.state, self.run.lessons)
        self.record.recalled = tuple(lesson.name for lesson in lessons)
        if lessons:
            self.run.live.write(f"     remembered: {'; '.join(self.record.recalled)}", 0)
        return render_lessons(lessons)


def _replace_outputs(before: FileTree, project: SealedFiles) -> FileTree:
    """Return earlier files with the current outputs, such as the file of `--loop-record`, which grows meanwhile."""
    files = {path: entry for path, entry in before.entries.items() if path not in project.session_outputs}
    outputs = {path: entry for path, entry in project.current.entries.items() if path in project.session_outputs}
    return replace(before, entries={**files, **outputs})
