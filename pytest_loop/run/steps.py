"""The steps of a run: each executes one command of the machine and returns the payload of its event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from pytest_loop.agents.answers import PlanAnswer, PrepareAnswer, validate_answer
from pytest_loop.agents.protocol import AgentError, AgentReply, AgentUnavailableError
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import (
    ChecksPrepared,
    CritiqueDone,
    EvaluationDone,
    Failed,
    IterationAdvanced,
    Payload,
    PhaseSwitched,
    PlanCreated,
    ReviewDone,
    StepPayload,
    Stopped,
)
from pytest_loop.core.judging.assessment import group_verdicts
from pytest_loop.core.judging.critique import build_critique
from pytest_loop.core.judging.run_draft import plan_steps
from pytest_loop.core.machine.run_machine import RUN_MACHINE, Command
from pytest_loop.core.model.evaluation import Critique, Issue
from pytest_loop.core.model.run_state import RuleChecks, RunState
from pytest_loop.core.model.vocabulary import BUILTIN, Kind, Reason, Step
from pytest_loop.core.reporting.decision import decide
from pytest_loop.core.reporting.outcome import report_budget
from pytest_loop.rules.checks.registry import InvalidCheckError, build_check
from pytest_loop.run import edits
from pytest_loop.run.acceptance_tests import prepare_tests
from pytest_loop.run.repair_task import find_suspicious_lines
from pytest_loop.run.step_context import StepContext

_SLOW_STEPS = (Step.PRODUCE, Step.PREPARE, Step.EVALUATE, Step.REFINE)


class Steps(Protocol):
    """How the commands of a machine are executed: one implementation for runs, one for experiments."""

    def is_slow(self, command: Command) -> bool:
        """Return whether earlier events must be on disk before this command."""

    def execute(self, command: Command, context: StepContext) -> StepPayload:
        """Carry out a step; raises `AgentError` and `SessionError`."""

    def make_payload(self, command: Command, state: Any) -> Payload:
        """Return the payload of a command that needs no work."""

    def add_decision(self, payload: Payload, state: Any) -> Payload:
        """Return a payload with the decision that follows from it, if any."""


class RunSteps:
    """The steps of an ordinary run."""

    def is_slow(self, command: Command) -> bool:
        return command.step in _SLOW_STEPS

    def execute(self, command: Command, context: StepContext) -> StepPayload:
        return _STEPS[command.kind](context)

    def make_payload(self, command: Command, state: RunState) -> Payload:
        if command.reason is not None:
            return end_run(command, state)
        return PhaseSwitched() if command.kind is Kind.PHASE_SWITCHED else IterationAdvanced()

    def add_decision(self, payload: Payload, state: RunState) -> Payload:
        """Add the decision to an evaluation or review."""
        if not isinstance(payload, (EvaluationDone, ReviewDone)):
            return payload
        after = RUN_MACHINE.apply(state, Event.create(state, payload, state.updated_at))
        return payload.model_copy(update={"decision": decide(after, RUN_MACHINE.find_stop_reason(after))})


def end_run(command: Command, state: RunState) -> Stopped | Failed:
    """Return the payload of the end of a run; a stop on request has the user's words as its reason."""
    reason = command.reason or Reason.USER_STOP
    words = state.signals.stop_request if reason is Reason.USER_STOP else reason.value
    budget = report_budget(state) if reason is Reason.BUDGET_EXCEEDED else {}
    payload_class = Failed if command.kind is Kind.FAILED else Stopped
    return payload_class(reason=words or reason.value, decision=decide(state, reason), **budget)


def _plan(context: StepContext) -> PlanCreated:
    state, run = context.state, context.run
    unmet = state.evaluation.unmet if state.evaluation else frozenset()
    if run.settings.agents.planner == "agent" and run.agents:
        reply = context.ask(Step.PLAN, context.agent, schema=PlanAnswer.model_json_schema())
        return PlanCreated(plan=tuple(validate_answer(reply, PlanAnswer).plan))
    active = state.criteria.get_active_rules(state.phase)
    visible = [rule for rule in active if not rule.held_out and (not rule.guard or rule.id in unmet)]
    return PlanCreated(plan=tuple(plan_steps(visible, unmet)))


def _prepare(context: StepContext) -> ChecksPrepared:
    """Turn sentences into concrete checks; a sentence without checks goes to the judge as it is."""
    rules, run = context.state.unprepared_rules, context.run
    if not rules:
        return ChecksPrepared()
    agent = run.judge or (run.agents[0] if run.agents else None)
    if agent is None:
        raise AgentUnavailableError("there is no agent that turns sentences into checks: name one with --loop-judge")
    reply = context.ask(Step.PREPARE, agent, schema=PrepareAnswer.model_json_schema(), rules=rules)
    checks = parse_checks(reply, rules)
    return ChecksPrepared(checks=tuple(RuleChecks(rule_id=rule, check=checks[rule]) for rule in rules))


def parse_checks(reply: AgentReply, rules: Sequence[str]) -> dict[str, list[Any]]:
    """Return the checks of each rule; raise `AgentError` if one is invalid, or a rule has none."""
    checks: dict[str, list[Any]] = {}
    for answer in validate_answer(reply, PrepareAnswer).checks:
        # Other loop tools write the fields of the check beside the id of its rule.
        check = answer.check if answer.check is not None else dict(answer.model_extra or {})
        try:
            build_check(check)
        except InvalidCheckError as error:
            raise AgentError(f"expected a check, found one that is none: {error}") from None
        checks.setdefault(answer.rule_id, []).append(check)
    missing = [rule for rule in rules if rule not in checks]
    if missing:
        raise AgentError(f"expected a check for every rule, found none for {', '.join(missing)}")
    return checks


def _evaluate(context: StepContext) -> EvaluationDone:
    evaluation = context.make_evaluator().evaluate()
    return EvaluationDone(**dict(evaluation), verdicts=group_verdicts(context.state.criteria, evaluation))


def _criticise(context: StepContext) -> CritiqueDone:
    state, run = context.state, context.run
    if state.evaluation is None:
        return CritiqueDone()
    tokens, review = run.settings.agents.critique_tokens, state.signals.review
    critique = build_critique(state.criteria, state.evaluation, state.progress.attempts, tokens, review)
    critique = _name_sealed_places(critique, context)
    if context.edits_files and _wants_localisation(context):
        with run.live.show_work("looking for suspicious lines"):
            task = context.make_repair().build_task()
            suspects = find_suspicious_lines(task, run.settings.root, run.make_watch(context.should_continue))
        critique = critique.model_copy(update={"suspects": suspects})
    critique = run.hook.pytest_loop_critique(evaluation=state.evaluation, critique=critique) or critique
    return CritiqueDone(**dict(critique))


def _name_sealed_places(critique: Critique, context: StepContext) -> Critique:
    """Add a hint to each issue that is in a sealed file, and print it; tests always fail in one."""
    rules, is_sealed = context.state.criteria.by_id, context.run.project.sealed.matches
    live = context.run.live

    def name_place(issue: Issue) -> Issue:
        path = issue.where.partition(":")[0]
        rule = rules.get(issue.rule_id)
        if not path or rule is None or rule.is_test or not is_sealed(path):
            return issue
        live.write(
            f"{rule.id} complains about {path}, which is sealed: --loop-unseal {path} permits edits in a new run"
        )
        hint = f"{path} is sealed: format it, or sort its imports; if it needs more, answer BLOCKED {rule.id}: WHY."
        return issue.model_copy(update={"fix_instruction": f"{issue.fix_instruction} {hint}".strip()})

    return critique.model_copy(update={"issues": tuple(map(name_place, critique.issues))})


def _wants_localisation(context: StepContext) -> bool:
    """Return whether to look for suspicious lines: the setting asks for it, or the built-in agent came before."""
    earlier = context.run.agents[: context.state.progress.agent_index]
    return context.run.settings.agents.localise or any(agent.name == BUILTIN for agent in earlier)


_STEPS: dict[Kind, Callable[[StepContext], StepPayload]] = {
    Kind.PLAN_CREATED: _plan,
    Kind.ARTIFACT_CREATED: edits.produce,
    Kind.CHECKS_PREPARED: _prepare,
    Kind.TESTS_PREPARED: prepare_tests,
    Kind.EVALUATION_DONE: _evaluate,
    Kind.CRITIQUE_DONE: _criticise,
    Kind.REFINEMENT_DONE: edits.refine,
}
