"""An experiment in words: the draft, what happens in it, and what it came to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_loop.core.machine.stop_reasons import budgets
from pytest_loop.core.model.run_state import Event, Kind, RunState
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.wording import list_names
from pytest_loop.core.workload.analysis import Analysis
from pytest_loop.core.workload.experiment_state import Notebook
from pytest_loop.core.workload.hypotheses import Decision, Hypothesis, Judgement, Truth, trend
from pytest_loop.core.workload.measurement import compare_measurements

_SHOWN = 8
_TRUTHS = {
    Truth.UNTESTED: "untested",
    Truth.CONFIRMED: "confirmed",
    Truth.REJECTED: "rejected",
    Truth.PARTIALLY: "partly confirmed",
}


def draft_lines(state: RunState, book: Notebook) -> Iterator[str]:
    """What is going to happen, on one screen."""
    policy = book.policy
    limit = budgets(state)["usd"][1]
    yield f"workload    {shorten(book.workload, 80)} ({book.manifest})"
    yield f"task        {shorten(state.task.prompt, 100)}"
    yield f"cases       {len(book.cases)}" + _parts(book)
    yield f"may edit    {_some(book.artifacts)}"
    yield f"composer    {state.agents[0] if state.agents else 'none'}" + (
        f", judge {state.judge}" if state.judge else ""
    )
    yield f"mode        {policy.mode}"
    regression = policy.on_regression.value if policy.on_regression else "ask"
    yield f"policies    decide: {policy.decide.value}, plateau: {policy.on_plateau.value}, regression: {regression}"
    yield f"limits      {state.max_iterations} iterations" + (f", {limit:g} USD" if limit is not None else "")


def _parts(book: Notebook) -> str:
    parts = {"held out": book.hidden, "to focus on": book.focus, "guards": book.guards, "excluded": book.excluded}
    told = [f"{len(names)} {word}" for word, names in parts.items() if names]
    return f" ({', '.join(told)})" if told else ""


def event_lines(event: Event, state: RunState, book: Notebook) -> Iterator[str]:
    """What a person wants to hear of an event."""
    kind, payload = event.event, event.payload
    if kind == Kind.CALIBRATION_DONE.value:
        yield from _calibration(event)
    elif kind in (Kind.BASELINE_DONE.value, Kind.EVALUATION_DONE.value):
        yield from _measurement(event, state, book)
    elif kind == Kind.HYPOTHESIS_JUDGED.value:
        yield from _judgement(Judgement.model_validate(payload))
    elif kind == Kind.REGRESSION_DETECTED.value:
        cause = f" after {shorten(payload['likely_cause'], 80)}" if payload.get("likely_cause") else ""
        yield f"  REGRESSION{cause}: {', '.join(payload['regressions'])} passed before; decided: {payload['action']}"
    elif kind == Kind.PLATEAU_REACHED.value:
        yield f"  PLATEAU: {payload['flat']} times no better than the best; decided: {payload['action']}"
    elif kind == Kind.CRITIQUE_DONE.value:
        yield from _analysis(Analysis.model_validate(payload["analysis"]))
    elif kind == Kind.REFINEMENT_DONE.value:
        yield from _decision(event)
    elif kind == Kind.HYPOTHESIS_FORMED.value:
        said = Hypothesis.model_validate(payload)
        yield f"  hypothesis: {shorten(said.theory, 200)}"
        yield f"  prediction: {_some(said.prediction)} will pass"
    elif kind == Kind.PHASE_ERROR.value:
        yield f"{payload.get('step', '')} went wrong: {shorten(str(payload.get('reason', '')), 500)}"


def _calibration(event: Event) -> Iterator[str]:
    payload = event.payload
    for number, error in enumerate(payload["errors"], 1):
        yield f"  try {number}: {shorten(error, 300)}"
    yield f"Calibration with {payload['case']}: {'the pipeline works' if payload['passed'] else 'failed'}"


def _measurement(event: Event, state: RunState, book: Notebook) -> Iterator[str]:
    if book.last is None:
        return
    where = f"Iteration {event.iteration}/{state.max_iterations}" if event.iteration else "Baseline"
    void = " | VOID" if state.evaluation and state.evaluation.void else ""
    moved = ""
    if len(book.seen) > 1:
        before, after = book.seen[-2:]
        happened = compare_measurements(before, after)
        moved = f" | {trend(before, after).value} (+{len(happened.fixed)} -{len(happened.regressions)})"
    yield f"{where} | {book.last}{moved}{void}"
    if book.last.failing:
        yield f"  failing: {_some(sorted(book.last.failing))}"
    if book.last.unmeasured:
        yield f"  not measured (infrastructure): {_some(sorted(book.last.unmeasured))}"
    for sign in state.evaluation.findings if state.evaluation else ():
        yield f"  {sign.kind}: {shorten(sign.path or sign.rule)}: {shorten(sign.detail)}"


def _judgement(found: Judgement) -> Iterator[str]:
    missed = f"; did not improve: {_some(found.missed)}" if found.missed else ""
    broken = f"; guards broken: {', '.join(found.guards)}" if found.guards else ""
    yield f"  hypothesis of iteration {found.iteration}: {_TRUTHS[found.truth]}{missed}{broken}"


def _analysis(found: Analysis) -> Iterator[str]:
    yield f"  root cause: {shorten(found.root_cause, 300)}"
    for number, option in enumerate(found.options, 1):
        worse = f", may break {_some(option.regresses)}" if option.regresses else ""
        place = f"{option.file}, {option.section}" if option.section else option.file
        yield f"  {number}. {shorten(option.name, 100)} [{shorten(place, 80)}]"
        yield f"     improves {_some(option.improves)}{worse}; risk: {shorten(option.risk, 100)}"


def _decision(event: Event) -> Iterator[str]:
    decision, option = Decision.model_validate(event.payload["decision"]), event.payload.get("option")
    chosen = f"{decision.chosen}. {shorten(option['name'], 100)}" if option else "no edit"
    yield f"  decided: {chosen} ({shorten(decision.reason, 100)})"
    for one in event.payload.get("findings", ()):
        yield f"  {one['kind']}: {shorten(one['path'])}: {shorten(one.get('detail', ''))}"


def end_lines(book: Notebook) -> Iterator[str]:
    """What it came to."""
    if not book.seen:
        return
    first, last = book.seen[0], book.seen[-1]
    net = len(last.passing) - len(first.passing)
    yield f"{shorten(book.workload, 80)}: baseline {first}, now {last}, net {net:+d}"
    right = sum(one.truth is Truth.CONFIRMED for one in book.judgements)
    if book.judgements:
        yield f"hypotheses: {right} of {len(book.judgements)} confirmed"
    hidden = book.held_out(book.measurements[-1])
    if hidden is not None:
        gap = len(last.passing) / max(1, len(last.results)) - hidden[0] / hidden[1]
        yield f"held out: {hidden[0]}/{hidden[1]} passing that no composer has seen, a gap of {100 * gap:.0f} points"


def _some(names: Sequence[str]) -> str:
    return list_names([shorten(name, 100) for name in names], _SHOWN)
