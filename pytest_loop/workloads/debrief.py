"""The debrief: a report of a whole experiment as Markdown, rendered from its events alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_loop.core.events.event import Event
from pytest_loop.core.workload.hypotheses import Truth, classify_trend
from pytest_loop.core.workload.measurement import CaseOutcome, Measurement, compare_measurements
from pytest_loop.workloads.experiment_history import ExperimentHistory, read_experiment
from pytest_loop.workloads.iteration_report import render_sections
from pytest_loop.workloads.markdown_text import end_sentence, escape, format_code, join_names, render_table

_TRUTHS = {
    Truth.UNTESTED: "Untested",
    Truth.CONFIRMED: "Confirmed",
    Truth.REJECTED: "Rejected",
    Truth.PARTIALLY_CONFIRMED: "Partially Confirmed",
}


def render_debrief(events: Iterable[Event]) -> str:
    """Render all sections of the debrief, and the report of each analysed iteration."""
    history = read_experiment(events)
    parts = [f"# Debrief: {escape(history.workload_id or 'workload')}"]
    parts += [_render_section(f"## {title}", list_lines(history)) for title, list_lines in _SECTIONS.items()]
    for iteration in history.analyses:
        parts.append(f"## Report of iteration {iteration}")
        parts += [_render_section(f"### {title}", lines) for title, lines in render_sections(history, iteration)]
    return "\n\n".join(parts) + "\n"


def _render_section(title: str, lines: Iterable[str]) -> str:
    return f"{title}\n\n" + ("\n".join(lines) or "None.")


def classify_status(history: ExperimentHistory) -> str:
    """Return Converged, Improved, Reverted (all edits were taken back) or Inconclusive."""
    if history.baseline is None or history.final is None:
        return "Inconclusive"
    if history.final.has_converged:
        return "Converged"
    if len(history.final.passing) > len(history.baseline.passing):
        return "Improved"
    return "Reverted" if _is_reverted(history) else "Inconclusive"


def _is_reverted(history: ExperimentHistory) -> bool:
    """Return whether each edit is undone by another one."""
    remaining: list[tuple[str, str, str]] = []
    for option in history.edits.values():
        file, current, proposed = option.edit
        if (file, proposed, current) in remaining:
            remaining.remove((file, proposed, current))
        else:
            remaining.append(option.edit)
    return bool(history.edits) and not remaining


def _list_summary(history: ExperimentHistory) -> Iterator[str]:
    yield f"- Status: {classify_status(history)}"
    yield f"- Workload: {escape(history.workload_id or 'unknown')}"
    yield f"- Mode: {escape(history.mode)}"
    yield f"- Iterations: {len(history.iterations)}"
    yield f"- Baseline: {history.baseline or 'not measured'}"
    yield f"- Final: {history.final or 'not measured'}"
    if history.baseline and history.final:
        yield f"- Net: {len(history.final.passing) - len(history.baseline.passing):+d}"
    if history.held_out:
        yield f"- Held out, and seen by no composer: {history.held_out[0]}/{history.held_out[1]} passing"
    yield f"- Ended: {escape(history.stop_reason or 'not yet')}"
    if history.calibration and not history.calibration.passed:
        errors = history.calibration.errors or ("unknown",)
        yield f"- Calibration failed {len(errors)} times, the last time with: {escape(errors[-1])}"


def _list_settings(history: ExperimentHistory) -> Iterator[str]:
    for key, value in history.settings.items():
        if isinstance(value, (str, int, list)) and value:
            yield f"- `{key}`: {escape(', '.join(map(str, value)) if isinstance(value, list) else value)}"


def _list_hypotheses(history: ExperimentHistory) -> Iterator[str]:
    rows = []
    if history.first_hypothesis:
        rows.append(["0", escape(history.first_hypothesis), "none", str(history.baseline), ""])
    for iteration, hypothesis in history.hypotheses.items():
        outcome = history.hypothesis_outcomes.get(iteration)
        truth = _TRUTHS[outcome.truth if outcome else Truth.UNTESTED]
        if outcome and outcome.missed and outcome.improved:
            truth += f" (not {join_names(outcome.missed)})"
        predicted = join_names(hypothesis.prediction) or "none"
        rows.append([str(iteration), escape(hypothesis.theory), predicted, truth, escape(hypothesis.mechanism)])
    yield from render_table(["Iteration", "Hypothesis", "Prediction", "Outcome", "Mechanism"], rows)


def _list_iterations(history: ExperimentHistory) -> Iterator[str]:
    rows = [["0", str(history.baseline), "", "", "Baseline"]] if history.baseline else []
    for before, after in history.pair_measurements():
        change = compare_measurements(before, after)
        net = len(after.passing) - len(before.passing)
        detail = f"{net:+d} (+{len(change.fixed)} -{len(change.regressions)})"
        edit = escape(_find_measured_edit(history, after))
        rows.append([str(after.iteration), str(after), detail, edit, classify_trend(before, after).value])
    yield from render_table(["Iteration", "Passing", "Change", "Key edit", "Verdict"], rows)


def _find_measured_edit(history: ExperimentHistory, after: Measurement) -> str:
    """Return the name of the edit that a measurement tests, the last one of an earlier iteration; "" if none."""
    earlier = [iteration for iteration in history.edits if iteration < after.iteration]
    return history.edits[max(earlier)].name if earlier else ""


def _list_edits(history: ExperimentHistory) -> Iterator[str]:
    for iteration, option in history.edits.items():
        yield f"- Iteration {iteration}, {escape(option.place)}: {escape(option.name)}"
        yield f"    - from: {format_code(option.current)}"
        yield f"    - to: {format_code(option.proposed)}"


def _list_analyses(history: ExperimentHistory) -> Iterator[str]:
    for iteration, analysis in history.analyses.items():
        decision = history.decisions.get(iteration)
        choice = "nothing yet" if decision is None else "nothing" if decision.chosen is None else str(decision.chosen)
        reason = f" ({escape(decision.reason)})" if decision and decision.reason else ""
        yield f"- Iteration {iteration}: {end_sentence(escape(analysis.root_cause))} Chosen: {choice}{reason}."
        for number, option in enumerate(analysis.options, 1):
            risk = escape(option.risk or "unknown")
            yield f"    {number}. {escape(option.name)} ({option.confidence.value}; risk: {risk})"


def _list_failures(history: ExperimentHistory) -> Iterator[str]:
    for result in history.final.results if history.final else ():
        if result.outcome is CaseOutcome.INFRASTRUCTURE:
            yield f"- {escape(result.id)} (infrastructure): {escape(result.text or 'no reason given')}"
        elif result.outcome is CaseOutcome.FAILED:
            yield f"- {escape(result.id)}: {escape(str(next(iter(result.critiques), '')) or 'no reason given')}"


def _list_insights(history: ExperimentHistory) -> Iterator[str]:
    for iteration, outcome in history.hypothesis_outcomes.items():
        if outcome.truth is Truth.CONFIRMED and iteration in history.hypotheses:
            mechanism = escape(history.hypotheses[iteration].mechanism)
            yield f"- {end_sentence(mechanism)} It held for {join_names(outcome.improved)}."


def _list_regressions(history: ExperimentHistory) -> Iterator[str]:
    for before, after in history.pair_measurements():
        change = compare_measurements(before, after)
        if change.regressions:
            regression = history.regressions.get(after.iteration)
            action = f" Decided: {regression.action.value}." if regression else ""
            edit = _find_measured_edit(history, after)
            cause = f" after {escape(edit)}" if edit else ""
            better = join_names(change.fixed) or "nothing"
            worse = f"{join_names(change.regressions)} became worse, while {better} became better."
            yield f"- Iteration {after.iteration}{cause}: {worse}{action}"


def _list_recommendations(history: ExperimentHistory) -> Iterator[str]:
    if history.final is None:
        yield "- Make the pipeline work for one case, and start again."
        return
    if history.final.unmeasured:
        yield f"- Look at the infrastructure first: {len(history.final.unmeasured)} cases could not be measured."
    if never := sorted(frozenset.intersection(*(measurement.failing for measurement in history.measurements))):
        yield f"- Never passed: {join_names(never)}. Look whether what is expected of them is right."
    if lost := sorted(history.final.failing & history.measurements[0].passing):
        yield f"- Passed at the beginning and fails now: {join_names(lost)}. Fix these, or accept them by name."
    if history.final.has_converged:
        yield "- Add cases that are harder than these before the next change."
    elif history.analyses:
        tried = [option.edit for option in history.edits.values()]
        for option in history.analyses[max(history.analyses)].options:
            if option.edit not in tried:
                yield f"- Not tried yet: {escape(option.name)}."


def _list_opinion(history: ExperimentHistory) -> Iterator[str]:
    tested = [outcome.truth for outcome in history.hypothesis_outcomes.values() if outcome.truth is not Truth.UNTESTED]
    if not tested:
        yield "No prediction was tested, so nothing is known about why the cases pass or fail."
        return
    confirmed = tested.count(Truth.CONFIRMED)
    is_understood = 2 * confirmed >= len(tested)
    state = "are understood" if is_understood else "are not understood yet: look at single cases before the next edit"
    yield f"{confirmed} of {len(tested)} predictions came true. The failures {state}."


_SECTIONS = {
    "Executive summary": _list_summary,
    "Manifest": _list_settings,
    "Hypothesis audit trail": _list_hypotheses,
    "Iteration history": _list_iterations,
    "Key edits": _list_edits,
    "Composer summary": _list_analyses,
    "Remaining failures": _list_failures,
    "Insights": _list_insights,
    "Regressions and trade-offs": _list_regressions,
    "Recommendations": _list_recommendations,
    "Opinion": _list_opinion,
}
