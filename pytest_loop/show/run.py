"""A run in words: the draft, one block an iteration, the end, and the tables of the commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.experiment_payloads import MeasurementDone, RegressionDetected
from pytest_loop.core.events.run_payloads import (
    CritiqueDone,
    EditPayload,
    EvaluationDone,
    Payload,
    PhaseError,
    PhaseSwitched,
)
from pytest_loop.core.judging.critique import render_critique
from pytest_loop.core.machine.budgets import get_budgets
from pytest_loop.core.machine.experiment_machine import select_machine
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_state import HASH_SHOWN, RunState
from pytest_loop.core.model.vocabulary import Reason, Target, parse_reason
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
from pytest_loop.show import workload
from pytest_loop.show.closing import closing_lines

SHOWN_RULES = 12
SHOWN_NAMES = 8
SHOWN_FINDINGS = 5
_TELLING_FIELDS = ("case", "score", "passed", "reason", "artifact_hash", "exit_signal", "truth", "action", "theory")


def draft_lines(state: RunState, origins: dict[str, str]) -> Iterator[str]:
    """What is going to happen, on one screen."""
    levels = {phase.value: float(level.threshold) for phase, level in state.criteria.phase.items()}
    yield f"task        {shorten(state.task.prompt, 100)}"
    target = state.setup.artifact if state.setup.target is Target.ARTIFACT else "the files of the project"
    yield f"target      {target}"
    yield f"agent       {' then '.join(state.setup.agents) or 'none'}" + (
        f", judge {state.setup.judge}" if state.setup.judge else ""
    )
    yield f"thresholds  A {levels['A']:g}, B {levels['B']:g}"
    yield f"limits      {state.max_iterations} iterations, {_limits(state)}"
    yield f"rules       {len(state.criteria.rules)}"
    if state.setup.seal and state.setup.seal.unstable:
        yield f"unstable    {list_names(state.setup.seal.unstable, 3)}: not the same twice, and do not block"
    if state.setup.seal and state.setup.seal.unjudged:
        yield f"not judged  {list_names(state.setup.seal.unjudged, 3)}: skipped or expected to fail already"
    yield from _rule_lines(state.criteria, origins)


def _limits(state: RunState) -> str:
    words = {"usd": "{:g} USD", "tokens": "{:,} tokens", "seconds": "{:g} s of completed steps"}
    given = [words[name].format(limit) for name, (_, limit) in get_budgets(state).items() if limit is not None]
    return ", ".join(given) or "no budget"


def _rule_lines(criteria: RunCriteria, origins: dict[str, str]) -> Iterator[str]:
    for rule in criteria.rules[:SHOWN_RULES]:
        kind = ", ".join(filter(None, (origins.get(rule.key), "judged" if isinstance(rule.check, str) else "")))
        weight = f"{rule.phase.value} {rule.severity.value:<4} {float(rule.weight):>4g}"
        said = f"  {shorten(rule.description, 60)}" if rule.description != rule.id else ""
        yield f"  {weight}  {shorten(rule.id, 60)}{said}" + (f"  [{kind}]" if kind else "")
    if len(criteria.rules) > SHOWN_RULES:
        yield f"  ... and {len(criteria.rules) - SHOWN_RULES} more"


def event_lines(event: Event, state: RunState) -> Iterator[str]:
    """Yield the lines about an event; most events have none."""
    if isinstance(state, ExperimentState):
        yield from workload.event_lines(event, state)
        return
    match event.payload:
        case EvaluationDone():
            yield from _iteration_lines(state)
        case PhaseSwitched():
            yield "phase A passes, phase B begins"
        case PhaseError(step=step, reason=reason):
            yield f"{step} went wrong: {shorten(reason, 300)}"
        case EditPayload(report=report):
            yield from (f"  {shorten(line, 300)}" for line in report.splitlines())
        case CritiqueDone() if state.critique:
            yield from (f"  {line}" for line in render_critique(state.critique).splitlines())


def _iteration_lines(state: RunState) -> Iterator[str]:
    one = state.evaluation
    if one is None:
        return
    verdict = "VOID" if one.void else "PASS" if one.passed else "FAIL"
    where = f"Iteration {state.iteration}/{state.max_iterations} | Phase {state.phase.value}"
    yield f"{where} | Score {one.score:.3g} | {verdict}"
    yield f"  hash {one.artifact_hash or '-'}, {one.passing} of {one.total} rules pass, {state.setup.artifact}"
    for word, found in (("failed", one.failed), ("warnings", one.warnings)):
        if found:
            yield f"  {word}: {list_names([each.id for each in found], SHOWN_NAMES)}"
    if one.regressions:
        yield f"  passed before and fail now: {list_names(one.regressions, SHOWN_NAMES)}"
    if one.assumptions:
        yield f"  not confirmed: {list_names(one.assumptions, SHOWN_NAMES)}"
    if state.progress.agent_since == state.iteration + 1 and not one.is_reached:
        agent = state.setup.agents[state.progress.agent_index]
        yield f"  {agent} takes over: the agent before has stopped making progress"
    findings = [f"  {sign.kind}: {shorten(sign.path or sign.rule)}: {shorten(sign.detail)}" for sign in one.findings]
    yield from limit_lines(findings, SHOWN_FINDINGS, "  ... and {} more findings")


def end_lines(state: RunState) -> Iterator[str]:
    """The final report; a stop that is not a success ends in an escalation."""
    status = get_artifact_status(state)
    one = state.evaluation
    where = f"iteration {state.iteration} of {state.max_iterations}, phase {state.phase.value}"
    yield f"{state.status.value}: {state.stop.reason} after {where}"
    if status is ArtifactStatus.EVALUATED and one:
        digest = state.progress.artifact_hash[:HASH_SHOWN]
        yield f"final_score: {one.score:.3g}, artifact: {state.setup.artifact} ({digest})"
    else:
        last = f", last_evaluated_score: {one.score:.3g}" if one else ""
        yield f"final_score: unavailable (the artifact is {status.value}){last}"
    if isinstance(state, ExperimentState):
        yield from workload.end_lines(state.experiment)
    elif one and one.held_out is not None:
        yield f"held out: the rules that no agent has seen score {one.held_out:.3g}, all of them {one.score:.3g}"
    yield f"used: {_used(state)}"
    yield from closing_lines(state)
    if not state.stop.passed:
        yield from _escalation(state)


def _used(state: RunState) -> str:
    tokens = "unknown" if state.progress.usage.tokens is None else f"{state.progress.usage.tokens:,}"
    cost = "unknown" if state.progress.usage.cost_usd is None else f"{state.progress.usage.cost_usd:.4g} USD"
    return f"tokens {tokens}, cost {cost}, {state.completed_phase_seconds:.1f} s"


def _escalation(state: RunState) -> Iterator[str]:
    far = compute_distance(state)
    if far:
        yield (
            f"distance: score {far['score']:.3g} of {far['threshold']:g} (gap {far['gap']:.3g}), "
            f"{far['rules_passed']} of {far['rules_total']} rules pass, "
            f"blocking: {list_names(far['blocking'], SHOWN_NAMES) or 'none'}"
        )
    for attempt in state.progress.attempts:
        yield f"  {render_attempt(attempt)}"
    yield f"pattern: {describe_pattern(state)}"
    if state.last_error:
        yield f"last error: {shorten(state.last_error, 300)}"
    yield f"question: {ask_question(state, parse_reason(state.stop.reason))}"
    yield f"go on: {go_on(state)}"


def go_on(state: RunState) -> str:
    """The command that goes on from here."""
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


def following(state: RunState) -> str:
    """What comes next, in a few words."""
    if state.is_over:
        return "nothing" if state.stop.passed else go_on(state)
    first = select_machine(state).next_commands(state)[0]
    return f"the end: {first.reason.value}" if first.reason else f"{first.kind.value} of iteration {state.iteration}"


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns as wide as they need to be."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def status_rows(states: Iterable[tuple[RunState, str]], *, whole: bool) -> list[list[str]]:
    """One row for each run; `whole` adds what only `status` shows."""
    head = ["alias", "status", "iteration", *(["phase", "current_step"] if whole else []), "last_score", "updated_at"]
    rows = [[*head, "seconds"] if whole else head]
    for state, shown in states:
        row = [state.task_alias, shown, str(state.iteration)]
        row += [state.phase.value, state.current_step.value] if whole else []
        row += [f"{state.last_score:.3g}", state.updated_at]
        limit = state.max_completed_phase_seconds
        row += [f"{state.completed_phase_seconds:.0f}/{limit or 'none'}"] if whole else []
        rows.append(row)
    return rows


def history_lines(events: Iterable[Event]) -> Iterator[str]:
    """One line for each event."""
    for event in events:
        summary = _summarise_payload(event.payload)
        yield f"{event.ts}  {event.iteration:>3} {event.phase.value} {event.event:<18}  {summary}"


def _summarise_payload(payload: Payload) -> str:
    """Return the most telling fields of a payload, also of those of other tools."""
    parts = [payload.metrics] if isinstance(payload, MeasurementDone) else []
    for name in _TELLING_FIELDS:
        value = getattr(payload, name, None)
        if value not in (None, ""):
            text = str(value.value if isinstance(value, Enum) else value)
            text = text[:HASH_SHOWN] if name == "artifact_hash" else text
            parts.append(f"{name}={shorten(text, 80)}")
    if isinstance(payload, CritiqueDone) and payload.issues:
        parts.append(f"issues={len(payload.issues)}")
    if isinstance(payload, RegressionDetected):
        parts.append(f"regressions={','.join(payload.regressions)}")
    return " ".join(parts)
