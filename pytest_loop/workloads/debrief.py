"""The debrief of an experiment: what was believed, done and found, as Markdown made from its events alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pytest_loop.core.events.event import Event
from pytest_loop.core.workload.hypotheses import Truth, trend
from pytest_loop.core.workload.measurement import CaseOutcome, Measurement, compare_measurements
from pytest_loop.workloads.experiment_history import ExperimentHistory, read_experiment
from pytest_loop.workloads.report import report
from pytest_loop.workloads.writing import code, names, plain, table

_TRUTHS = {
    Truth.UNTESTED: "Untested",
    Truth.CONFIRMED: "Confirmed",
    Truth.REJECTED: "Rejected",
    Truth.PARTIALLY: "Partially Confirmed",
}


def debrief(events: Iterable[Event]) -> str:
    """All sections, each with what there is to say; an experiment that came to nothing says so."""
    found = read_experiment(events)
    sections = (
        ("Executive summary", _summary(found)),
        ("Manifest", _manifest(found)),
        ("Hypothesis audit trail", _audit(found)),
        ("Iteration history", _history(found)),
        ("Key edits", _edits(found)),
        ("Composer summary", _composer(found)),
        ("Remaining failures", _failures(found)),
        ("Insights", _insights(found)),
        ("Regressions and trade-offs", _regressions(found)),
        ("Recommendations", _recommendations(found)),
        ("Opinion", _opinion(found)),
    )
    name = plain(found.workload_id or "workload")
    parts = [f"# Debrief: {name}"]
    for title, lines in sections:
        parts.append(_section(f"## {title}", lines))
    for iteration in found.analyses:
        parts += [f"## Report of iteration {iteration}"]
        parts += [_section(f"### {title}", lines) for title, lines in report(found, iteration)]
    return "\n\n".join(parts) + "\n"


def _section(title: str, lines: Iterable[str]) -> str:
    return f"{title}\n\n" + ("\n".join(lines) or "None.")


def status(found: ExperimentHistory) -> str:
    """Converged, Improved, Reverted (all edits were taken back), or Inconclusive."""
    if found.baseline is None or found.final is None:
        return "Inconclusive"
    if found.final.has_converged:
        return "Converged"
    if len(found.final.passing) > len(found.baseline.passing):
        return "Improved"
    return "Reverted" if _is_reverted(found) else "Inconclusive"


def _is_reverted(found: ExperimentHistory) -> bool:
    left: list[tuple[str, str, str]] = []
    for option in found.edits.values():
        file, current, proposed = option.edit
        if (file, proposed, current) in left:
            left.remove((file, proposed, current))
        else:
            left.append(option.edit)
    return bool(found.edits) and not left


def _summary(found: ExperimentHistory) -> Iterator[str]:
    yield f"- Status: {status(found)}"
    yield f"- Workload: {plain(found.workload_id or 'unknown')}"
    yield f"- Mode: {plain(found.mode)}"
    yield f"- Iterations: {len(found.iterations)}"
    yield f"- Baseline: {found.baseline or 'not measured'}"
    yield f"- Final: {found.final or 'not measured'}"
    if found.baseline and found.final:
        yield f"- Net: {len(found.final.passing) - len(found.baseline.passing):+d}"
    if found.held_out:
        yield f"- Held out, and seen by no composer: {found.held_out[0]}/{found.held_out[1]} passing"
    yield f"- Ended: {plain(found.reason or 'not yet')}"
    if found.calibration and not found.calibration.passed:
        errors = found.calibration.errors or ("unknown",)
        yield f"- Calibration failed {len(errors)} times, the last time with: {plain(errors[-1])}"


def _manifest(found: ExperimentHistory) -> Iterator[str]:
    shown = {key: value for key, value in found.settings.items() if isinstance(value, (str, int, list)) and value}
    for key, value in shown.items():
        yield f"- `{key}`: {plain(', '.join(map(str, value)) if isinstance(value, list) else value)}"


def _audit(found: ExperimentHistory) -> Iterator[str]:
    rows = []
    for iteration, one in found.hypotheses.items():
        judgement = found.judgements.get(iteration)
        outcome = _TRUTHS[judgement.truth] if judgement else _TRUTHS[Truth.UNTESTED]
        if judgement and judgement.missed and judgement.improved:
            outcome += f" (not {names(judgement.missed)})"
        predicted = names(one.prediction) or "none"
        rows.append([str(iteration), plain(one.theory), predicted, outcome, plain(one.mechanism)])
    yield from table(["Iteration", "Hypothesis", "Prediction", "Outcome", "Mechanism"], rows)


def _history(found: ExperimentHistory) -> Iterator[str]:
    rows = [["0", str(found.baseline), "", "", "Baseline"]] if found.baseline else []
    for before, after in found.pairs():
        happened = compare_measurements(before, after)
        gained = len(after.passing) - len(before.passing)
        edit = plain(_measured_edit(found, after))
        detail = f"{gained:+d} (+{len(happened.fixed)} -{len(happened.regressions)})"
        rows.append([str(after.iteration), str(after), detail, edit, trend(before, after).value])
    yield from table(["Iteration", "Passing", "Change", "Key edit", "Verdict"], rows)


def _measured_edit(found: ExperimentHistory, after: Measurement) -> str:
    """The edit that a measurement was made after: the last one of an earlier iteration."""
    before = [number for number in found.edits if number < after.iteration]
    return found.edits[max(before)].name if before else ""


def _edits(found: ExperimentHistory) -> Iterator[str]:
    for iteration, option in found.edits.items():
        place = f"{option.file}, {option.section}" if option.section else option.file
        yield f"- Iteration {iteration}, {plain(place)}: {plain(option.name)}"
        yield f"    - from: {code(option.current)}"
        yield f"    - to: {code(option.proposed)}"


def _composer(found: ExperimentHistory) -> Iterator[str]:
    for iteration, analysis in found.analyses.items():
        decision = found.decisions.get(iteration)
        chosen = "nothing yet" if decision is None else "nothing" if decision.chosen is None else str(decision.chosen)
        reason = f" ({plain(decision.reason)})" if decision and decision.reason else ""
        yield f"- Iteration {iteration}: {plain(analysis.root_cause)} Chosen: {chosen}{reason}."
        for number, option in enumerate(analysis.options, 1):
            risk = plain(option.risk or "unknown")
            yield f"    {number}. {plain(option.name)} ({option.confidence.value}; risk: {risk})"


def _failures(found: ExperimentHistory) -> Iterator[str]:
    for result in found.final.results if found.final else ():
        if result.outcome is not CaseOutcome.PASSED:
            said = (
                result.text if result.outcome is CaseOutcome.INFRASTRUCTURE else str(next(iter(result.critiques), ""))
            )
            apart = " (infrastructure)" if result.outcome is CaseOutcome.INFRASTRUCTURE else ""
            yield f"- {plain(result.id)}{apart}: {plain(said or 'no reason given')}"


def _insights(found: ExperimentHistory) -> Iterator[str]:
    for iteration, judgement in found.judgements.items():
        if judgement.truth is Truth.CONFIRMED and iteration in found.hypotheses:
            yield f"- {plain(found.hypotheses[iteration].mechanism)} It held for {names(judgement.improved)}."


def _regressions(found: ExperimentHistory) -> Iterator[str]:
    for before, after in found.pairs():
        happened = compare_measurements(before, after)
        if happened.regressions:
            noted = found.regressions.get(after.iteration)
            action = f" Decided: {plain(noted.action.value)}." if noted else ""
            edit = _measured_edit(found, after)
            cause = f" after {plain(edit)}" if edit else ""
            better = names(happened.fixed) or "nothing"
            worse = f"{names(happened.regressions)} became worse, while {better} became better."
            yield f"- Iteration {after.iteration}{cause}: {worse}{action}"


def _recommendations(found: ExperimentHistory) -> Iterator[str]:
    if found.final is None:
        yield "- Make the pipeline work for one case, and start again."
        return
    if found.final.unmeasured:
        yield f"- Look at the infrastructure first: {len(found.final.unmeasured)} cases could not be measured."
    always = sorted(frozenset.intersection(*(one.failing for one in found.measurements)))
    if always:
        yield f"- Never passed: {names(always)}. Look whether what is expected of them is right."
    lost = sorted(found.final.failing & found.measurements[0].passing)
    if lost:
        yield f"- Passed at the beginning and fails now: {names(lost)}. Mend these, or accept them by name."
    last = max(found.analyses, default=None)
    if last is not None and not found.final.has_converged:
        for option in found.analyses[last].options:
            if option.edit not in [one.edit for one in found.edits.values()]:
                yield f"- Not tried yet: {plain(option.name)}."
    if found.final.has_converged:
        yield "- Add cases that are harder than these before the next change."


def _opinion(found: ExperimentHistory) -> Iterator[str]:
    judged = [one for one in found.judgements.values() if one.truth is not Truth.UNTESTED]
    right = sum(one.truth is Truth.CONFIRMED for one in judged)
    if not judged:
        yield "No prediction was tested, so nothing is known about why the cases pass or fail."
        return
    is_understood = 2 * right >= len(judged)
    what = "are understood" if is_understood else "are not understood yet: look at single cases before the next edit"
    yield f"{right} of {len(judged)} predictions came true. The failures {what}."
