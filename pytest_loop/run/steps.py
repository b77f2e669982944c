"""What each step of an iteration does: who is asked for what, and what there is to tell about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_loop.agents import prompts
from pytest_loop.agents.answers import PlanAnswer, PrepareAnswer, parse_blocked_claim, strip_fence, validate_answer
from pytest_loop.agents.builtin_agent import BUILTIN
from pytest_loop.agents.protocol import (
    Agent,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopRequestedError,
)
from pytest_loop.core.judging import critique as critic
from pytest_loop.core.judging.draft import plan_steps
from pytest_loop.core.machine import run_machine
from pytest_loop.core.model.run_state import Blocked, RunState, Usage
from pytest_loop.core.model.vocabulary import Kind, Step
from pytest_loop.core.reporting.lessons import recalled, rendered
from pytest_loop.errors import StateError
from pytest_loop.run.candidates import Candidate, Trying
from pytest_loop.run.context import Tools
from pytest_loop.run.evaluator import Examination
from pytest_loop.run.prepared_checks import prepared
from pytest_loop.run.repair_case import Mending, suspects
from pytest_loop.workloads.experiment_steps import Trial
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.project_diff import render_document_diff
from pytest_loop.workspace.sealed_files import SealedFiles

MOST_NAMED = 50
MOST_SAID = 4_000
LONGEST_DIFF = 32 * 1024
Payload = dict[str, Any]


@dataclass
class Work:
    """One step at work on a state; `spent` is what agents have cost so far, `asked` the one that was asked last.

    `recalled` names the lessons that it was told.
    """

    tools: Tools
    state: RunState
    wanted: Callable[[], bool]
    spent: Usage = field(default_factory=Usage)
    asked: str = ""
    recalled: tuple[str, ...] = ()

    @property
    def told(self) -> Payload:
        """Who was asked and reminded of what, and what it has cost, as far as that is known."""
        said: Payload = {"agent": self.asked} if self.asked else {}
        return {**used(self.spent), **said, **({"recalled": list(self.recalled)} if self.recalled else {})}

    @property
    def _agent(self) -> Agent:
        """Whose turn it is."""
        return self.tools.agents[min(self.state.rung, len(self.tools.agents) - 1)]

    def carry_out(self, kind: Kind) -> Payload:
        """Do what ends in an event of this kind; raises `AgentError` and `SessionError`."""
        if self.state.notebook is not None:
            return Trial(self.tools, self.state, self.state.notebook, self.wanted, self._spend).carry_out(kind)
        return _STEPS[kind](self)

    def _plan(self) -> Payload:
        state = self.state
        unmet = state.evaluation.unmet if state.evaluation else frozenset()
        if self.tools.settings.plan_by_agent and self.tools.agents:
            reply = self._ask(Step.PLAN, self._agent, schema=PlanAnswer.model_json_schema())
            return {"plan": validate_answer(reply, PlanAnswer).plan}
        shown = [rule for rule in state.criteria.get_active_rules(state.phase) if not rule.holdout]
        return {"plan": list(plan_steps(shown, unmet))}

    def _produce(self) -> Payload:
        return self._written(Step.PRODUCE)

    def _refine(self) -> Payload:
        return {"previous_artifact_hash": self.state.artifact_hash, **self._written(Step.REFINE)}

    def _written(self, step: Step) -> Payload:
        """Ask for the document, and put it in its place before anybody hears of it."""
        if not self.tools.agents:
            raise AgentUnavailableError(
                "there is nobody to ask: name an agent with --loop-agent (--loop-agents lists those that are installed)"
            )
        if self.tools.project:
            return self._edited_files(self.tools.project, step)
        with self.tools.artifact.make_scratch_copy() as copy:
            before = Artifact(copy).read_text()
            reply = self._ask(step, self._agent, artifact=copy)
            after = _edited(copy)
        claim = self._claim(reply)
        if after is not None and after != before:
            text = after
        elif claim or (before and reply.text is None and reply.exit_signal is not None):
            text = before or ""
        elif reply.text is None:
            raise AgentError("expected a document or an edit of it, found neither")
        else:
            text = strip_fence(reply.text)
            if not text.strip():
                raise AgentError("expected a document, found an empty answer")
        said = _words(reply, claim)
        kind = Kind.REFINEMENT_DONE if step is Step.REFINE else Kind.ARTIFACT_CREATED
        path = self.tools.artifact.path
        said |= self._diff(render_document_diff(path.name, before or "", text, LONGEST_DIFF))
        return self.tools.files.write_answer(kind, {**said, **self.told}, text, path)

    def _diff(self, text: str) -> Payload:
        """What a step has changed, for those who look back at the run."""
        return {"diff": self.tools.settings.redact(text)} if text else {}

    def _edited_files(self, project: SealedFiles, step: Step) -> Payload:
        """Let an agent edit the files; what judges is put back before anybody judges.

        How an agent ends is no verdict: where it has edited something, the rules decide.
        """
        before = project.current
        reply, failure = AgentReply(), None
        tried: list[Payload] = []
        try:
            if self._is_tried:
                reply, tried = self._tried(project, step)
            else:
                reply = self._ask(step, self._agent)
        except (AgentUnavailableError, StopRequestedError):
            raise
        except AgentError as error:
            failure = error
        findings = project.enforce_seal()
        if failure and project.digest == before.digest and not findings:
            raise failure
        if failure:
            self.tools.live.write(f"{failure}; what it edited is judged all the same")
        claim = self._claim(reply)
        change = project.compute_diff()
        self.tools.files.write_artifact(self.tools.settings.redact(change.text), self.tools.artifact.path)
        said = _words(reply, claim)
        said |= {"findings": [one.model_dump(exclude_defaults=True) for one in findings]} if findings else {}
        said |= {"candidates": tried} if tried else {}
        said |= {"said": self.tools.settings.redact(reply.report)[:MOST_SAID]} if reply.report else {}
        said |= self._diff(project.render_diff(before, LONGEST_DIFF))
        return {**said, "artifact_hash": project.digest, "changed": list(change.paths[:MOST_NAMED])}

    @property
    def _is_tried(self) -> bool:
        """Whether several are to try; the built-in agent would try the same each time."""
        return self.state.candidates > 1 and self.tools.fresh is not None and self._agent.name != BUILTIN

    def _tried(self, project: SealedFiles, step: Step) -> tuple[AgentReply, list[Payload]]:
        """The reply of the best candidate, and what became of each; all of them are paid for."""
        rung = min(self.state.rung, len(self.tools.agents) - 1)
        request = self._request(step)

        def ask(one: Candidate, is_leaving: Callable[[], bool]) -> AgentReply:
            asked = replace(request, workspace=one.folder, key=f"candidate {one.number}")
            return self.tools.answer(one.agent, asked, lambda: self.wanted() and not is_leaving())

        trying = Trying(
            project,
            self.tools.files.folder,
            self.state.candidates,
            lambda folder: self.tools.fresh(rung, folder),  # type: ignore[misc]
            ask,
            self._examination().quick,
            self.tools.live.write,
        )
        best, every = trying.tried()
        for one in every:
            self._spend(one.agent.name, one.reply.usage)
        return best.reply, [one.told(is_kept=one is best) for one in every]

    def _claim(self, reply: AgentReply) -> Blocked | None:
        """An agent's word that a rule cannot be met counts only if it names a rule of this run."""
        found = reply.blocked
        if found is None and reply.text and (said := parse_blocked_claim(reply.text)):
            found = Blocked(rule=said[0], reason=said[1])
        known = found is not None and found.rule in self.state.criteria.by_id
        return found if found and known and found.reason.strip() else None

    def _prepare(self) -> Payload:
        """Concrete checks for sentences; a sentence that nobody makes concrete goes to the judge as it stands."""
        wanted = run_machine.unprepared(self.state)
        if not wanted:
            return {"checks": []}
        agent = self.tools.judge or (self.tools.agents[0] if self.tools.agents else None)
        if agent is None:
            raise AgentUnavailableError("there is nobody to make sentences concrete: name an agent with --loop-judge")
        reply = self._ask(Step.PREPARE, agent, schema=PrepareAnswer.model_json_schema(), wanted=wanted)
        found = prepared(reply, wanted)
        return {"checks": [{"rule_id": name, "check": found[name]} for name in wanted]}

    def _evaluate(self) -> Payload:
        one = self._examination().whole()
        return one.model_dump(mode="json", exclude_defaults=True) | {"score": one.score, "passed": one.passed}

    def _examination(self) -> Examination:
        return Examination(self.tools, self.state, self.wanted, self._spend)

    def _spend(self, who: str, usage: Usage) -> None:
        self.asked, self.spent = who, self.spent.plus(usage)

    def _criticise(self) -> Payload:
        state = self.state
        if state.evaluation is None:
            return {"issues": []}
        most = self.tools.settings.critique_tokens
        made = critic.build_critique(state.criteria, state.evaluation, state.attempts, most, state.review)
        if self.tools.project and self._is_localised():
            with self.tools.live.work("looking for suspicious lines"):
                found = suspects(
                    self._mending(self.tools.project).case(), self.tools.settings.root, self.tools.watch(self.wanted)
                )
            made = made.model_copy(update={"suspects": found})
        made = self.tools.hook.pytest_loop_critique(evaluation=state.evaluation, critique=made) or made
        return made.model_dump(mode="json", exclude_defaults=True)

    def _is_localised(self) -> bool:
        """Where the person wants it, and where the built-in agent could do no more than that for the next one."""
        before = self.tools.agents[: self.state.rung]
        return self.tools.settings.localise or any(agent.name == BUILTIN for agent in before)

    def _ask(
        self,
        step: Step,
        agent: Agent,
        *,
        artifact: Path | None = None,
        schema: dict[str, Any] | None = None,
        wanted: Sequence[str] = (),
    ) -> AgentReply:
        project = self.tools.project
        request = self._request(step, artifact, schema, wanted)
        if project and step in (Step.PRODUCE, Step.REFINE):
            request = replace(request, repair_task=self._mending(project).case())
        self.asked = agent.name
        reply = self.tools.answer(agent, request, self.wanted)
        self._spend(agent.name, reply.usage)
        return reply

    def _request(
        self,
        step: Step,
        artifact: Path | None = None,
        schema: dict[str, Any] | None = None,
        wanted: Sequence[str] = (),
    ) -> AgentRequest:
        state = self.state
        text = prompts.build_prompt(
            step,
            state,
            self.tools.settings.nonce,
            artifact=(self.tools.artifact.read_text() or "") if step is Step.REFINE else "",
            artifact_path=str(artifact or ""),
            wanted=wanted,
            lessons=self._lessons(step),
            folder=self.tools.settings.prompts,
            gate=self.tools.settings.gate,
            context=self.tools.settings.context,
            template="REFINE_FILES" if self.tools.project and step is Step.REFINE else "",
        )
        issues = state.critique.issues if state.critique else ()
        return AgentRequest(
            step.value, text, self.tools.settings.root, artifact, state.iteration, state.phase.value, issues, schema
        )

    def _lessons(self, step: Step) -> str:
        """What earlier runs teach about what fails now."""
        found = recalled(self.state, self.tools.settings.lessons) if step is Step.REFINE else []
        self.recalled = tuple(one.name for one in found)
        if found:
            self.tools.live.mention(f"remembered: {'; '.join(self.recalled)}")
        return rendered(found)

    def _mending(self, project: SealedFiles) -> Mending:
        return Mending(project, self.state, self._examination().quick)


_STEPS: dict[Kind, Callable[[Work], Payload]] = {
    Kind.PLAN_CREATED: Work._plan,
    Kind.ARTIFACT_CREATED: Work._produce,
    Kind.CHECKS_PREPARED: Work._prepare,
    Kind.EVALUATION_DONE: Work._evaluate,
    Kind.CRITIQUE_DONE: Work._criticise,
    Kind.REFINEMENT_DONE: Work._refine,
}


def used(usage: Usage) -> Payload:
    """What is known of a cost; nothing where nothing is."""
    return {"usage": usage.model_dump(exclude_none=True)} if usage != Usage() else {}


def _words(reply: AgentReply, claim: Blocked | None) -> Payload:
    """What an agent says about its work beside the work itself."""
    said: Payload = {"exit_signal": reply.exit_signal} if reply.exit_signal is not None else {}
    return said | ({"blocked": claim.model_dump()} if claim else {})


def _edited(copy: Path) -> str | None:
    """What an agent made of its copy; whatever it put in its place is its own mistake."""
    try:
        return Artifact(copy).read_text()
    except StateError as error:
        raise AgentError(str(error)) from None
