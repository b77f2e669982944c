"""The report of one iteration of an experiment: failures, their causes, and options to fix them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.workload.analysis import Analysis, EditOption
from pytest_loop.core.workload.measurement import CaseOutcome, CaseResult, Measurement, Remark
from pytest_loop.workloads.experiment_history import ExperimentHistory
from pytest_loop.workloads.markdown_text import escape, format_code, join_names, render_table

_OUTCOMES = {CaseOutcome.PASSED: "Passing", CaseOutcome.FAILED: "Failing", CaseOutcome.INFRASTRUCTURE: "Not measured"}


def render_sections(history: ExperimentHistory, iteration: int) -> Iterator[tuple[str, list[str]]]:
    """Yield the seven sections with their lines; none for an iteration without analysis."""
    analysis = history.analyses.get(iteration)
    # A skipped iteration is not measured: its analysis is about the measurement before it.
    measurements = [measurement for measurement in history.measurements if measurement.iteration <= iteration]
    if analysis is None or not measurements:
        return
    current = measurements[-1]
    previous = next((other for other in reversed(measurements) if other.iteration < current.iteration), None)
    yield "Summary", [f"- {current}", f"- Root cause: {escape(analysis.root_cause)}"]
    yield "Failure modes", list(_list_failure_modes(current))
    yield "Root causes", list(_list_causes(analysis, current))
    yield (
        "Fix options",
        [line for number, option in enumerate(analysis.options, 1) for line in _describe_option(number, option)],
    )
    yield "Regression risks", list(_list_risks(analysis))
    yield "Case by case", list(_list_cases(current, previous))
    yield "Reasoning trail", list(_list_hypotheses(history, iteration))


def _list_failure_modes(current: Measurement) -> Iterator[str]:
    """Yield a table of the remarks on failing cases by place, the most frequent place first."""
    modes: dict[str, list[tuple[Remark, str]]] = defaultdict(list)
    for result in current.results:
        for remark in result.critiques if result.id in current.failing else ():
            modes[_generalize(remark.location)].append((remark, result.id))
    rows = []
    for mode, remarks in sorted(modes.items(), key=lambda entry: -len(entry[1])):
        cases = list(dict.fromkeys(case for _, case in remarks))
        example = remarks[0][0]
        repeats = f" ({len(remarks)} remarks)" if len(remarks) > len(cases) else ""
        frequency = f"{len(cases)}/{len(current.results)}{repeats}"
        severity = escape(example.severity or "unknown")
        rows.append([escape(mode), severity, frequency, escape(example.message), join_names(cases)])
    yield from render_table(["Category", "Severity", "Frequency", "Example", "Cases"], rows)


def _generalize(location: str) -> str:
    """Replace digits of a location by `#`, so that several cases have the same one; return `anywhere` without one."""
    return shorten("".join("#" if letter.isdigit() else letter for letter in location), 60) or "anywhere"


def _list_causes(analysis: Analysis, current: Measurement) -> Iterator[str]:
    observation = analysis.hypothesis.observation
    evidence = escape(observation) if observation else f"failing are {join_names(sorted(current.failing))}"
    yield f"- Diagnosis: {escape(analysis.root_cause)}"
    yield f"- Evidence: {evidence}"
    yield f"- Confidence: {analysis.options[0].confidence.value}"


def _describe_option(number: int, option: EditOption) -> Iterator[str]:
    change = f"{format_code(option.current)} becomes {format_code(option.proposed)}"
    yield f"{number}. {escape(option.name)}" + (" (recommended)" if number == 1 else "")
    yield f"    - Mechanism: {escape(option.mechanism)}"
    yield f"    - Target: {escape(option.place)}, {change}"
    yield f"    - Impact: {len(option.improves) - len(option.regresses):+d}, improves {join_names(option.improves)}"
    yield f"    - Risk: {escape(option.risk or 'unknown')}"


def _list_risks(analysis: Analysis) -> Iterator[str]:
    for number, option in enumerate(analysis.options, 1):
        if option.regresses:
            broken = join_names(option.regresses)
            yield f"- Option {number} may break {broken}; the next measurement shows whether it does."


def _list_cases(current: Measurement, previous: Measurement | None) -> Iterator[str]:
    """Yield a table of the cases that do not pass now or did not before, and a line with the number of others."""
    before = {result.id: result for result in previous.results} if previous else {}
    listed = [
        result
        for result in sorted(current.results, key=lambda result: (result.passed, result.id))
        if not (result.passed and (result.id not in before or before[result.id].passed))
    ]
    rows = [[escape(result.id), *_describe_change(result, before.get(result.id))] for result in listed]
    yield from render_table(["Case", "Status", "Before"], rows)
    if others := len(current.results) - len(listed):
        yield from (("",) if rows else ())
        yield f"{others} others pass{' as before' if previous else ''}."


def _describe_change(result: CaseResult, before: CaseResult | None) -> tuple[str, str]:
    """Return the current and the previous status of a case; without a previous result, that is `New`."""
    if before is None:
        return _OUTCOMES[result.outcome], "New"
    is_regressed = result.outcome is CaseOutcome.FAILED and before.passed
    return "Regressed" if is_regressed else _OUTCOMES[result.outcome], _OUTCOMES[before.outcome]


def _list_hypotheses(history: ExperimentHistory, iteration: int) -> Iterator[str]:
    for number, hypothesis in history.hypotheses.items():
        if number <= iteration:
            truth = (
                history.hypothesis_outcomes[number].truth.value if number in history.hypothesis_outcomes else "untested"
            )
            yield f"- Iteration {number}: {escape(hypothesis.theory)} ({truth.replace('_', ' ')})"
