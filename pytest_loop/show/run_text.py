"""A run as text: the draft, one block per iteration, and the end."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import (
    CritiqueDone,
    EditPayload,
    EvaluationDone,
    PhaseError,
    PhaseSwitched,
)
from pytest_loop.core.judging.critique import render_critique
from pytest_loop.core.machine.breakers import count_repetitions
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.rules import Proof
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import SHORT_HASH_LENGTH, RunState
from pytest_loop.core.model.vocabulary import Reason, Target, parse_reason
from pytest_loop.core.reporting.closing_verdict import count_evidence, decide_closing, list_judged_rules
from pytest_loop.core.reporting.outcome import (
    ArtifactStatus,
    ask_question,
    compute_distance,
    describe_pattern,
    get_artifact_status,
    render_attempt,
)
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import limit_lines, list_names
from pytest_loop.core.workload.experiment_state import ExperimentState
from pytest_loop.show import experiment_text

SHOWN_RULES = 12
SHOWN_NAMES = 8
SHOWN_EVIDENCE = 3
SHOWN_FINDINGS = 5


def render_draft(state: RunState, origins: dict[str, str]) -> Iterator[str]:
    """Render the draft of a run on one screen."""
    levels = {phase.value: float(level.threshold) for phase, level in state.criteria.phase.items()}
    yield f"task        {shorten(state.task.prompt, 100)}"
    target = state.setup.artifact if state.setup.target is Target.ARTIFACT else "the files of the project"
    yield f"target      {target}"
    judge = f", judge {state.setup.judge}" if state.setup.judge else ""
    yield f"agent       {' then '.join(state.setup.agents) or 'none'}{judge}"
    yield f"thresholds  A {levels['A']:g}, B {levels['B']:g}"
    yield f"limits      {state.max_iterations} iterations, {_format_limits(state)}"
    yield f"rules       {len(state.criteria.rules)}"
    if state.setup.seal and state.setup.seal.unstable:
        yield f"unstable    {list_names(state.setup.seal.unstable, 3)}: not the same twice, and do not block"
    if state.setup.seal and state.setup.seal.unjudged:
        yield f"not judged  {list_names(state.setup.seal.unjudged, 3)}: skipped or expected to fail already"
    rules = [_format_rule(rule, origins.get(rule.key, "")) for rule in state.criteria.rules[: SHOWN_RULES + 1]]
    yield from rules[:SHOWN_RULES]
    if len(rules) > SHOWN_RULES:
        yield f"  ... and {len(state.criteria.rules) - SHOWN_RULES} more"


def _format_limits(state: RunState) -> str:
    words = {"usd": "{:g} USD", "tokens": "{:,} tokens", "seconds": "{:g} s of completed steps"}
    limits = [words[name].format(limit) for name, (_, limit) in get_budgets(state).items() if limit is not None]
    return ", ".join(limits) or "no budget"


def _format_rule(rule: RunRule, origin: str) -> str:
    kinds = ", ".join(filter(None, (origin, "judged" if isinstance(rule.check, str) else "")))
    weight = f"{rule.phase.value} {rule.severity.value:<4} {float(rule.weight):>4g}"
    description = f"  {shorten(rule.description, 60)}" if rule.description != rule.id else ""
    return f"  {weight}  {shorten(rule.id, 60)}{description}" + (f"  [{kinds}]" if kinds else "")


def render_event(event: Event, state: RunState) -> Iterator[str]:
    """Render the lines of an event; most events have none."""
    if isinstance(state, ExperimentState):
        yield from experiment_text.render_experiment_event(event, state)
        return
    match event.payload:
        case EvaluationDone():
            yield from _render_evaluation(state)
        case PhaseSwitched():
            yield "phase A passes, phase B begins"
        case PhaseError(step=step, reason=reason):
            yield f"{step} went wrong: {shorten(reason, 300)}"
        case EditPayload(report=report):
            yield from (f"  {shorten(line, 300)}" for line in report.splitlines())
        case CritiqueDone() if state.critique:
            yield from (f"  {line}" for line in render_critique(state.critique).splitlines())


def _render_evaluation(state: RunState) -> Iterator[str]:
    evaluation = state.evaluation
    if evaluation is None:
        return
    verdict = "VOID" if evaluation.void else "PASS" if evaluation.passed else "FAIL"
    where = f"Iteration {state.iteration}/{state.max_iterations} | Phase {state.phase.value}"
    yield f"{where} | Score {evaluation.score:.3g} | {verdict}"
    rules = f"{evaluation.passing} of {evaluation.total} rules pass"
    yield f"  hash {evaluation.artifact_hash or '-'}, {rules}, {state.setup.artifact}"
    lists = {
        "failed": [complaint.id for complaint in evaluation.failed],
        "warnings": [complaint.id for complaint in evaluation.warnings],
        "passed before and fail now": evaluation.regressions,
        "not confirmed": evaluation.assumptions,
    }
    yield from (f"  {title}: {list_names(names, SHOWN_NAMES)}" for title, names in lists.items() if names)
    if state.progress.agent_since == state.iteration + 1 and not evaluation.is_reached:
        agent = state.setup.agents[state.progress.agent_index]
        yield f"  {agent} takes over: the agent before has stopped making progress"
    findings = [
        f"  {sign.kind}: {shorten(sign.path or sign.rule)}: {shorten(sign.detail)}" for sign in evaluation.findings
    ]
    yield from limit_lines(findings, SHOWN_FINDINGS, "  ... and {} more findings")


def render_end(state: RunState) -> Iterator[str]:
    """Render the final report; a stop without success ends in an escalation."""
    status = get_artifact_status(state)
    evaluation = state.evaluation
    where = f"iteration {state.iteration} of {state.max_iterations}, phase {state.phase.value}"
    yield f"{state.status.value}: {state.stop.reason} after {where}"
    if status is ArtifactStatus.EVALUATED and evaluation:
        digest = state.progress.artifact_hash[:SHORT_HASH_LENGTH]
        yield f"final_score: {evaluation.score:.3g}, artifact: {state.setup.artifact} ({digest})"
    else:
        last = f", last_evaluated_score: {evaluation.score:.3g}" if evaluation else ""
        yield f"final_score: unavailable (the artifact is {status.value}){last}"
    if isinstance(state, ExperimentState):
        yield from experiment_text.render_experiment_end(state.experiment)
    elif evaluation and evaluation.held_out is not None:
        scores = f"{evaluation.held_out:.3g}, all of them {evaluation.score:.3g}"
        yield f"held out: the rules that no agent has seen score {scores}"
    yield f"used: {_format_usage(state)}"
    yield from _render_closing(state)
    if not state.stop.passed:
        yield from _render_escalation(state)


def _format_usage(state: RunState) -> str:
    usage = state.progress.usage
    tokens = "unknown" if usage.tokens is None else f"{usage.tokens:,}"
    cost = "unknown" if usage.cost_usd is None else f"{usage.cost_usd:.4g} USD"
    return f"tokens {tokens}, cost {cost}, {state.completed_phase_seconds:.1f} s"


def _render_escalation(state: RunState) -> Iterator[str]:
    distance = compute_distance(state)
    if distance:
        yield (
            f"distance: score {distance['score']:.3g} of {distance['threshold']:g} (gap {distance['gap']:.3g}), "
            f"{distance['rules_passed']} of {distance['rules_total']} rules pass, "
            f"blocking: {list_names(distance['blocking'], SHOWN_NAMES) or 'none'}"
        )
    for attempt in state.progress.attempts:
        yield f"  {render_attempt(attempt)}"
    yield f"pattern: {describe_pattern(state)}"
    if state.last_error:
        yield f"last error: {shorten(state.last_error, 300)}"
    yield f"question: {ask_question(state, parse_reason(state.stop.reason))}"
    yield f"go on: {format_resume_command(state)}"


def format_resume_command(state: RunState) -> str:
    """Return the command that continues the run, or that starts a new one."""
    resume = f"pytest --loop-resume={state.task_alias}"
    if not state.is_over:
        return resume
    names = state.evaluation.assumptions if state.evaluation else ()
    flags = find_row(state.stop.reason).resume_with.format(
        more_iterations=state.max_iterations + 4, confirmations=" ".join(f"--loop-confirm {name}" for name in names)
    )
    if flags or state.stop.reason == Reason.UNCONFIRMED.value:
        return f"{resume} {flags}".rstrip()
    manifest = state.experiment.manifest if isinstance(state, ExperimentState) else ""
    new = f"--loop-manifest {manifest}" if manifest else "--loop-task ..."
    return f"pytest {new} (a new run; this one is {state.status.value})"


def describe_next_step(state: RunState) -> str:
    """Describe the next step in a few words."""
    if state.is_over:
        return "nothing" if state.stop.passed else format_resume_command(state)
    first = select_machine(state).next_commands(state)[0]
    return f"the end: {first.reason.value}" if first.reason else f"{first.kind.value} of iteration {state.iteration}"


def _render_closing(state: RunState) -> Iterator[str]:
    """Render the verdict, and the passed rules by their kind of proof."""
    word, because = decide_closing(state)
    yield f"verdict: {word.value}, because {because}"
    for kind, (passed, total) in count_evidence(state).items():
        yield f"  {kind.value:<12} {passed} of {total} pass: {_list_rules(state, kind)}"


def _list_rules(state: RunState, kind: Proof) -> str:
    names = [shorten(rule.id, 60) for rule, proof in list_judged_rules(state) if proof is kind]
    return list_names(names, SHOWN_EVIDENCE)


def render_breakers(state: RunState) -> str:
    """Render how often each breaker has counted, and its limit."""
    counts = [f"{name} {times} of {limit}" for name, (times, limit) in count_repetitions(state).items() if limit]
    return f"breakers: {', '.join(counts)}" if counts else "breakers: all are off"
