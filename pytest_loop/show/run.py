"""A run in words: the draft, one block an iteration, the end, and the tables of the commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pytest_loop.core.judging.critique import render_critique
from pytest_loop.core.machine import run_machine
from pytest_loop.core.machine.stop_reasons import budgets
from pytest_loop.core.model.run_state import HASH_SHOWN, Event, Kind, Reason, RunCriteria, RunState, Target
from pytest_loop.core.reporting.outcome import (
    ArtifactStatus,
    artifact_status,
    attempt_line,
    distance_to_success,
    pattern,
    question,
)
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import limit_lines, list_names
from pytest_loop.show import workload
from pytest_loop.show.closing import closing_lines

SHOWN_RULES = 12
SHOWN_NAMES = 8
SHOWN_FINDINGS = 5


def draft_lines(state: RunState, origins: dict[str, str]) -> Iterator[str]:
    """What is going to happen, on one screen."""
    levels = {phase.value: float(level.threshold) for phase, level in state.criteria.phase.items()}
    yield f"task        {shorten(state.task.prompt, 100)}"
    target = state.artifact if state.target is Target.ARTIFACT else "the files of the project"
    yield f"target      {target}"
    yield f"agent       {' then '.join(state.agents) or 'none'}" + (f", judge {state.judge}" if state.judge else "")
    yield f"thresholds  A {levels['A']:g}, B {levels['B']:g}"
    yield f"limits      {state.max_iterations} iterations, {_limits(state)}"
    yield f"rules       {len(state.criteria.rules)}"
    if state.sealed and state.sealed.unstable:
        yield f"unstable    {list_names(state.sealed.unstable, 3)}: not the same twice, and do not block"
    if state.sealed and state.sealed.unjudged:
        yield f"not judged  {list_names(state.sealed.unjudged, 3)}: skipped or expected to fail already"
    yield from _rule_lines(state.criteria, origins)


def _limits(state: RunState) -> str:
    words = {"usd": "{:g} USD", "tokens": "{:,} tokens", "seconds": "{:g} s of completed steps"}
    given = [words[name].format(limit) for name, (_, limit) in budgets(state).items() if limit is not None]
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
    """What a person wants to hear of an event; most say nothing."""
    if event.event == Kind.EVALUATION_DONE.value:
        yield from _iteration_lines(state)
    elif event.event == Kind.PHASE_SWITCHED.value:
        yield "phase A passes, phase B begins"
    elif event.event == Kind.PHASE_ERROR.value:
        yield f"{event.payload.get('step', '')} went wrong: {shorten(str(event.payload.get('reason', '')), 300)}"
    elif event.event in (Kind.ARTIFACT_CREATED.value, Kind.REFINEMENT_DONE.value):
        yield from (f"  {shorten(line, 300)}" for line in str(event.payload.get("said", "")).splitlines())
    elif event.event == Kind.CRITIQUE_DONE.value and state.critique:
        yield from (f"  {line}" for line in render_critique(state.critique).splitlines())


def _iteration_lines(state: RunState) -> Iterator[str]:
    one = state.evaluation
    if one is None:
        return
    verdict = "VOID" if one.void else "PASS" if one.passed else "FAIL"
    where = f"Iteration {state.iteration}/{state.max_iterations} | Phase {state.phase.value}"
    yield f"{where} | Score {one.score:.3g} | {verdict}"
    yield f"  hash {one.artifact_hash or '-'}, {one.passing} of {one.total} rules pass, {state.artifact}"
    for word, found in (("failed", one.failed), ("warnings", one.warnings)):
        if found:
            yield f"  {word}: {list_names([each.id for each in found], SHOWN_NAMES)}"
    if one.regressions:
        yield f"  passed before and fail now: {list_names(one.regressions, SHOWN_NAMES)}"
    if one.assumptions:
        yield f"  not confirmed: {list_names(one.assumptions, SHOWN_NAMES)}"
    if state.rung_since == state.iteration + 1 and not one.is_reached:
        yield f"  {state.agents[state.rung]} takes over: the agent before has stopped making progress"
    findings = [f"  {sign.kind}: {shorten(sign.path or sign.rule)}: {shorten(sign.detail)}" for sign in one.findings]
    yield from limit_lines(findings, SHOWN_FINDINGS, "  ... and {} more findings")


def end_lines(state: RunState) -> Iterator[str]:
    """The final report; a stop that is not a success ends in an escalation."""
    status = artifact_status(state)
    one = state.evaluation
    where = f"iteration {state.iteration} of {state.max_iterations}, phase {state.phase.value}"
    yield f"{state.status.value}: {state.stop.reason} after {where}"
    if status is ArtifactStatus.EVALUATED and one:
        yield f"final_score: {one.score:.3g}, artifact: {state.artifact} ({state.artifact_hash[:HASH_SHOWN]})"
    else:
        last = f", last_evaluated_score: {one.score:.3g}" if one else ""
        yield f"final_score: unavailable (the artifact is {status.value}){last}"
    if state.notebook is not None:
        yield from workload.end_lines(state.notebook)
    elif one and one.held_out is not None:
        yield f"held out: the rules that no agent has seen score {one.held_out:.3g}, all of them {one.score:.3g}"
    yield f"used: {_used(state)}"
    yield from closing_lines(state)
    if not state.stop.passed:
        yield from _escalation(state)


def _used(state: RunState) -> str:
    tokens = "unknown" if state.usage.tokens is None else f"{state.usage.tokens:,}"
    cost = "unknown" if state.usage.cost_usd is None else f"{state.usage.cost_usd:.4g} USD"
    return f"tokens {tokens}, cost {cost}, {state.completed_phase_seconds:.1f} s"


def _escalation(state: RunState) -> Iterator[str]:
    far = distance_to_success(state)
    if far:
        yield (
            f"distance: score {far['score']:.3g} of {far['threshold']:g} (gap {far['gap']:.3g}), "
            f"{far['rules_passed']} of {far['rules_total']} rules pass, "
            f"blocking: {list_names(far['blocking'], SHOWN_NAMES) or 'none'}"
        )
    for attempt in state.attempts:
        yield f"  {attempt_line(attempt)}"
    yield f"pattern: {pattern(state)}"
    if state.error_reason:
        yield f"last error: {shorten(state.error_reason, 300)}"
    reason = next((one for one in Reason if one.value == state.stop.reason), Reason.USER_STOP)
    yield f"question: {question(state, reason)}"
    yield f"go on: {go_on(state)}"


def go_on(state: RunState) -> str:
    """The command that goes on from here."""
    base = f"pytest --loop-resume={state.task_alias}"
    if state.stop.reason == Reason.BUDGET_EXCEEDED.value:
        return f"{base} with a higher --loop-budget, --loop-max-tokens or --loop-max-seconds"
    if state.stop.reason == Reason.UNCONFIRMED.value:
        names = state.evaluation.assumptions if state.evaluation else ()
        return " ".join([base, *(f"--loop-confirm {name}" for name in names)])
    if state.stop.reason in (Reason.REGRESSION.value, Reason.PLATEAU.value):
        policy = "on_regression=accept" if state.stop.reason == Reason.REGRESSION.value else "on_plateau=continue"
        return f"{base} -o loop_{policy}"
    if state.stop.reason in run_machine.REOPENED_BY:
        return f"{base} --loop-max-iterations {state.max_iterations + 4}"
    new = f"--loop-manifest {state.notebook.manifest}" if state.notebook else "--loop-task ..."
    return f"pytest {new} (a new run; this one is {state.status.value})" if state.is_over else base


def following(state: RunState) -> str:
    """What comes next, in a few words."""
    if state.is_over:
        return "nothing" if state.stop.passed else go_on(state)
    first = run_machine.commands(state)[0]
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
        yield f"{event.ts}  {event.iteration:>3} {event.phase.value} {event.event:<18}  {_gist(event.payload)}"


def _gist(payload: dict[str, Any]) -> str:
    told = []
    if "metrics" in payload:
        told.append(str(payload["metrics"]))
    for name in ("case", "score", "passed", "reason", "artifact_hash", "exit_signal", "truth", "action", "theory"):
        if name in payload:
            value = payload[name][:HASH_SHOWN] if name == "artifact_hash" else payload[name]
            told.append(f"{name}={shorten(str(value), 80)}")
    if "issues" in payload:
        told.append(f"issues={len(payload['issues'])}")
    if "regressions" in payload and "action" in payload:
        told.append(f"regressions={','.join(payload['regressions'])}")
    return " ".join(told)
