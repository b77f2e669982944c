"""What each step of an iteration does: who is asked for what, and what there is to tell about it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pytest_loop.agents import prompts
from pytest_loop.agents.broker import Broker
from pytest_loop.agents.judge import Judge
from pytest_loop.agents.protocol import (
    Agent,
    AgentError,
    AgentReply,
    AgentRequest,
    AgentUnavailableError,
    StopAskedError,
    Watch,
)
from pytest_loop.agents.structured import PlanAnswer, PrepareAnswer, PreparedCheck, blocked, unwrapped, validated
from pytest_loop.core import critique as critic
from pytest_loop.core import machine
from pytest_loop.core.assessing import assessment
from pytest_loop.core.drafting import is_module, is_test, plan_steps
from pytest_loop.core.order import Order
from pytest_loop.core.run import Assessment, Blocked, Kind, RunState, Sealed, SealFinding, Step, Usage
from pytest_loop.core.sealing import copied, is_void, parsed_machinery, suspicions
from pytest_loop.errors import StateError
from pytest_loop.evaluate.session import Judgement, Session
from pytest_loop.rules.checks.kinds import Invalid, check
from pytest_loop.show.live import Live
from pytest_loop.store import RunFiles
from pytest_loop.workspace.artifact import Artifact
from pytest_loop.workspace.checkpoints import Checkpoints
from pytest_loop.workspace.git import GitError
from pytest_loop.workspace.sealed import SealedFiles, site_digest

MOST_NAMED = 50
Payload = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """What a run needs to know beside its state."""

    root: Path
    nonce: str
    plan_by_agent: bool = False
    prompts: Path | None = None
    critique_tokens: int = 2000
    redact: Callable[[str], str] = str
    timeout: float = 1800.0
    silence: float = 600.0
    confirmed: tuple[str, ...] = ()
    reuse: bool = True
    stop_early: bool = False


@dataclass(frozen=True)
class Tools:
    """What a run works with from its beginning to its end."""

    settings: Settings
    files: RunFiles
    artifact: Artifact
    session: Session
    agents: Sequence[Agent]
    judge: Agent | None
    hook: Any
    live: Live
    project: SealedFiles | None = None
    checkpoints: Checkpoints | None = None


@dataclass
class Work:
    """One step at work on a state; `spent` is what agents have cost so far."""

    tools: Tools
    state: RunState
    wanted: Callable[[], bool]
    spent: Usage = field(default_factory=Usage)

    @property
    def _agent(self) -> Agent:
        """Whose turn it is."""
        return self.tools.agents[min(self.state.rung, len(self.tools.agents) - 1)]

    def carry_out(self, kind: Kind) -> Payload:
        """Do what ends in an event of this kind; raises `AgentError` and `SessionError`."""
        return _STEPS[kind](self)

    def _plan(self) -> Payload:
        state = self.state
        unmet = state.evaluation.unmet if state.evaluation else frozenset()
        if self.tools.settings.plan_by_agent and self.tools.agents:
            reply = self._ask(Step.PLAN, self._agent, schema=PlanAnswer.model_json_schema())
            return {"plan": validated(reply, PlanAnswer).plan}
        shown = [rule for rule in state.criteria.active(state.phase) if not rule.holdout]
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
        with self.tools.artifact.scratch() as copy:
            before = Artifact(copy).text()
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
            text = unwrapped(reply.text)
            if not text.strip():
                raise AgentError("expected a document, found an empty answer")
        said: Payload = {"exit_signal": reply.exit_signal} if reply.exit_signal is not None else {}
        said |= {"blocked": claim.model_dump()} if claim else {}
        kind = Kind.REFINEMENT_DONE if step is Step.REFINE else Kind.ARTIFACT_CREATED
        return self.tools.files.write_answer(kind, {**said, **used(reply.usage)}, text, self.tools.artifact.path)

    def _edited_files(self, project: SealedFiles, step: Step) -> Payload:
        """Let an agent edit the files; what judges is put back before anybody judges.

        How an agent ends is no verdict: where it has edited something, the rules decide.
        """
        before = project.digest
        reply, failure = AgentReply(), None
        try:
            reply = self._ask(step, self._agent)
        except (AgentUnavailableError, StopAskedError):
            raise
        except AgentError as error:
            failure = error
        findings = project.settle()
        if failure and project.digest == before and not findings:
            raise failure
        if failure:
            self.tools.live.write(f"{failure}; what it edited is judged all the same")
        claim = self._claim(reply)
        change = project.change()
        self.tools.files.write_artifact(self.tools.settings.redact(change.text), self.tools.artifact.path)
        said: Payload = {"exit_signal": reply.exit_signal} if reply.exit_signal is not None else {}
        said |= {"blocked": claim.model_dump()} if claim else {}
        said |= {"findings": [one.model_dump(exclude_defaults=True) for one in findings]} if findings else {}
        return {**said, "artifact_hash": project.digest, "changed": list(change.paths[:MOST_NAMED])}

    def _claim(self, reply: AgentReply) -> Blocked | None:
        """An agent's word that a rule cannot be met counts only if it names a rule of this run."""
        found = reply.blocked
        if found is None and reply.text and (said := blocked(reply.text)):
            found = Blocked(rule=said[0], reason=said[1])
        known = found is not None and found.rule in self.state.criteria.by_id
        return found if found and known and found.reason.strip() else None

    def _prepare(self) -> Payload:
        """Concrete checks for sentences; a sentence that nobody makes concrete goes to the judge as it stands."""
        wanted = machine.unprepared(self.state)
        if not wanted:
            return {"checks": []}
        agent = self.tools.judge or (self.tools.agents[0] if self.tools.agents else None)
        if agent is None:
            raise AgentUnavailableError("there is nobody to make sentences concrete: name an agent with --loop-judge")
        reply = self._ask(Step.PREPARE, agent, schema=PrepareAnswer.model_json_schema(), wanted=wanted)
        found: dict[str, list[Any]] = {}
        for one in validated(reply, PrepareAnswer).checks:
            found.setdefault(one.rule_id, []).append(_usable(one.check if one.check is not None else _foreign(one)))
        missing = [name for name in wanted if name not in found]
        if missing:
            raise AgentError(f"expected a check for every rule, found none for {', '.join(missing)}")
        return {"checks": [{"rule_id": name, "check": found[name]} for name in wanted]}

    def _evaluate(self) -> Payload:
        state = self.state
        project = self.tools.project
        if project is None:
            one, _ = self._judged(self.tools.artifact.hash())
        else:
            findings = [*state.tampered, *project.settle()]
            self._remember(project)
            one, judgement = self._judged(project.digest)
            if self._is_greener_by_itself(one):
                one, judgement = self._judged(project.digest)
                if self._is_greener_by_itself(one):
                    detail = "the score rose, although no file has changed"
                    findings.append(SealFinding(kind="unstable", rule="the tests", detail=detail))
            findings += [*project.settle(), *self._suspicions(project, judgement)]
            one = one.model_copy(update={"void": is_void(findings), "findings": tuple(findings)})
        return one.model_dump(mode="json", exclude_defaults=True) | {"score": one.score, "passed": one.passed}

    def _is_greener_by_itself(self, one: Assessment) -> bool:
        before = self.state.evaluation
        if before is None or before.phase is not one.phase or before.void:
            return False
        return before.artifact_sha256 == one.artifact_sha256 and one.score > before.score

    def _judged(self, artifact_hash: str) -> tuple[Assessment, Judgement]:
        """One session, and what it says about every rule; what would be a success is judged whole."""
        found = self._session(artifact_hash, reuse=self.tools.settings.reuse)
        if found[0].passed and found[1].is_reused:
            return self._session(artifact_hash, reuse=False)
        return found

    def _session(self, artifact_hash: str, *, reuse: bool) -> tuple[Assessment, Judgement]:
        state = self.state
        judge = self._seated()
        broker = Broker(judge.answer, judge.dismiss) if judge else None
        try:
            judgement = self.tools.session.evaluate(self._order(broker, reuse))
        finally:
            if judge and broker:
                broker.close()
                self.spent = self.spent.plus(judge.spent)
        modules = [rule for rule in state.criteria.active(state.phase) if is_module(rule)]
        reported = judgement.by_rule() | {rule.key: judgement.of_module(rule.id) for rule in modules}
        missing = judgement.missing()
        return assessment(state.criteria, state.phase, reported, artifact_hash, state.evaluation, missing), judgement

    def _remember(self, project: SealedFiles) -> None:
        """The files as they are judged, to come back to; a repository that takes none is no reason to stop."""
        project.checkpoint(self.state.iteration)
        if self.tools.checkpoints:
            try:
                self.tools.checkpoints.write(self.state.iteration, project.now, f"iteration {self.state.iteration}")
            except GitError as error:
                self.tools.live.write(f"no checkpoint: {error}")

    def _suspicions(self, project: SealedFiles, judgement: Judgement) -> Iterator[SealFinding]:
        """What the files and the session give away, beside edits of what judges."""
        sealed = self.state.sealed or Sealed()
        if judgement.finished is not None and not (judgement.canaries and all(judgement.canaries)):
            yield SealFinding(kind="canary", rule="the canary", detail="a test that must fail did not fail")
        new = sorted(judgement.plugins - set(sealed.plugins))
        if new:
            yield SealFinding(kind="plugin", rule="plugins", detail=f"there are new ones: {', '.join(new[:3])}")
        if site_digest() != sealed.site:
            yield SealFinding(kind="site", rule="the environment", detail="what every interpreter loads first changed")
        sources = project.sources()
        if sources:
            known = frozenset(name for text in project.product() for name in parsed_machinery(text))
            is_linted = not all(is_test(rule) for rule in self.state.criteria.rules)
            yield from suspicions(sources, known, is_linted=is_linted)
            yield from copied(sources, project.judges())

    def _order(self, broker: Broker | None, reuse: bool) -> Order:
        rules = self.state.criteria.by_id
        prepared = (self.state.prepared_checks or {}).get("checks", [])
        return Order(
            phase=self.state.phase,
            artifact="" if self.tools.project else str(self.tools.artifact.path),
            canary=secrets.token_hex(8) if self.tools.project else "",
            prepared={rules[one["rule_id"]].key: one["check"] for one in prepared if one["rule_id"] in rules},
            confirmed=self.tools.settings.confirmed,
            judge=broker.address if broker else "",
            judge_key=broker.key if broker else "",
            reuse=reuse,
            stop_early=self.tools.settings.stop_early,
        )

    def _seated(self) -> Judge | None:
        """Who answers the questions of rules in an evaluation."""
        if self.tools.judge is None:
            return None
        return Judge(
            self.tools.judge,
            self.tools.settings.root,
            self.tools.settings.nonce,
            self._watch,
            self.tools.settings.prompts,
            lambda request: self.tools.hook.pytest_loop_make_prompt(request=request),
            self.state.iteration,
            self.state.phase.value,
        )

    def _criticise(self) -> Payload:
        state = self.state
        if state.evaluation is None:
            return {"issues": []}
        made = critic.critique(state.criteria, state.evaluation, state.attempts, self.tools.settings.critique_tokens)
        made = self.tools.hook.pytest_loop_critique(evaluation=state.evaluation, critique=made) or made
        return made.model_dump(mode="json", exclude_defaults=True)

    def _ask(
        self,
        step: Step,
        agent: Agent,
        *,
        artifact: Path | None = None,
        schema: dict[str, Any] | None = None,
        wanted: Sequence[str] = (),
    ) -> AgentReply:
        state = self.state
        project = self.tools.project
        text = prompts.compose(
            step,
            state,
            self.tools.settings.nonce,
            artifact=(self.tools.artifact.text() or "") if step is Step.REFINE else "",
            artifact_path=str(artifact or ""),
            wanted=wanted,
            folder=self.tools.settings.prompts,
            template="REFINE_FILES" if project and step is Step.REFINE else "",
        )
        issues = state.critique.issues if state.critique else ()
        request = AgentRequest(
            step.value, text, self.tools.settings.root, artifact, state.iteration, state.phase.value, issues, schema
        )
        own = self.tools.hook.pytest_loop_make_prompt(request=request)
        with self.tools.live.work(f"{step.value} by {agent.name}") as worker:
            watch = replace(self._watch(), heard=worker.heard)
            reply = agent.answer(replace(request, prompt=own) if own else request, watch)
        self.spent = self.spent.plus(reply.usage)
        return reply

    def _watch(self) -> Watch:
        return Watch(self.tools.settings.timeout, self.tools.settings.silence, wanted=self.wanted)


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


def _edited(copy: Path) -> str | None:
    """What an agent made of its copy; whatever it put in its place is its own mistake."""
    try:
        return Artifact(copy).text()
    except StateError as error:
        raise AgentError(str(error)) from None


def _usable(raw: Any) -> Any:
    """A check that an agent made, if it can be understood."""
    try:
        check(raw)
    except Invalid as error:
        raise AgentError(f"expected a check, found one that is none: {error}") from None
    return raw


def _foreign(one: PreparedCheck) -> Payload:
    """The form of other loop tools, in which the check stands beside the rule's id."""
    return dict(one.model_extra or {})
